"""Try on a server all that Stallmark does, in a few minutes, and say what worked: to be pasted into an issue."""

import platform
import re
import shutil
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import humanize
import pyarrow.compute as pc
import sqlalchemy as sa
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy.schema import DropSchema

import stallmark
from stallmark.driver import machine
from stallmark.driver.analysis import summarise
from stallmark.driver.engines.base import Engine
from stallmark.driver.engines.errors import CallFailed, StallmarkError, in_words
from stallmark.driver.engines.mssql.engine import MssqlEngine
from stallmark.driver.record import Record, find_records
from stallmark.driver.report import write_report
from stallmark.loaders import ledger, load
from stallmark.scenarios.model import Scenario, WorkloadChoice
from stallmark.scenarios.runner import Runner
from stallmark.scenarios.show import Show
from stallmark.scenarios.stopping import later
from stallmark.scenarios.target import Target
from stallmark.schema.deploy import connected
from stallmark.schema.ledger import METADATA as OWN_TABLES
from stallmark.transactions import checks, find_workload

# A seed that nobody else takes: by it a database is known as a selftest's, which may be removed.
CHOICE = WorkloadChoice(name="bank", scale={"branches": 1}, seed=7_357_437)
USERS = 4
BROKEN, FAILED, INCOMPLETE = 1, 3, 4  # exit codes, as the other commands have them

_BANNER = {"mssql": "SELECT @@VERSION", "postgresql": "SELECT version()"}
_LOGIN = {
    "mssql": "SELECT CAST(ORIGINAL_LOGIN() AS nvarchar(128)) AS login",
    "postgresql": "SELECT session_user",
}
_PROCEDURES = "SELECT name FROM sys.procedures WHERE schema_id = SCHEMA_ID(?)"


@dataclass(frozen=True)
class Check:
    """`state` is "works", "off" (it cannot be had on this server, and why) or "failed"."""

    what: str
    state: Literal["works", "off", "failed"]
    said: str
    exit_code: int = 0


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


class Off(Exception):
    """Cannot be had here; the message says why."""


class Wrong(Exception):
    """Something is not as it must be; carries its exit code."""

    def __init__(self, said: str, exit_code: int = FAILED):
        super().__init__(said)
        self.exit_code = exit_code


@dataclass
class Bench:
    """What the checks work on. `record` is there once users were driven."""

    engine: Engine
    runs: Path
    show: Show
    seconds: float
    may_cap_memory: bool
    record: Record | None = None

    @property
    def workload(self) -> Any:
        return find_workload(CHOICE.name)


def selftest(
    target: Target, runs: Path, show: Show, *, seconds: float, keep: bool, may_cap_memory: bool
) -> Selftest:
    """Run every check. The database must exist and be empty, or be what an earlier selftest left. The memory of a
    server that others may use is capped only if it `may` be.

    Afterwards everything but the run record is removed, unless it is to be kept; also after Ctrl-C. Raises
    StallmarkError when there is no connection, or the database holds anything else.
    """
    with target.engine(CHOICE) as engine:
        bench = Bench(engine, runs, show, seconds, may_cap_memory)
        _refuse_what_is_not_ours(bench)
        [(login,)] = engine.query(_LOGIN[engine.dialect])
        words = _Discretion(target, engine, login)
        try:
            facts, found = _facts(bench), list(_checks(bench))
        except BaseException:
            if not keep:
                with later():
                    show.say(_remove(bench, target).said)
            raise
        if not keep:
            with later():
                found.append(_remove(bench, target))
    checked = [Check(check.what, check.state, words(check.said), check.exit_code) for check in found]
    return Selftest(facts, checked, bench.record.folder if bench.record else None)


