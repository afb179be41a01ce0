"""The trial of one workload in a selftest: a scenario is run, and its records tell what worked."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stallmark import format
from stallmark.analysis.experiment import summarise
from stallmark.cli.common import INCOMPLETE
from stallmark.engines.base import Engine
from stallmark.experiment.progress import Show
from stallmark.experiment.runner import Runner
from stallmark.lab.selftest import record as of_record
from stallmark.lab.selftest.check import SelftestResult, Wrong, attempt
from stallmark.lab.selftest.database import drop
from stallmark.record.reader import Record, find_records
from stallmark.report.experiment import experiment_document
from stallmark.report.renderers import write_pages
from stallmark.scenarios.model import Scenario, WorkloadChoice
from stallmark.transactions import find_workload

USERS = 4
COPY, CAP = "copy and restore", "memory cap, and given back"


@dataclass
class Trial:
    """`whole`: the abilities of the server are tried too, as far as it has them. `records` are there after the runs."""

    engine: Engine
    choice: WorkloadChoice
    seconds: float
    whole: bool
    may_cap_memory: bool
    records: list[Record] = field(default_factory=list)

    def checks(self, runs: Path, show: Show) -> Iterator[SelftestResult]:
        wanted: dict[str, Any] = {"reset": "continue"}
        if self.whole:
            if why := self.engine.backup.refusal():
                yield SelftestResult(COPY, "off", why)
            else:  # the second run begins with what was kept before the first
                wanted |= {"reset": "restore", "repeats": 2}
            if why := self.keeps_its_memory():
                yield SelftestResult(CAP, "off", why)
            else:
                wanted |= {"buffer_pool": f"{self._smaller_pool_bytes() >> 20} MiB"}
        yield attempt(f"{USERS} users", lambda: self._run(wanted, runs, show))
        if not self.records:
            return
        last = self.records[-1]
        yield from self._abilities(wanted, last)
        yield from of_record.transactions(last, find_workload(self.choice.name))
        yield from of_record.collectors(last)
        yield from of_record.deadlocks(last)
        yield from of_record.conditions(self.records)
        yield from of_record.counted(summarise(self.records))
        yield attempt("report", self._report)

    def _report(self) -> str:
        document = experiment_document(summarise(self.records))
        [page] = write_pages(document, self.records[-1].folder.parent / "report.html")
        return format.size(page.stat().st_size)

    def keeps_its_memory(self) -> str | None:
        """Return why its memory is not capped; None if it is. Only a server that is not there to be shared is."""
        if why := self.engine.memory.refusal():
            return why
        if self.engine.is_local or self.may_cap_memory:
            return None
        return (
            "left out: it lowers the memory of the whole server by a tenth for a moment, which also empties its plan "
            "cache on many versions; add --cap-memory if nobody else needs it"
        )

    def _smaller_pool_bytes(self) -> int:
        """Return a tenth less than it holds: enough to see it come, and no more than that is taken from others."""
        memory = self.engine.memory
        return max(memory.smallest_bytes if memory else 0, (self.engine.buffer_pool_bytes() or 0) * 9 // 10)

    def _run(self, wanted: dict[str, Any], runs: Path, show: Show) -> str:
        drop(self.engine, show)  # the workload before, or what an earlier selftest left
        scenario = Scenario.model_validate(
            {
                "name": f"selftest-{self.choice.name}", "title": "Selftest", "answers": "Does everything work here?",
                "needs": "", "workload": self.choice, "users": USERS, "warm_up": "1s",
                "measure": f"{self.seconds:g}s", "variants": [{"name": "selftest"}],
            } | wanted
        )  # fmt: skip
        runner = Runner(scenario, self.engine, runs, show)
        try:
            because = runner.run().incomplete_because
        finally:
            if any(runner.folder.glob("*/manifest.json")):
                self.records = find_records([runner.folder])
            if wanted["reset"] == "restore" and self.engine.backup:
                self.engine.backup.drop()
        if because:
            raise Wrong(because, INCOMPLETE)
        return f"{self.seconds:g} s measured, {len(self.records)} times"

    def _abilities(self, wanted: dict[str, Any], last: Record) -> Iterator[SelftestResult]:
        backup, memory = self.engine.backup, last.manifest.memory
        if wanted["reset"] == "restore" and backup and last.manifest.repeat == 2:
            left = "; the backup file stays (`stallmark copies --remove` removes it)" if backup.label() else ""
            yield SelftestResult(COPY, "works", f"kept, changed, and brought back{left}")
        if "buffer_pool" in wanted and (reached := memory.reached_bytes):
            yield SelftestResult(CAP, "works", f"asked {wanted['buffer_pool']}, reached {reached >> 20:,} MiB")
