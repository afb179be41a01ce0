"""Try on a server all that Stallmark does, in a few minutes, and say what worked: to be pasted into an issue."""

import platform
import re
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import humanize
import pyarrow.compute as pc
import sqlalchemy as sa
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy.schema import DropSchema

import stallmark
from stallmark.driver import machine
from stallmark.driver.analysis import gates, summarise
from stallmark.driver.engines.base import Engine
from stallmark.driver.engines.errors import ErrorClass, StallmarkError
from stallmark.driver.engines.mssql.engine import MssqlEngine
from stallmark.driver.record import Record, find_records
from stallmark.driver.report import write_report
from stallmark.loaders import ledger, load
from stallmark.scenarios.model import Scenario, WorkloadChoice
from stallmark.scenarios.opening import counted
from stallmark.scenarios.runner import Runner
from stallmark.scenarios.selftest_alone import Alone
from stallmark.scenarios.selftest_check import (
    BROKEN,
    FAILED,
    INCOMPLETE,
    Check,
    Off,
    Wrong,
    attempt,
)
from stallmark.scenarios.show import Show
from stallmark.scenarios.stopping import later
from stallmark.scenarios.target import Target
from stallmark.schema.deploy import connected
from stallmark.schema.ledger import METADATA as OWN_TABLES
from stallmark.transactions import checks, find_workload
from stallmark.transactions.brokerage.floor import Floor
from stallmark.transactions.brokerage.market import OTHER_SHARES, Report
from stallmark.transactions.brokerage.market_feed import MarketFeed
from stallmark.transactions.workload import Outcome, Workload

# A seed that nobody else takes: by it a database is known as a selftest's, which may be removed.
SEED = 7_357_437
BANK = WorkloadChoice(name="bank", scale={"branches": 1}, seed=SEED)
BROKERAGE = WorkloadChoice(name="brokerage", scale={"customers": 1_000, "days": 0.02}, seed=SEED)
# One after the other in the same database. What is the server's own matter is tried on the first, the smaller one.
CHOICES = (BANK, BROKERAGE)
USERS = 4
ROUNDS = 24  # of each transaction alone: some branches are rare, and maintenance goes through twelve tables

_BANNER = {"mssql": "SELECT @@VERSION", "postgresql": "SELECT version()"}
_LOGIN = {
    "mssql": "SELECT CAST(ORIGINAL_LOGIN() AS nvarchar(128)) AS login",
    "postgresql": "SELECT session_user",
}
_PROCEDURES = "SELECT name FROM sys.procedures WHERE schema_id = SCHEMA_ID(?)"


@dataclass(frozen=True)
class Selftest:
    """`facts` are what decides a result; neither they nor the checks name a host, a user or a folder."""

    facts: Mapping[str, str]
    checks: list[Check]
    record: Path | None

    @property
    def exit_code(self) -> int:
        """The gravest: data that is wrong, before what failed, before a run that is not whole."""
        return min((check.exit_code for check in self.checks if check.exit_code), default=0)


@dataclass
class Bench:
    """What the checks work on. `alone` has what came of each transaction by itself; `record` is there once users were
    driven."""

    engine: Engine
    choice: WorkloadChoice
    runs: Path
    show: Show
    seconds: float
    may_cap_memory: bool
    alone: Alone | None = None
    record: Record | None = None

    @property
    def workload(self) -> Workload:
        return find_workload(self.choice.name)


