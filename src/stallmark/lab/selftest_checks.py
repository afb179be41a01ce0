"""Try everything that Stallmark does on a server, in a few minutes, with a result that can be pasted into an issue:
what is tried on a selftest's databases and on the records of its runs, and what came of each.
"""

import platform
import shutil
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

import stallmark
from stallmark import format
from stallmark.analysis.experiment import ExperimentSummary, summarise
from stallmark.analysis.read.transactions import CONTENTION
from stallmark.analysis.read.waits import read_deadlocks
from stallmark.analysis.run import RunKind, run_notes
from stallmark.analysis.validity_gates import GateKind
from stallmark.cli.exit_codes import CONDITION_BROKEN, FAILED, INCOMPLETE
from stallmark.engines.abilities import Availability
from stallmark.engines.base import Engine
from stallmark.errors import CallFailed, ServerLost, StallmarkError, as_reason, in_words
from stallmark.experiment.others import things_in
from stallmark.experiment.progress import Show
from stallmark.experiment.runner import Runner
from stallmark.experiment.target import Target
from stallmark.loaders import load
from stallmark.record import devices
from stallmark.record.reader import Record, find_records
from stallmark.redact import Redactor
from stallmark.report.experiment import experiment_document
from stallmark.report.renderers import write_pages
from stallmark.report.text import sentence as finding_sentence
from stallmark.report.text.validity import figure
from stallmark.scenarios.model import Scenario, WorkloadChoice
from stallmark.schema.deploy import drop_schemas, in_short, telling_blockers
from stallmark.stopping import later
from stallmark.transactions import find_workload

# One thing that a selftest tries, and what came of it.


@dataclass(frozen=True)
class SelftestResult:
    """The result of one check."""

    subject: str
    state: Literal["works", "off", "failed"]
    result: str
    exit_code: int = 0

    def in_json(self) -> dict[str, str | int]:
        return {"what": self.subject, "state": self.state, "said": self.result, "exit_code": self.exit_code}


class Wrong(Exception):
    """Something is not as it must be; carries its exit code."""

    def __init__(self, text: str, exit_code: int = FAILED):
        super().__init__(text)
        self.exit_code = exit_code


def attempt(subject: str, check: Callable[[], str]) -> SelftestResult:
    try:
        return SelftestResult(subject, "works", check())
    except Wrong as wrong:
        return SelftestResult(subject, "failed", sentence(wrong), wrong.exit_code)
    except ServerLost as lost:
        return SelftestResult(subject, "failed", sentence(lost), INCOMPLETE)
    except (StallmarkError, CallFailed, OSError) as error:
        return SelftestResult(subject, "failed", sentence(error), FAILED)
    except Exception as error:  # whatever a driver raises on a server nobody has tried: it belongs into the issue
        frame = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(frame.filename).name}:{frame.lineno}"
        return SelftestResult(subject, "failed", f"{type(error).__name__} in {where}: {sentence(error)}", FAILED)


def sentence(error: Exception) -> str:
    return " ".join(in_words(error).split()) or type(error).__name__


# The databases of a selftest: which they are, by what they are known as its own, and how they are removed.

# A seed that nobody else takes: by it a database is known as a selftest's, which may be removed.
SEED = 7_357_437
BANK = WorkloadChoice(name="bank", scale={"branches": 1}, seed=SEED)
BROKERAGE = WorkloadChoice(name="brokerage", scale={"customers": 1_000, "days": 0.02}, seed=SEED)
# One after the other in the same database. What is the server's own matter is tried on the first, the smaller one.
CHOICES = (BANK, BROKERAGE)


def refuse_what_is_not_ours(engine: Engine) -> None:
    """Raise StallmarkError unless the database holds a selftest's data alone, or nothing."""
    # Objects in any schema count, because a selftest drops what it finds.
    others = things_in(engine)
    reasons = [in_short(others)] if others else [_other_build(engine, choice) for choice in CHOICES]
    if all(reasons):
        raise StallmarkError(
            f"The database is not empty ({reasons[0]}): a selftest builds and removes its own data, so name an "
            "empty database."
        )


