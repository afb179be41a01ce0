"""The surroundings of a run: disks that fill, folders that cannot be written, clocks that are set."""

import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from benchmarks.faults import checks, works
from benchmarks.faults.clock import Clock
from benchmarks.faults.kinds.servers import a_server, look
from benchmarks.faults.round import Round, Skipped
from benchmarks.faults.works import Moment, copied

from stallmark.cli.exit_codes import FAILED, INCOMPLETE

CUT_S = 4
"""A record whose disk is full has what was written before; what users do until they are told to stop it has not."""
DENIED = r"not permitted|denied|read-only|no right to write|cannot be (used|written)"
WORDS = r"No space left|disk is (full|too small)|out of space|could not (extend|write)|full"


def disk_full(round: Round) -> None:
    """Fill the disk of the record, of the database or of temporary files at a random moment of a run."""
    which = round.rng.choice(["record", "database", "temporary files"])
    work, _ = round.take(round.rng.choice(["bank", "mail", "several loads"]))
    place = {"record": round.tool.runs, "database": round.tool.home, "temporary files": Path(os.environ["TMPDIR"])}
    moment = Moment.draw(round.rng, works.RUN)
    with _small_disk(round, place[which], "64M" if which != "database" else "400M"):
        command = round.tool.start_anew(
            "run", round.tool.scenario(**work.changes | {"measure": "6s"}, reset="continue")
        )
        hit = moment.wait(round.tool, command)
        filler = place[which] / "filler"
        _fill(filler, leave=round.rng.choice([0, 0, 100_000]))
        round.did.append(f"the disk of the {which} full {moment}" if hit else "came too late")
        code = round.ended(command)
        record = round.record()
        full = " ".join(((record and record.incomplete_because) or command.text).split())
        if code not in (0, FAILED, INCOMPLETE):
            round.problems.append(f"it ended with {code}: {full[-300:]}")
        round.found(_true_of_a_disk(code, full, record, command.text))
        filler.unlink()
        if record:
            round.reported(record)
        round.commits(work, record, CUT_S if which == "record" else 0.0)
        round.next("run", round.tool.scenario(**work.changes | {"measure": "1s"}, reset="continue"))
        round.commits(work, round.record())
        _left_but_its_place(round)


def _true_of_a_disk(code: int, told: str, record, said: str) -> Iterator[str]:
    """The filler may take what was kept for closing the record, too: then the command says that it is not closed."""
    if record and record.manifest.status == "running" and "could not be closed" not in said:
        yield "the record says that the run goes on, and it has ended for a full disk"
    elif code and not re.search(WORDS, told, re.IGNORECASE):
        yield f"the disk was full, and the reason is “{told[-300:]}”"


def unwritable(round: Round) -> None:
    """Take away the right to write: to the folder of records, of an experiment or of the database."""
    work, _ = round.take("bank")
    moment = Moment.draw(round.rng, works.RUN)
    which = round.rng.choice(["records", "an experiment", "database"])
    early = round.rng.random() < 0.3
    round.tool.runs.mkdir()
    [folder] = round.tool.home.glob("embedded/*")
    with _without_drafts(round), _unwritable_for_us(round) as refuse:
        if early:
            refuse(folder if which == "database" else round.tool.runs)
        reset = round.rng.choice(["continue", "restore"])
        command = round.tool.start_anew("run", round.tool.scenario(**work.changes, reset=reset))
        if not early:
            moment.wait(round.tool, command)
            begun = sorted(round.tool.runs.glob("*/*"))
            refuse(folder if which == "database" else begun[-1] if begun and which != "records" else round.tool.runs)
        round.did.append(f"the folder of {which} unwritable {'from the start' if early else moment}")
        code = round.ended(command)
        record = round.record()
        told = " ".join(((record and record.incomplete_because) or command.text).split())
        if code not in (0, FAILED, INCOMPLETE):
            round.problems.append(f"it ended with {code}: {told[-300:]}")
        if code and not re.search(DENIED, told, re.IGNORECASE):
            round.problems.append(f"the folder was unwritable, and the reason is “{told[-300:]}”")
    if record and record.manifest.status == "running" and code:
        round.problems.append(
            f"the record says that the run goes on, and it has ended with {code}: {command.text[-200:]}"
        )
    if record:
        round.reported(record)
    round.commits(work, record, CUT_S)
    round.next("run", round.tool.scenario(**work.changes | {"measure": "1s"}, reset="continue"))
    round.commits(work, round.record())
    round.left()