def selftest(
    target: Target, runs: Path, show: Show, *, seconds: float, keep: bool, may_cap_memory: bool
) -> Selftest:
    """Run every check, for each workload. The database must exist and be empty, or be what an earlier selftest left.
    Users are driven for `seconds` on the last workload, and for less on those before. The memory of a server that
    others may use is capped only if it `may` be.

    Afterwards everything but the run record is removed, unless it is to be kept; also after Ctrl-C. Raises
    StallmarkError when there is no connection, or the database holds anything else.
    """
    with target.engine(BROKERAGE) as engine:
        _refuse_what_is_not_ours(engine)
        [(login,)] = engine.query(_LOGIN[engine.dialect])
        words = _Discretion(target, engine, login)
        shorter = [max(1, seconds // 3)] * (len(CHOICES) - 1)
        benches = [
            Bench(engine, choice, runs, show, each, may_cap_memory)
            for choice, each in zip(CHOICES, [*shorter, seconds], strict=True)
        ]
        try:
            facts = _facts(engine)
            found = [
                replace(check, what=f"{bench.choice.name}: {check.what}")
                for bench in benches
                for check in _checks(bench)
            ]
        except BaseException:
            if not keep:
                with later():
                    show.say(_remove(engine, target).said)
            raise
        if not keep:
            with later():
                found.append(_remove(engine, target))
    checked = [replace(check, said=words(check.said)) for check in found]
    records = [bench.record.folder for bench in benches if bench.record]
    return Selftest(facts, checked, records[-1] if records else None)


def _refuse_what_is_not_ours(engine: Engine) -> None:
    others = [_not_left_by_us(engine, choice) for choice in CHOICES]
    if all(others):
        raise StallmarkError(
            f"The database is not empty ({others[0]}): a selftest builds its own, and removes it again, so name an "
            "empty database."
        )


def _not_left_by_us(engine: Engine, choice: WorkloadChoice) -> str | None:
    """What there is beside a selftest's database of that choice; None where there is that alone, or nothing."""
    workload = find_workload(choice.name)
    if other := load.of_others(engine, workload):
        return other
    try:
        load.recognise(engine, workload, choice.scale, choice.seed)
    except StallmarkError as error:
        return str(error).rstrip(".")
    return None


def _facts(engine: Engine) -> dict[str, str]:
    [(banner,)] = engine.query(_BANNER[engine.dialect])
    here = machine.facts()
    memory = humanize.naturalsize(here["memory_bytes"], binary=True)
    return {
        "stallmark": stallmark.__version__,
        "server": " ".join(banner.split()),
        "version": str(engine.identity()),
        "edition": str(getattr(engine, "edition", "")) or "-",
        "driver": str(getattr(engine, "driver", "libpq")),
        "driven from": f"{here['distribution']}, {here['system']}, {platform.machine()}, Python {here['python']}, "
        f"{here['cores']} cores, {memory}",
    }


def _checks(bench: Bench) -> Iterator[Check]:
    loading = attempt("load", lambda: _load(bench))
    yield loading
    if loading.state == "failed":
        return
    yield attempt("consistency as loaded", lambda: _consistent(bench))
    if bench.choice is CHOICES[0]:
        yield attempt("copy and restore", lambda: _restore(bench))
        yield attempt("memory cap, and given back", lambda: _cap_memory(bench))
    yield attempt("transactions alone", lambda: _execute_alone(bench))
    if bench.alone:
        yield from bench.alone.checks()
    driving = attempt(f"{USERS} users", lambda: _drive(bench))
    yield driving
    if bench.record is None:
        return
    yield from _transactions(bench.record, bench.workload)
    yield from _collectors(bench.record)
    if bench.workload.counted:
        yield attempt("counted as committed", lambda: _counted(bench))
    yield attempt("consistency after the load", lambda: _consistent(bench))
    yield attempt("report", lambda: _report(bench))


def _load(bench: Bench) -> str:
    choice = bench.choice
    _drop(bench.engine)  # the workload before, or what an earlier selftest left
    with bench.show.bar(f"Loading {choice}", None):
        built = load.build(bench.engine, bench.workload, choice.scale, choice.seed, workers=2)
    return f"{built.rows:,} rows in {built.seconds:.1f} s, with keys, procedures and statistics"


def _consistent(bench: Bench) -> str:
    """And whether all keys are there; without what holds only as loaded, once transactions have run."""
    entry = ledger.read(bench.engine)
    assert entry
    found = checks.run(bench.engine, bench.workload, bench.choice.scale, driven=entry.driven)
    findings = [each for each in found if each.holds is not None]
    keys = checks.keys(bench.engine, bench.workload)
    if broken := [
        f"{each.name}: {each.offending:,} {each.counted} ({each.detail})"
        for each in (*findings, keys)
        if not each.holds
    ]:
        raise Wrong("; ".join(broken), BROKEN)
    return f"all {len(findings)} conditions hold, and all keys are there"


def _restore(bench: Bench) -> str:
    engine = bench.engine
    if why := engine.cannot("restore"):
        raise Off(why)
    before = ledger.read(engine)
    assert before
    with bench.show.bar("Keeping a copy and restoring it", None), engine.hold():
        engine.keep_for_restore(before.label)
        if engine.kept_for_restore() != before.label:
            raise Wrong("the copy was made and is not known as a copy of this database")
        ledger.note_driven(engine)
        engine.restore()
        after = ledger.read(engine)
        engine.drop_kept()
    if after != before:
        raise Wrong("what came back is not what was kept")
    left = (
        "" if engine.kept_for_restore() is None else "; the backup file stays in the server's backup folder"
    )
    return f"kept, changed, and brought back{left}"


def _cap_memory(bench: Bench) -> str:
    """A tenth less than it holds: enough to see it come, and no more than that is taken from others."""
    engine = bench.engine
    if why := engine.cannot("cap_memory"):
        raise Off(why)
    if not engine.is_local and not bench.may_cap_memory:
        raise Off(
            "left out: it lowers the memory of the whole server by a tenth for a moment, which also empties its plan "
            "cache on many versions; add --cap-memory if nobody else needs it"
        )
    had, before = engine.buffer_pool_bytes(), engine.settings()
    wanted = max(engine.smallest_pool_bytes, (had or 0) * 9 // 10) // 1024**2 * 1024**2
    with bench.show.bar("Capping the memory", None), engine.hold():
        reached = engine.cap_memory(wanted)
        if engine.is_local and had:
            engine.cap_memory(had)  # a server of our own has nobody's settings to give back
    told = _given_back(before, engine.settings())
    return f"asked {wanted // 1024**2:,} MiB, reached {reached // 1024**2:,} MiB, {told}"


def _given_back(before: Mapping[str, str], after: Mapping[str, str]) -> str:
    """Only what a cap changes is compared, as far as the server tells it: other settings change by themselves."""
    for name in ("max server memory (MB)", "shared_buffers"):
        if name in before:
            if after.get(name) != before[name]:
                raise Wrong(
                    f"not given back: {name} was {before[name]}, and is {after.get(name, 'not told')}"
                )
            return "then as before"
    return "and the server does not tell whether it is as before"


def _execute_alone(bench: Bench) -> str:
    """What a short run may not reach, and what fails in it because of others."""
    workload = bench.workload
    ledger.note_driven(bench.engine)
    before = counted(bench.engine, workload)
    alone = bench.alone = Alone(bench.engine, bench.choice)
    try:
        with bench.show.bar("Executing each transaction alone", None):
            for kind in [*workload.deck, *workload.timers]:
                for _ in range(ROUNDS):
                    alone.execute(kind)
            # Limit orders first, while none has come to its price by itself.
            said = [_bring_to_their_limits(bench.engine, alone)] if bench.choice.name == "brokerage" else []
            alone.answer()
            # The opening of the run is to find something: what these give rise to does not come any more.
            for kind in {source for source, _ in workload.followers.values()}:
                for _ in range(ROUNDS):
                    alone.execute(kind)
    finally:
        alone.close()
    numbers = {
        name: {"before": before[name], "after": after}
        for name, after in counted(bench.engine, workload).items()
    }
    if numbers:
        said.append(
            _as_committed(numbers, alone.ended(Outcome.COMMITTED), alone.ended(ErrorClass.UNKNOWN_OUTCOME))
        )
    return "; ".join([f"each {ROUNDS} times", *said])


def _bring_to_their_limits(engine: Engine, alone: Alone) -> str:
    """The tape reports that the securities of all limit orders have come to the limits; these are executed then."""
    floor: Floor = alone.shared
    waiting = "SELECT tr_tt_id, tr_s_symb, tr_bid_price FROM brokerage.trade_request ORDER BY tr_t_id"
    requests = engine.query(waiting)
    if not requests:
        raise Wrong("no limit order waits for its price")
    securities = {symbol: security for security, symbol in enumerate(floor.symbols)}
    tape = tuple(
        Report(securities[symbol], round(limit * 100), OTHER_SHARES) for _, symbol, limit in requests
    )
    alone.execute(MarketFeed, tape)
    alone.answer()
    if left := engine.query(waiting):
        raise Wrong(f"{len(left)} of {len(requests)} limit orders still wait, though their prices have come")
    types = Counter(kind for kind, _, _ in requests)
    return "limit orders came to their prices: " + ", ".join(
        f"{types[each]} {each}" for each in sorted(types)
    )


def _as_committed(
    numbers: Mapping[str, Mapping[str, int | None]], committed: Mapping[str, int], unknown: Mapping[str, int]
) -> str:
    gate = gates.completed(numbers, committed, unknown, {})
    assert gate
    if gate.passed is None:
        raise Off(gate.figure)  # a run that ended early
    if not gate.passed:
        raise Wrong(gate.sentence, BROKEN)
    return gate.figure


def _counted(bench: Bench) -> str:
    assert bench.record
    committed, unknown = Counter[str](), Counter[str]()
    for row in bench.record.table("transactions").to_pylist():
        committed[row["transaction"]] += row["committed"]
    for row in bench.record.table("errors").to_pylist():
        if row["error_class"] == ErrorClass.UNKNOWN_OUTCOME:
            unknown[row["transaction"]] += row["attempts"]
    return _as_committed(bench.record.manifest["workload"]["counted"], committed, unknown)


def _drive(bench: Bench) -> str:
    scenario = Scenario.model_validate(
        {
            "name": f"selftest-{bench.choice.name}", "title": "Selftest",
            "answers": "Does everything work here?", "needs": "", "takes": "",
            "workload": bench.choice, "users": USERS, "warm_up": "1s", "measure": f"{bench.seconds:g}s",
            "reset": "continue", "variants": [{"name": "selftest"}],
        }
    )  # fmt: skip
    runner = Runner(scenario, bench.engine, bench.runs, bench.show)
    try:
        finished = runner.run()
    finally:
        if runner.folder.exists():
            bench.record = find_records([runner.folder])[0]
    if finished.incomplete_because:
        raise Wrong(finished.incomplete_because, INCOMPLETE)
    return f"{bench.seconds:.0f} s measured"


def _transactions(record: Record, workload: Any) -> Iterator[Check]:
    done, errors = record.table("transactions"), record.table("errors")
    for transaction in workload.transactions:
        name = transaction.name
        if transaction is workload.opening:
            opened = record.manifest["workload"]["opening"]["done"]
            said = ", ".join(f"{count:,} {what}" for what, count in opened.items())
            yield Check(f"transaction {name}", "works", said or "executed before the run")
            continue
        mine = done.filter(pc.equal(done["transaction"], name))
        committed, failed = (pc.sum(mine[column]).as_py() or 0 for column in ("committed", "failed"))
        words = sorted(
            {f"{kind} ({code}): {message}" for kind, code, message in zip(
                *(errors.filter(pc.equal(errors["transaction"], name))[column].to_pylist()
                  for column in ("error_class", "code", "message")), strict=True)}
        )  # fmt: skip
        if not mine.num_rows and not words and transaction not in workload.deck:
            yield Check(f"transaction {name}", "off", "none was due in so short a time")
            continue
        said = "; ".join([f"{committed:,} committed, {failed:,} failed", *words[:3]])
        ok = committed and not failed
        yield Check(f"transaction {name}", "works" if ok else "failed", said, 0 if ok else FAILED)


def _collectors(record: Record) -> Iterator[Check]:
    for name, known in record.manifest["collectors"].items():
        what, rows = f"collector {name}", record.table(name).num_rows
        outages = [
            note
            for note in record.manifest["notes"]
            if note.startswith(f"{known['title']}: nothing measured")
        ]
        if known["unavailable"]:
            yield Check(what, "off", known["unavailable"])
        elif outages:
            yield Check(what, "failed", " ".join(outages), FAILED)
        elif not rows:
            yield Check(what, "off", "no rows: nothing of its kind was seen")
        else:
            yield Check(what, "works", " ".join([f"{rows:,} rows.", known["limited"] or ""]).strip())


def _report(bench: Bench) -> str:
    assert bench.record
    target = bench.record.folder.parent / "report.html"
    summary = summarise([bench.record])
    write_report(summary, target)
    summary.as_json()
    return f"{humanize.naturalsize(target.stat().st_size)}"


def _remove(engine: Engine, target: Target) -> Check:
    remove = (lambda: _drop(engine)) if target.url else (lambda: _delete(target, engine))
    return attempt("removed what it made", remove)


def _drop(engine: Engine) -> str:
    """Tables, procedures and schemas; the database itself was there before us."""
    with connected(engine) as connection:
        schemas = set(sa.inspect(connection).get_schema_names())
        for metadata in (*(find_workload(choice.name).metadata for choice in CHOICES), OWN_TABLES):
            schema = str(metadata.schema)
            if schema not in schemas:
                continue
            metadata.drop_all(connection)
            if engine.dialect == "mssql":  # has no DROP SCHEMA … CASCADE
                for (name,) in engine.query(_PROCEDURES, [schema]):
                    connection.execute(sa.text(f"DROP PROCEDURE [{schema}].[{name}]"))
                connection.execute(DropSchema(schema))
            else:
                connection.execute(DropSchema(schema, cascade=True))
    return "the database is empty again"


def _delete(target: Target, engine: Engine) -> str:
    engine.close()
    shutil.rmtree(target.folder(BROKERAGE))
    if target.wal_dir:
        for path in target.wal_dir.iterdir():
            if path.name != "lost+found":
                shutil.rmtree(path) if path.is_dir() else path.unlink()
    return "the embedded database is gone"


class _Discretion:
    """Takes out of a sentence what names the server, its user or this machine: a selftest is made to be published.

    A user's name may be a word of the language, so it goes where it is quoted, as 'x', "x" or [x]; DOMAIN\\x is none,
    and goes everywhere, as every other name of that domain does.
    """

    def __init__(self, target: Target, engine: Engine, login: str):
        """`login` as the server knows it: the URL may leave it to Windows or Kerberos."""
        if isinstance(engine, MssqlEngine):
            address = engine.address
            host, user, password = address.host, address.user, address.password
        else:
            known = conninfo_to_dict(target.url or "")
            host, user, password = (str(known.get(key) or "") for key in ("host", "user", "password"))
        names = {
            platform.node(): "<this machine>",
            str(Path.home()): "~",
            host: "<host>",
            password: "<password>",
        }
        patterns = {
            rf"(?<!\w){re.escape(name)}(?!\w)": names[name] for name in sorted(filter(None, names), key=len)
        }
        for name in filter(None, (user, login)):
            patterns[rf"""['"\[]{re.escape(name)}['"\]]"""] = "<user>"
            domain, separator, _ = name.partition("\\")
            if separator:
                patterns[rf"(?<!\w){re.escape(domain)}\\[\w.$-]+"] = "<user>"
        self._patterns = [(re.compile(pattern, re.IGNORECASE), said) for pattern, said in patterns.items()]

    def __call__(self, said: str) -> str:
        for pattern, placeholder in self._patterns:
            said = pattern.sub(placeholder, said)
        return said