def refuse_sessions_of_others(engine: Engine) -> None:
    if sessions := engine.other_sessions():
        raise StallmarkError(
            f"The database has other sessions ({in_short(list(map(str, sessions)))}): a selftest drives load there, so "
            "name an unused database, or add --shared."
        )


def _other_build(engine: Engine, choice: WorkloadChoice) -> str | None:
    """Return the difference of Stallmark's data in the database from a selftest's, or None."""
    try:
        load.recognise(engine, find_workload(choice.name), choice.scale, choice.seed)
    except StallmarkError as error:
        return as_reason(error)
    return None


def remove(engine: Engine, target: Target, show: Show) -> SelftestResult:
    remove = (lambda: drop(engine, show)) if target.url else (lambda: _delete(target, engine))
    return attempt("removed what it made", remove)


def drop(engine: Engine, show: Show) -> str:
    """Drop what selftests build. Raise RunLockTaken if another run, or selftest, is under way."""
    with engine.hold(), telling_blockers(engine, show.say):
        drop_schemas(engine, [find_workload(choice.name) for choice in CHOICES])
    return "the database is empty again"


def _delete(target: Target, engine: Engine) -> str:
    engine.close()
    shutil.rmtree(target.folder(BROKERAGE))
    if target.wal_dir:
        for path in target.wal_dir.iterdir():
            if path.name != "lost+found":
                shutil.rmtree(path) if path.is_dir() else path.unlink()
    return "the embedded database is gone"


# The checks that the records of a selftest's runs allow: of each transaction and collector, and of the data.

CONSISTENCY = "consistency after the load"
_BY_CHANCE = 0.1
"""Largest number of transactions given up because of others, per committed one: users meet by chance, and nothing is
tried again at the end of a run. In a short run one may be more than this."""


def transactions(record: Record, workload: Any) -> Iterator[SelftestResult]:
    done, errors = record.table("transactions"), record.table("errors")
    for transaction in workload.transactions:
        name = transaction.name
        if transaction is workload.users.opening:
            opening = record.manifest.workload.opening
            text = ", ".join(f"{count:,} {noun}" for noun, count in (opening.done if opening else {}).items())
            yield SelftestResult(f"transaction {name}", "works", text or "executed before the run")
            continue
        mine = done.filter(pc.equal(done["transaction"], name))
        committed, failed = (pc.sum(mine[column]).as_py() or 0 for column in ("committed", "failed"))
        its_errors = errors.filter(pc.equal(errors["transaction"], name)).to_pylist()
        words = sorted({"{error_class} ({code}): {message}".format_map(error) for error in its_errors})
        if not mine.num_rows and not words and transaction not in workload.users.deck:
            yield SelftestResult(f"transaction {name}", "off", "none was due in so short a time")
            continue
        if not mine.num_rows and not words and _ended_count(done, workload) < _to_reach_all(record):
            yield SelftestResult(
                f"transaction {name}", "off", "not reached: the users were too slow in so short a time"
            )
            continue
        text = "; ".join([f"{committed:,} committed, {failed:,} failed", *words[:3]])
        lost_to_others = sum(error["given_up"] for error in its_errors if error["error_class"] in CONTENTION)
        ok = committed and failed <= min(lost_to_others, max(1, _BY_CHANCE * committed))
        yield SelftestResult(f"transaction {name}", "works" if ok else "failed", text, 0 if ok else FAILED)


def _ended_count(done: pa.Table, workload: Any) -> int:
    """Return the number of ended transactions, counting only the kinds that users start."""
    of_users = done.filter(pc.is_in(done["transaction"], pa.array([kind.name for kind in workload.users.deck])))
    return sum(pc.sum(of_users[column]).as_py() or 0 for column in ("committed", "rolled_back", "failed"))