def clock(round: Round) -> None:
    """Set the clock of the driver or of the server, an hour or a second forward or back, while a run is measured."""
    if why := Clock.missing():
        raise Skipped(why)
    seconds, wrong = 14, Clock(round.folder)
    side, by_s = round.rng.choice(["driver", "server"]), round.rng.choice([3600.0, -3600.0, 1.0, -1.0, 1.6, -1.6])
    with a_server(round, environment=wrong.environment if side == "server" else None) as (server, work):
        if side == "driver":
            round.tool.environment |= wrong.environment
        scenario = round.tool.scenario(**work.changes | {"measure": f"{seconds}s"}, reset="continue")
        command = round.tool.start_anew("run", scenario)
        round.measuring(command)
        time.sleep(5.5 + round.rng.random())
        wrong.set(by_s)
        round.did.append(f"the clock of the {side} set by {by_s:+g} s")
        code = round.ended(command)
        record = round.record()
        if code or record is None or record.incomplete_because:
            round.problems.append(f"the run ended with {code}: {command.text.strip()[-300:]}")
            return
        found = round.reported(record)
        [step] = found["runs"][0]["steps"]
        round.found(checks.figures(step, checks.Counts.of(record), seconds))
        if side == "server" and abs(by_s) > 1 and "clock_jumped" not in [one["kind"] for one in step["invalid"]]:
            round.problems.append(f"the server's clock jumped by {by_s} s, and the step is not marked")
        look(round, server, record)
        round.next("run", round.tool.scenario(**work.changes | {"measure": "1s"}, reset="continue"))
        look(round, server, round.record())
    round.left()


@contextmanager
def _small_disk(round: Round, place: Path, size: str) -> Iterator[None]:
    """Have what lies in a folder lie on a small file system of its own: ext4 on a loop device, which has direct I/O as
    a disk has."""
    if not round.isolated:
        raise Skipped("a small disk needs root and `unshare --mount`")
    if not shutil.which("mkfs.ext4"):
        raise Skipped("there is no mkfs.ext4")
    image = round.folder / "disk"
    with image.open("wb") as file:
        file.truncate(int(size[:-1]) << 20)
    subprocess.run(["mkfs.ext4", "-q", "-m", "0", "-O", "^has_journal", image], check=True)
    aside = round.folder / "aside"
    aside.mkdir()
    place.mkdir(exist_ok=True, parents=True)
    subprocess.run(["mount", "-o", "loop", image, aside], check=True)
    for path in place.iterdir():
        copied(path, aside / path.name)
    subprocess.run(["mount", "--move", aside, place], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", place], check=True)


def _fill(filler: Path, leave: int) -> None:
    """Write until the disk is full, and give back so many bytes."""
    with suppress(OSError), filler.open("wb", buffering=0) as file:
        for size in (1 << 20, 1 << 12, 1):
            with suppress(OSError):
                while True:
                    file.write(bytes(size))
    if leave:
        os.truncate(filler, max(0, filler.stat().st_size - leave))


def _left_but_its_place(round: Round) -> None:
    """Note what is left, without what a file system has of its own."""
    with suppress(OSError):
        (Path(os.environ["TMPDIR"]) / "lost+found").rmdir()
    round.left()


@contextmanager
def _unwritable_for_us(round: Round) -> Iterator:
    """Yield a function that makes a folder unwritable for us; root needs more than a mode for that."""
    refused: list[Path] = []
    if os.getuid() == 0 and subprocess.run(["chattr", "+i", round.folder], capture_output=True).returncode:
        raise Skipped("root writes to every folder here: there is no chattr, or its file system takes none")
    if os.getuid() == 0:
        subprocess.run(["chattr", "-i", round.folder], check=True)

    def refuse(folder: Path) -> None:
        refused.append(folder)
        _set(folder, False)

    try:
        yield refuse
    finally:
        for folder in refused:
            _set(folder, True)


@contextmanager
def _without_drafts(round: Round) -> Iterator[None]:
    """Remove at the end the drafts of records whose folder was unwritable: nobody could."""
    yield
    for draft in round.tool.runs.glob("*/*/manifest.json.*.new"):
        draft.unlink()


def _set(folder: Path, writable: bool) -> None:
    if os.getuid() == 0:
        subprocess.run(["chattr", "-i" if writable else "+i", folder], check=True)
    else:
        folder.chmod(0o700 if writable else 0o500)
