"""One round: a tool in a folder of its own, what was done to it, and what was found wrong."""

import os
import random
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from benchmarks.faults import checks
from benchmarks.faults.works import WORKS, Strike, Undisturbed, Work, copied, measures, opened, undisturbed
from support.building import checksums
from support.remote import PASSWORD
from support.tool import Command, Tool

from stallmark.errors import StallmarkError
from stallmark.experiment.any_run import commit_counts as counted_in
from stallmark.loaders import ledger
from stallmark.record.reader import Record
from stallmark.transactions import checks as conditions
from stallmark.transactions import find_workload

ENDS_WITHIN_S = 100
"""No command takes longer to end after it was struck: sessions try again for a minute to reach a server."""
GONE_WITHIN_S = 45
"""A server that was left behind has 30 s for a checkpoint."""


class Skipped(Exception):
    """The round cannot be made here; the sentence says why."""


@dataclass
class Round:
    """`folder` is empty at first; `prepared` holds what all rounds share; `isolated` says whether processes and shared
    memory are seen by this round alone."""

    rng: random.Random
    folder: Path
    prepared: Path
    isolated: bool
    did: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.tool = Tool(self.folder, {"TMPDIR": os.environ["TMPDIR"]})

    def found(self, problems: Iterable[str], when: str = "") -> None:
        self.problems += [f"{when}: {one}" if when else one for one in problems]

    # What commands work on

    def undisturbed(self, name: str) -> Undisturbed:
        """Return how a work is that nobody disturbs."""
        return undisturbed(self.prepared, name)

    def take(self, name: str) -> tuple[Work, Undisturbed]:
        """Have the database of a work, as it was loaded, with the copy that restores start from."""
        there = self.undisturbed(name)
        if not self.tool.home.exists():
            copied(there.home, self.tool.home)
        return WORKS[name], there

    def tables(self, work: Work, *, restored: bool = False) -> dict[str, tuple]:
        """Return rows and checksums of a work's tables; with `restored`, as they are after another restore."""
        with opened(self.tool.home, work) as engine:
            if restored:
                engine.backup.restore()  # type: ignore[union-attr]
            return checksums(engine, find_workload(work.workload))  # type: ignore[arg-type]

    # Commands

    def struck(self, strike: Strike, *arguments: str) -> tuple[int, Command, bool]:
        """Start a command, strike, wait for its end; return its code, the command, and whether there was anything to
        strike."""
        command = self.tool.start_anew(*arguments)
        hit = strike.carry_out(self.rng, self.tool, command)
        self.did.append(f"{arguments[0]}: {strike}" if hit else f"{strike} came too late")
        return self.ended(command), command, hit

    def ended(self, command: Command) -> int:
        """Wait until a command has ended and all its processes are gone; return its code."""
        try:
            code = command.process.wait(ENDS_WITHIN_S)
        except psutil.TimeoutExpired:
            self.problems.append(f"it had not ended after {ENDS_WITHIN_S} s: {command.text.strip()[-300:]}")
            command.process.kill()
            code = command.process.wait()
        if code is None:
            code = 0
        self.found(checks.said(code, command.text))
        self.gone()
        return code

    def gone(self) -> None:
        """Note what runs for longer than it may."""
        _, alive = psutil.wait_procs(self.tool.processes(), GONE_WITHIN_S)
        alive = [one for one in alive if one in self.tool.processes()] or self.tool.processes()
        self.found(checks.left(processes=[_described(process) for process in alive]))
        for process in alive:
            with suppress(psutil.Error):
                process.kill()

    def next(self, *arguments: str, codes: tuple[int, ...] = (0,)) -> str:
        """Run a command that must work without any cleaning; return what it says."""
        command = self.tool.start_anew(*arguments)
        try:
            code = command.process.wait(ENDS_WITHIN_S)
        except psutil.TimeoutExpired:
            command.process.kill()
            code = "no end"
        if code not in codes:
            self.problems.append(f"next, {' '.join(arguments[:2])} ended with {code}: {command.text.strip()[-400:]}")
        self.found(checks.said(0, command.text), f"next, {arguments[0]}")
        self.gone()
        return command.text

    def measuring(self, command: Command) -> None:
        """Wait until a run has measured its first second, or has ended."""

        while command.process.poll() is None and not measures(self.tool, command):
            time.sleep(0.05)

    # What is looked at afterwards

    def record(self) -> Record | None:
        """Return the record that was begun last; None where none was."""
        made = sorted(self.tool.runs.glob("*/*/manifest.json"), key=lambda path: path.stat().st_mtime)
        try:
            return Record(made[-1].parent) if made else None
        except StallmarkError as error:
            self.problems.append(f"the record cannot be read: {error}")
            return None

    def reported(self, record: Record, codes: tuple[int, ...] = (0, 5)) -> dict:
        """Make a report of what is left, as JSON."""
        text = self.next("report", str(record.folder.parent), "--json", codes=codes)
        found, wrong = checks.in_json(text)
        self.found(wrong, "report --json")
        return found

    def commits(self, work: Work, record: Record | None, lost_s: float = 0.0) -> None:
        """Open the database: its conditions hold, and it has the commits of the record."""
        with opened(self.tool.home, work) as engine:
            self.database(engine, work, record, lost_s)

    def database(self, engine, work: Work, record: Record | None, lost_s: float = 0.0) -> None:
        """Look at an open database: its conditions hold, and it has the commits of the record."""
        workload = find_workload(work.workload)
        after: dict[str, int] = {}
        for part in workload.parts:
            after |= counted_in(engine.database_of(part.name), part)
        if record:
            counts = checks.Counts.of(record)
            self.found(checks.counted(counts, after, lost_s=lost_s))
            more = {name: after[name] - before - counts.seen[name] for name, before in counts.before.items()}
            self.did += [f"{number} {name} unreported" for name, number in more.items() if number > 0]
        entry = ledger.read(engine)
        if entry is None:
            self.problems.append("the database has no ledger")
            return
        found = conditions.run(engine, workload, entry.identity.scale, driven=entry.driven)
        # A power run that was cut leaves a refresh set half done, which the next run mends.
        held = [one for one in found if one.holds is not False or "refresh" not in one.name]
        self.found(checks.conditions(held))

    def left(self) -> None:
        """Note all that is left when the last command has ended."""
        shared = sorted(os.listdir("/dev/shm")) if self.isolated else []
        if self.isolated:
            segments = Path("/proc/sysvipc/shm").read_text().splitlines()[1:]
            shared += [f"segment {line.split()[1]} of process {line.split()[4]}" for line in segments]
        temporary = sorted(os.listdir(os.environ["TMPDIR"]))
        self.found(checks.left(shared=shared, temporary=[*temporary, *checks.drafts(self.folder)]))
        self.found(checks.secrets(self.tool.runs, PASSWORD))


def _described(process: psutil.Process) -> str:
    try:
        return f"{process.pid} ({' '.join(process.cmdline())[-120:]})"
    except psutil.Error:
        return str(process.pid)