def _to_reach_all(record: Record) -> float:
    """Return the number of transactions after which each kind has come up.

    Each executor deals its own deck, which contains every kind: with 4 users on up to 4 executors and a deck of 100
    cards, 400 transactions are enough.
    """
    cards = sum(
        transaction.cards for transaction in record.manifest.workload.transactions if transaction.source == "users"
    )
    return cards * max((step.users for step in record.manifest.steps), default=1)


def collectors(record: Record) -> Iterator[SelftestResult]:
    # Grouped by reason: a server without the views lacks many collectors for the same reason.
    off: dict[str, list[str]] = {}
    for name, known in record.manifest.collectors.items():
        subject, rows = f"collector {name}", record.table(name).num_rows
        if known.unavailable:
            off.setdefault(known.unavailable, []).append(name)
        elif known.outages:
            text = " ".join(
                finding_sentence(note)
                for note in run_notes(record)
                if note.kind is RunKind.COLLECTOR_OUTAGE and note.facts["collector"] == known.title
            )
            yield SelftestResult(subject, "failed", text, FAILED)
        elif not rows:
            yield SelftestResult(subject, "off", "no rows: nothing of its kind was seen")
        else:
            yield SelftestResult(subject, "works", " ".join([f"{rows:,} rows.", known.limited or ""]).strip())
    for reason, names in off.items():
        yield SelftestResult(f"collector{'s' * (len(names) > 1)} {', '.join(names)}", "off", reason)


def deadlocks(record: Record) -> Iterator[SelftestResult]:
    """Yield a result for each kind of deadlock in the server's log: deadlocks are few, and show what to fix."""
    for deadlock in read_deadlocks(record):
        text = (
            f"{deadlock.victim} ({deadlock.isolation}) lost to {deadlock.others} over {deadlock.resources}; "
            f"graph {deadlock.graph}"
        )
        yield SelftestResult(f"deadlocks ({deadlock.times:,})", "works", text)


def conditions(records: Sequence[Record]) -> Iterator[SelftestResult]:
    """Yield the result for the consistency of the data after all runs."""
    seen = [condition for record in records for condition in record.manifest.conditions]
    if refused := {f"{result.name} ({result.refused})" for result in seen if result.refused}:
        yield SelftestResult(CONSISTENCY, "failed", f"the server refused: {'; '.join(sorted(refused))}", FAILED)
    elif broken := {
        f"{condition.name}: {condition.offending:,} {condition.counted} ({condition.detail})"
        for condition in seen
        if condition.holds is False
    }:
        yield SelftestResult(CONSISTENCY, "failed", "; ".join(sorted(broken)), CONDITION_BROKEN)
    elif holding := {condition.name for condition in seen if condition.holds}:
        yield SelftestResult(CONSISTENCY, "works", f"all {len(holding)} conditions hold")
    else:
        yield SelftestResult(CONSISTENCY, "off", "the runs ended before it was checked")


def commit_counts(summary: ExperimentSummary) -> Iterator[SelftestResult]:
    """Yield the comparison of the database's commits with those that users counted, for each run with both."""
    for run in summary.runs:
        for gate in (
            possible for step in run.steps for possible in step.validity.gates if possible.kind is GateKind.COMPLETED
        ):
            subject = f"counted as committed, run {run.manifest.sequence}"
            if gate.failure:
                yield SelftestResult(subject, "failed", finding_sentence(gate.failure), CONDITION_BROKEN)
            else:
                yield SelftestResult(subject, "off" if gate.passed is None else "works", figure(gate))


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
        yield from transactions(last, find_workload(self.choice.name))
        yield from collectors(last)
        yield from deadlocks(last)
        yield from conditions(self.records)
        yield from commit_counts(summarise(self.records))
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
        times = len(self.records)
        return f"{self.seconds:g} s measured" + f", {times} times" * (times > 1)

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
