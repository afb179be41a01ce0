"""Try everything that Stallmark does on a server, in a few minutes, with a result that can be pasted into an issue."""

import platform
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import stallmark
from stallmark import format
from stallmark.analysis.experiment import summarise
from stallmark.cli.exit_codes import FAILED, INCOMPLETE
from stallmark.engines.abilities import Availability
from stallmark.engines.base import Engine
from stallmark.experiment.progress import Show
from stallmark.experiment.runner import Runner
from stallmark.experiment.target import Target
from stallmark.lab.selftest import checks as of_record
from stallmark.lab.selftest.checks import (
    BROKERAGE,
    CHOICES,
    SelftestResult,
    Wrong,
    attempt,
    drop,
    refuse_sessions_of_others,
    refuse_what_is_not_ours,
    remove,
)
from stallmark.record import devices
from stallmark.record.reader import Record, find_records
from stallmark.redact import Redactor
from stallmark.report.experiment import experiment_document
from stallmark.report.renderers import write_pages
from stallmark.scenarios.model import Scenario, WorkloadChoice
from stallmark.stopping import later
from stallmark.transactions import find_workload

# The trial of one workload in a selftest: a scenario is run, and its records tell what worked.

USERS = 4
COPY, CAP = "copy and restore", "memory cap, and given back"


@dataclass
class Trial:
    """The trial of one workload."""

    engine: Engine
    choice: WorkloadChoice
    seconds: float
    whole: bool
    may_cap_memory: bool
    records: list[Record] = field(default_factory=list)

    def checks(self, runs: Path, show: Show) -> Iterator[SelftestResult]:
        wanted: dict[str, Any] = {"reset": "continue"}
        if self.whole:
            if reason := self.engine.backup.refusal():
                yield SelftestResult(COPY, "off", reason)
            else:  # the second run begins with what was kept before the first
                wanted |= {"reset": "restore", "repeats": 2}
            if reason := self.keeps_its_memory():
                yield SelftestResult(CAP, "off", reason)
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
        yield from of_record.commit_counts(summarise(self.records))
        yield attempt("report", self._report)

    def _report(self) -> str:
        document = experiment_document(summarise(self.records))
        [page] = write_pages(document, self.records[-1].folder.parent / "report.html")
        return format.size(page.stat().st_size)

    def keeps_its_memory(self) -> str | None:
        """Return the reason why its memory is not capped; None if it is. Only a server that is not there to be shared
        is.
        """
        if reason := self.engine.memory.refusal():
            return reason
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
        # Drop the previous workload, or the remains of an earlier selftest.
        drop(self.engine, show)
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


_BANNER = {"mssql": "SELECT @@VERSION", "postgresql": "SELECT version()"}
_LOGIN = {"mssql": "SELECT CAST(ORIGINAL_LOGIN() AS nvarchar(128)) AS login", "postgresql": "SELECT session_user"}


@dataclass(frozen=True)
class Selftest:
    """The result of a selftest. Neither facts nor checks contain the name of a host, a user or a folder."""

    facts: Mapping[str, str]
    checks: list[SelftestResult]
    record: Path | None

    @property
    def exit_code(self) -> int:
        """The gravest code: inconsistent data before failed checks, these before an incomplete run."""
        return min((check.exit_code for check in self.checks if check.exit_code), default=0)


def selftest(target: Target, runs: Path, show: Show, *, seconds: float, keep: bool, may_cap_memory: bool) -> Selftest:
    """Run every check for each workload. The database must exist, and be empty or the remains of an earlier selftest.
    Users are driven for `seconds` on the last workload, and for less on the earlier ones. The memory of a server that
    is not ours is capped only with `may_cap_memory`.

    Afterwards everything but the run record is removed unless `keep` is set, also after Ctrl-C. Raise StallmarkError if
    the server cannot be reached, the database contains other data, or it has other sessions and the target is not
    shared.
    """
    with replace(target, may_share=True).engine(BROKERAGE) as engine:
        refuse_what_is_not_ours(engine)  # whatever --shared allows
        if not target.may_share:
            refuse_sessions_of_others(engine)
        [(login,)] = engine.query(_LOGIN[engine.dialect])
        redact = _redactor(engine, login)
        shorter = [max(1, seconds // 3)] * (len(CHOICES) - 1)
        trials = [
            Trial(engine, choice, trial_s, choice is CHOICES[0], may_cap_memory)
            for choice, trial_s in zip(CHOICES, [*shorter, seconds], strict=True)
        ]
        try:
            facts = _facts(engine)
            results = _examine(engine) + [
                replace(check, subject=f"{trial.choice.name}: {check.subject}")
                for trial in trials
                for check in trial.checks(runs, show)
            ]
        except BaseException:
            if not keep:
                with later():
                    show.say(remove(engine, target, show).result)
            raise
        if not keep:
            with later():
                results.append(remove(engine, target, show))
    checked = [replace(check, result=redact(check.result)) for check in results]
    records = [record.folder for trial in trials for record in trial.records]
    return Selftest(facts, checked, records[-1] if records else None)


def _examine(engine: Engine) -> list[SelftestResult]:
    """Return the doctor's findings on driver, bulk copy, edition and rights: all other checks need them."""
    states: dict[Availability, Literal["works", "off", "failed"]] = {
        "ok": "works",
        "limited": "off",
        "missing": "failed",
    }
    checks: list[SelftestResult] = []

    def examine() -> str:
        for examined in engine.examine():
            checks.append(
                SelftestResult(
                    examined.subject,
                    states[examined.state],
                    examined.sentence,
                    FAILED if examined.state == "missing" else 0,
                )
            )
        return "all was told"

    whole = attempt("driver, edition and rights", examine)
    return checks if whole.state == "works" else [*checks, whole]


def _redactor(engine: Engine, user: str) -> Redactor:
    """Return a redactor; `user` as the server knows it: the URL may leave it to Windows or Kerberos."""
    names = {platform.node(): "<this machine>", str(Path.home()): "~"}
    if engine.is_local:
        return Redactor(names, [user], None)
    login = engine.login()
    return Redactor(names | {login.host: "<host>"}, [login.user, user], login.password)


def _facts(engine: Engine) -> dict[str, str]:
    [(banner,)] = engine.query(_BANNER[engine.dialect])
    here = devices.machine_facts()
    memory = format.size(here.memory_bytes or 0)
    return {
        "stallmark": stallmark.__version__,
        "server": " ".join(banner.split()),
        "version": str(engine.identity()),
        "edition": str(getattr(engine, "edition", "")) or "-",
        "driver": str(getattr(engine, "driver", "libpq")),
        "driven from": f"{here.distribution}, {here.system}, {platform.machine()}, Python {here.python}, "
        f"{here.cores} cores, {memory}",
    }
