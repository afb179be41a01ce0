"""The view of an experiment while it goes on: which run, which phase, how long yet, and the lines of its runs."""

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from stallmark.errors import StallmarkError
from stallmark.experiment.course import order_of, refuse_run, scenario_of, with_records
from stallmark.experiment.estimate import Estimate
from stallmark.experiment.progress import Doing, Show
from stallmark.experiment.status import State, Status, estimate_for, status_of
from stallmark.live.followed import FollowedRun
from stallmark.record.manifest import FILE
from stallmark.record.reader import Record, find_records
from stallmark.scenarios.model import AnyScenario
from stallmark.scenarios.variant import PlannedRun


@dataclass(frozen=True)
class Seen:
    """An experiment at one moment. `runs` are those begun, by number; `present` is the number of the one under way or
    being prepared, None before the first and after the last. `doing` is known to the process that runs it alone."""

    folder: Path
    scenario: AnyScenario
    order: Sequence[PlannedRun]
    status: Status
    runs: dict[int, FollowedRun]
    present: int | None
    doing: Doing | None

    @property
    def running(self) -> FollowedRun | None:
        """Return the run whose record is being written."""
        run = self.runs.get(self.present or 0)
        return run if run and run.record.manifest.status == "running" else None

    @property
    def final(self) -> bool:
        """Tell whether nothing changes any more, and all runs were read to their ends."""
        over = self.status.state in (State.COMPLETE, State.ENDED)
        return over and all(run.whole for run in self.runs.values())

    @property
    def phase(self) -> str:
        """Return the phase in the words of `Phase`, or of the status where only records are known."""
        if self.status.state in (State.COMPLETE, State.ENDED, State.SILENT):
            return self.status.state
        if self.doing:
            return self.doing.phase
        return self.status.now.phase if self.status.now else self.status.state


class View:
    """The view of one experiment's folder; `look` reads what was added since. With `show` of the process that runs it,
    the phases are known of which there is no record."""

    def __init__(self, folder: Path, scenario: AnyScenario | None = None, show: Show | None = None):
        """Without a scenario it is that of the records; raise StallmarkError where there is none."""
        if scenario is None:
            refuse_run(folder)
            scenario = scenario_of(folder, find_records(with_records(folder)[:1] or [folder])[-1].manifest)
        self.folder, self.scenario, self.runs_here = folder, scenario, show is not None
        self._show = show
        self._expected: Estimate | None = None
        self._records: dict[Path, tuple[int, Record]] = {}
        self._runs: dict[int, FollowedRun] = {}
        self._ended: tuple[State, str] | None = None
        self._seen: Seen | None = None
        self._looked = 0.0
        self._looking = threading.Lock()

    def end(self, state: State, because: str) -> None:
        """Note that no run follows any more."""
        self._ended = state, because

    def look(self, fresh_s: float = 0.0) -> Seen:
        """Return the experiment as it is now, or was at most `fresh_s` ago; as it was, while files are
        being replaced."""
        with self._looking:
            if self._seen and time.monotonic() - self._looked < fresh_s:
                return self._seen
            try:
                self._seen, self._looked = self._look(), time.monotonic()
            except (OSError, StallmarkError):
                if self._seen is None:
                    raise
            return self._seen

    def _look(self) -> Seen:
        records = self._read()
        runs = {record.manifest.sequence or 1: record for record in records}
        self._runs = {number: self._followed(number, record) for number, record in runs.items()}
        for number in self._due(runs):
            self._runs[number].follow(runs[number])
        status = self._status(records)
        doing = self._show.doing if self._show and not self._ended else None
        running = next((number for number, record in runs.items() if record.manifest.status == "running"), None)
        present = None if self._ended else running or (doing.run if doing else None)
        order = order_of(self.scenario, [record.manifest for record in records])
        return Seen(self.folder, self.scenario, order, status, dict(self._runs), present, doing)

    def _followed(self, number: int, record: Record) -> FollowedRun:
        known = self._runs.get(number)
        made_anew = known is not None and known.whole and _goes_on(record)  # after one that was cut, on resuming
        return FollowedRun(record) if known is None or made_anew else known

    def _read(self) -> list[Record]:
        """Return the records there are, in order; each is read again only when its manifest has changed."""
        known = {}
        for path in self.folder.glob(f"*/{FILE}"):
            changed = path.stat().st_mtime_ns
            before = self._records.get(path.parent)
            known[path.parent] = before if before and before[0] == changed else (changed, Record(path.parent))
        self._records = known
        return sorted((record for _, record in known.values()), key=lambda record: record.manifest.sequence or 1)

    def _due(self, runs: dict[int, Record]) -> list[int]:
        """Return the runs to follow now: those that go on, and of those that ended one at a time, the last first: to
        read a long one takes a second."""
        ended = [number for number, run in self._runs.items() if not run.whole and not _goes_on(runs[number])]
        return [number for number in runs if _goes_on(runs[number])] + sorted(ended)[-1:]

    def _status(self, records: Sequence[Record]) -> Status:
        if records:
            self._expected = self._expected or estimate_for(self.scenario, self.folder.parent, records[0].manifest)
            found = status_of(self.folder, self.scenario, self._expected, records)
        else:
            left_s = self._show.left_s if self._show else None
            planned = len(self.scenario.run_order())
            found = Status(self.folder, self.scenario.title or self.scenario.name, "", planned, 0,
                           State.BETWEEN, left_s=left_s)  # fmt: skip
        if self._ended:
            state, because = self._ended
            return replace(found, state=state, because=because or None, left_s=None)
        if self.runs_here:  # whatever its last record says, this process is at work
            return replace(found, state=State.RUNNING, because=None)
        return found


def _goes_on(record: Record) -> bool:
    return record.manifest.status == "running"