def _refuse_what_is_not_ours(bench: Bench) -> None:
    other = load.of_others(bench.engine, bench.workload)
    if other is None:
        try:
            load.recognise(bench.engine, bench.workload, CHOICE.scale, CHOICE.seed)
        except StallmarkError as error:
            other = str(error).rstrip(".")
    if other:
        raise StallmarkError(
            f"The database is not empty ({other}): a selftest builds its own, and removes it again, so name an empty "
            "database."
        )


def _facts(bench: Bench) -> dict[str, str]:
    engine = bench.engine
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
    loading = _try("load", lambda: _load(bench))
    yield loading
    if loading.state == "failed":
        return
    yield _try("consistency as loaded", lambda: _consistent(bench))
    yield _try("copy and restore", lambda: _restore(bench))
    yield _try("memory cap, and given back", lambda: _cap_memory(bench))
    driving = _try(f"{USERS} users", lambda: _drive(bench))
    yield driving
    if bench.record is None:
        return
    yield from _transactions(bench.record, bench.workload)
    yield from _collectors(bench.record)
    yield _try("consistency after the load", lambda: _consistent(bench))
    yield _try("report", lambda: _report(bench))


def _try(what: str, check: Callable[[], str]) -> Check:
    try:
        return Check(what, "works", check())
    except Off as off:
        return Check(what, "off", _sentence(off))
    except Wrong as wrong:
        return Check(what, "failed", _sentence(wrong), wrong.exit_code)
    except (StallmarkError, CallFailed, OSError) as error:
        return Check(what, "failed", _sentence(error), FAILED)
    except (
        Exception
    ) as error:  # whatever a driver raises on a server nobody has tried: it belongs into the issue
        frame = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(frame.filename).name}:{frame.lineno}"
        return Check(what, "failed", f"{type(error).__name__} in {where}: {_sentence(error)}", FAILED)


def _load(bench: Bench) -> str:
    with bench.show.bar(f"Loading {CHOICE}", None):
        built = load.build(bench.engine, bench.workload, CHOICE.scale, CHOICE.seed, workers=2)
    return f"{built.rows:,} rows in {built.seconds:.1f} s, with keys, procedures and statistics"


def _consistent(bench: Bench) -> str:
    findings = checks.run(bench.engine, bench.workload, CHOICE.scale, driven=False)
    if broken := [
        f"{found.name}: {found.offending:,} rows ({found.detail})" for found in findings if not found.holds
    ]:
        raise Wrong("; ".join(broken), BROKEN)
    return f"all {len(findings)} conditions hold"


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


def _drive(bench: Bench) -> str:
    scenario = Scenario.model_validate(
        {
            "name": "selftest", "title": "Selftest", "answers": "Does everything work here?", "needs": "", "takes": "",
            "workload": CHOICE, "users": USERS, "warm_up": "1s", "measure": f"{bench.seconds:g}s",
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


def _remove(bench: Bench, target: Target) -> Check:
    remove = (lambda: _drop(bench)) if target.url else (lambda: _delete(target, bench.engine))
    return _try("removed what it made", remove)


def _drop(bench: Bench) -> str:
    """Tables, procedures and schemas; the database itself was there before us."""
    with connected(bench.engine) as connection:
        schemas = set(sa.inspect(connection).get_schema_names())
        for metadata in (bench.workload.metadata, OWN_TABLES):
            schema = str(metadata.schema)
            if schema not in schemas:
                continue
            metadata.drop_all(connection)
            if bench.engine.dialect == "mssql":  # has no DROP SCHEMA … CASCADE
                for (name,) in bench.engine.query(_PROCEDURES, [schema]):
                    connection.execute(sa.text(f"DROP PROCEDURE [{schema}].[{name}]"))
                connection.execute(DropSchema(schema))
            else:
                connection.execute(DropSchema(schema, cascade=True))
    return "the database is empty again"


def _delete(target: Target, engine: Engine) -> str:
    engine.close()
    shutil.rmtree(target.folder(CHOICE))
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


def _sentence(error: Exception) -> str:
    return " ".join(in_words(error).split()) or type(error).__name__
