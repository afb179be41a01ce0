"""Two databases of one server, both ours: asked with one query where a view shows both, each by itself where not."""

import re
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import pyarrow as pa
import pytest
from support import published_waits as published
from support.collecting import opened, read
from support.mssql_server import Server, rows
from support.scripted_views import FILES, REQUESTS, SETTLED, START, answer_all, words_of
from support.tds.answers import Error, Rows
from support.tds.requests import Request

from stallmark.collectors import collectors_for, drop_left_behind
from stallmark.collectors.mssql import MssqlCollector, statement, with_databases
from stallmark.collectors.mssql.counters import (
    LoadIO,
    LogSpace,
    Performance,
    Procedures,
    Replicas,
    RowLocks,
    ServerIO,
    SessionWaits,
    StatisticsUpdates,
)
from stallmark.collectors.mssql.io_latency import IoLatency, LogLatency, Volumes
from stallmark.collectors.mssql.statements import QueryStore, QueryStoreState, Statements
from stallmark.collectors.mssql.waits import UserWaits
from stallmark.collectors.sampler import Collector
from stallmark.engines.mssql.engine import MssqlEngine
from stallmark.errors import StallmarkError

BANK, MAIL = NAMES = ("bank", "o'mail]")
OF_SERVER = (ServerIO, LoadIO, UserWaits, SessionWaits, Performance, Procedures, Statements, Replicas, Volumes)
OF_EACH = (RowLocks, LogSpace, StatisticsUpdates, QueryStore)


class Two(MssqlEngine):
    """The engine is in the database that its URL names; ours are two others, or one of them."""

    names: tuple[str, ...] = NAMES

    def databases(self) -> tuple[MssqlEngine, ...]:
        return self._databases

    @cached_property
    def _databases(self) -> tuple[MssqlEngine, ...]:
        return tuple(MssqlEngine(self.address.url()).on_database(name) for name in self.names)


@pytest.fixture
def two(server: Server) -> Two:
    return made_on(server)


def made_on(server: Server) -> Two:
    server.script.databases = {"master", *NAMES}
    server.script.sql(r"^SELECT DB_NAME\(\)$", by_database(server, {name: rows(["name"], [name]) for name in NAMES}))
    return Two(f"mssql://tester:secret@127.0.0.1:{server.responder.port}/master?Encrypt=no")


def by_database(server: Server, answers: Mapping[str, Any]) -> Callable[[Request], list]:
    """Answer by the database of the connection."""
    return lambda request: [answers[server.responder.logins[request.connection - 1].database]]


def scripted(server: Server, words: str | type[MssqlCollector], answers: Mapping[str, Any]) -> None:
    server.script.sql(words if isinstance(words, str) else words_of(words), by_database(server, answers))


def settle(server: Server) -> None:
    for words, answer in SETTLED.items():
        server.script.sql(words, *answer)


def lock_rows(table: str, at: float, waits: int) -> Rows:
    entity = f"dbo.{table}/pk"
    return rows(RowLocks.columns.names, (at, f"{START} object 7", entity, f"dbo.{table}", waits, 9, 0, 0, 0, 0, 0, 0))


# What is asked


@pytest.mark.parametrize("kind", OF_SERVER)
def test_a_query_of_the_server_lists_ours(kind: type[Collector]) -> None:
    """Where it names one database it does so in a list, which several stand in as well; what is left is T-SQL."""
    text = statement(kind.name, 17)
    bare = re.sub(r"SELECT DB_ID\(\) AS database_id", "", text)
    assert len(re.findall(r"DB_(?:ID|NAME)\(\)", bare)) == len(re.findall(r"IN \(DB_(?:ID|NAME)\(\)", bare))
    assert with_databases(text, NAMES).count("N'o''mail]'") >= 1
    assert not re.search(r"DB_(ID|NAME)\(\)", with_databases(text, NAMES))


def test_one_query_is_sent_for_both_and_always_the_same(server: Server, two: Two) -> None:
    server.script.sql(words_of(ServerIO), rows(ServerIO.columns.names, *FILES))
    with opened(ServerIO(two)) as collector:
        assert len(collector.sample(0.0)) == len(collector.sample(1.0)) == len(FILES)
    asked = server.asked("dm_io_virtual_file_stats")
    assert len(asked) == 2 and len(set(asked)) == 1
    assert "WHEN io.database_id IN (DB_ID(N'bank'), DB_ID(N'o''mail]'))" in asked[0]
    assert "FROM [bank].sys.database_files AS here UNION ALL SELECT DB_ID(N'o''mail]') AS database_id," in asked[0]
    assert "FROM [o'mail]]].sys.database_files AS here)" in asked[0]


@pytest.mark.parametrize("kind", OF_EACH)
def test_a_view_of_one_database_is_asked_in_each(server: Server, two: Two, kind: type[MssqlCollector]) -> None:
    answer_all(server)
    with opened(kind(two)) as collector:
        server.responder.forget()
        collector.sample(0.0)
    asked = [request for request in server.responder.requests if re.search(words_of(kind), request.text, re.S)]
    assert [server.responder.logins[request.connection - 1].database for request in asked] == list(NAMES)
    assert len({request.text for request in asked}) == 1


def test_all_can_be_measured_and_have_the_columns_they_declare(server: Server, two: Two) -> None:
    told = {
        Procedures: ("bank.transfer", "procedure"),
        Statements: ("bank.transfer", "procedure"),
        Replicas: ("replica 1", "replica"),
    }
    answer_all(server)
    for collector in collectors_for(two, REQUESTS):
        if not isinstance(collector, MssqlCollector) or type(collector) in told or isinstance(collector, LogLatency):
            continue
        assert collector.unavailable() is None, collector.name
        with opened(collector):
            found = [*collector.sample(0.0), *collector.finish()]
        for row in found:
            assert list(row) == collector.columns.names
        assert pa.RecordBatch.from_pylist(found, schema=collector.columns).to_pylist() == found


def test_one_alone_bears_no_name(server: Server, two: Two) -> None:
    two.names = NAMES[:1]
    answer_all(server)
    locks, space = (c for c in collectors_for(two) if c.name in ("row_locks", "log_space"))
    assert {row["relation"] for row in read(locks)} == {"bank.branch"}
    assert [row["database"] for row in read(space)] == [None]
    assert "DB_ID(N'" not in "".join(server.asked(""))


# What is told apart


def test_rows_of_each_bear_its_name_and_one_time(server: Server, two: Two) -> None:
    scripted(server, RowLocks, {BANK: lock_rows("t", 1.5, 3), MAIL: lock_rows("t", 1.9, 5)})
    found = read(RowLocks(two))
    assert [(row["entity"], row["relation"], row["row_lock_waits"]) for row in found] == [
        ("bank.dbo.t/pk", "bank.dbo.t", 3),
        ("o'mail].dbo.t/pk", "o'mail].dbo.t", 5),
    ]
    assert {row["server_time"] for row in found} == {1.5}
    assert len({row["epoch"] for row in found}) == 2  # though both tables have the same number


def test_each_log_is_seen_by_itself(server: Server, two: Two) -> None:
    names = LogSpace.columns.names[:-1]
    full = {BANK: rows(names, (1.5, 100, 20, 5, "NOTHING")), MAIL: rows(names, (1.6, 100, 90, 5, "LOG_BACKUP"))}
    scripted(server, LogSpace, full)
    assert [(row["database"], row["used_bytes"]) for row in read(LogSpace(two))] == [(BANK, 20), (MAIL, 90)]


@pytest.mark.parametrize(
    ("kind", "column", "value"),
    [
        (Procedures, "procedure", "dbo.transfer"),
        (Statements, "procedure", "dbo.transfer"),
        (Replicas, "replica", "replica 1"),
    ],
)
def test_what_the_server_shows_of_both_bears_the_database_s_name(
    server: Server, two: Two, kind: type[MssqlCollector], column: str, value: str
) -> None:
    names = [
        name for name in kind.columns.names if name not in ("statement", "planned", "position", "text", "plan_hash")
    ]
    if kind is Statements:
        names += ["begins", "ends", "plan_hash", "plan_handle", "text"]
    texts = {"epoch": "e", "plan": "p", "plan_hash": "0x01", "plan_handle": "0x05", "text": "SELECT", column: value}
    texts |= {"commit_mode": "SYNCHRONOUS_COMMIT", "state": "SYNCHRONIZED"}
    row = [texts.get(name, 2) for name in names]
    answer = rows([*names, "database"], *([*row, database] for database in NAMES))
    server.script.sql(words_of(kind), answer)
    settle(server)
    with opened(kind(two)) as collector:
        found = collector.sample(0.0)
        assert [row[column] for row in found] == [f"bank.{value}", f"o'mail].{value}"]
        assert all(list(row) == collector.columns.names for row in found)
        assert kind is not Statements or len(collector.files()) == 2
        assert not any("/" in path.removeprefix("plans/") for path in collector.files())


# Performance counters, which are of databases by their names


def flushes(*instances: str) -> Rows:
    return rows(
        Performance.columns.names,
        *[(1.5, "start", "Databases", "Log Flushes/sec", one, 272696576, 400) for one in instances],
    )


@pytest.mark.parametrize(("counted", "missing"), [((BANK, "tempdb"), [MAIL]), (("tempdb",), [BANK, MAIL]), (NAMES, [])])
def test_a_database_without_counters_is_named(server: Server, two: Two, counted: list[str], missing: list[str]) -> None:
    server.script.sql(words_of(Performance), flushes(*counted))
    said = Performance(two).limitation() or ""
    assert [name for name in NAMES if name in said] == missing


def test_the_names_of_files_are_those_of_databases_on_azure(new_server) -> None:
    server = new_server(version="12.0.2000.8", edition=8)
    two = made_on(server)
    guids = {name: f"2f1c9c7e-{number}" for number, name in enumerate(NAMES)}
    scripted(server, "^SELECT .SELECT own.physical", {name: rows(["name"], [guid]) for name, guid in guids.items()})
    server.script.sql(words_of(Performance), flushes(*guids.values()))
    assert [row["instance"] for row in read(Performance(two))] == list(NAMES)
    [asked] = server.asked("dm_os_performance_counters AS counters")
    assert asked.count("N'2f1c9c7e-0' COLLATE Latin1_General_CI_AS, N'2f1c9c7e-1' COLLATE Latin1_General_CI_AS") == 2
    assert Performance(two).limitation() is None


def test_nothing_is_told_of_several_on_azure_sql_database(new_server) -> None:
    """There each has views of its own, and the number of another is not known."""
    server = new_server(version="12.0.2000.8", edition=5)
    for collector in collectors_for(made_on(server), REQUESTS):
        if isinstance(collector, MssqlCollector):
            assert collector.unavailable() is not None, collector.name
    assert not server.asked("sys.dm_")


# Event sessions


def sessions(*names: str) -> Rows:
    columns = ["server_time", "epoch", "session", "dropped", "histogram"]
    return rows(columns, *((1.5, "session 2026-03-02T09:00:00", name, 0, published.HISTOGRAM) for name in names))


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        (LogLatency, ["stallmark_log_writes", "stallmark_log_writes_2"]),
        (IoLatency, ["stallmark_reads", "stallmark_reads_2", "stallmark_log_writes", "stallmark_log_writes_2"]),
    ],
)
def test_each_log_has_an_event_session(server: Server, two: Two, kind: type[LogLatency], names: list[str]) -> None:
    files = {BANK: rows(["database", "log"], [7, 2]), MAIL: rows(["database", "log"], [9, 3])}
    scripted(server, r"FROM sys\.database_files AS log", files)
    server.script.sql("server_event_sessions", rows(["name"]), times=1)
    server.script.sql("server_event_sessions", rows(["name"], *([name] for name in [*names, "stallmark_reads_2x"])))
    server.script.sql("dm_xe_session_targets", sessions(*names))
    settle(server)
    with opened(kind(two)) as collector:
        found = collector.sample(0.0)
        made = {re.findall(r"SESSION (\w+)", text)[0]: text for text in server.asked("CREATE EVENT SESSION")}
        assert sorted(made) == sorted(names)
        assert "database_id = 7 AND file_id = 2" in made["stallmark_log_writes"]
        assert "database_id = 9 AND file_id = 3" in made["stallmark_log_writes_2"]
        assert "database_id = 9" in made.get("stallmark_reads_2", "database_id = 9")
    assert {(row["operation"], row["database"]) for row in found if row["operation"] == "log write"} == {
        ("log write", BANK),
        ("log write", MAIL),
    }
    assert len({(row["operation"], row["database"]) for row in found}) == len(names)
    assert sorted(server.asked("DROP EVENT SESSION")) == sorted(
        f"DROP EVENT SESSION {name} ON SERVER" for name in names
    )


def test_the_session_of_one_that_somebody_stopped_is_named(server: Server, two: Two) -> None:
    server.script.sql("dm_xe_session_targets", sessions("stallmark_log_writes"))
    settle(server)
    with opened(LogLatency(two)) as collector, pytest.raises(StallmarkError, match="session stallmark_log_writes_2"):
        collector.sample(0.0)


def test_a_run_of_one_database_drops_what_one_of_several_left(server: Server) -> None:
    left = ["stallmark_log_writes", "stallmark_log_writes_12", "stallmark_log_writes_of_ann"]
    server.script.sql("server_event_sessions", rows(["name"], *([name] for name in left)))
    server.script.sql("DROP EVENT SESSION")
    drop_left_behind(server.engine())
    assert server.asked("DROP EVENT SESSION") == [f"DROP EVENT SESSION {name} ON SERVER" for name in left[:2]]


# What one of them lacks


def test_a_right_that_is_missing_in_one_is_said_of_it(server: Server, two: Two) -> None:
    denied = Error(*published.DENIED[0][::2], severity=14)
    scripted(server, RowLocks, {BANK: lock_rows("t", 1.5, 3), MAIL: denied})
    why = str(RowLocks(two).unavailable())
    assert why.startswith("In o'mail]: The user [watcher] may not see this") and why.count("GRANT") == 1


def test_query_store_that_is_off_in_one_is_said_of_it(server: Server, two: Two) -> None:
    names = QueryStoreState.columns.names[:-1]
    on = rows(names, [1.5, "query store", "READ_WRITE", 0, "ALL", "ON", 12 << 20, 1000 << 20])
    off = rows(names, [1.5, "query store", "OFF", 0, "NONE", "OFF", 0, 1000 << 20])
    states = {BANK: on, MAIL: off}
    scripted(server, "database_query_store_options", states)
    answer_all(server)
    assert str(QueryStore(two).unavailable()).startswith("In o'mail]: Query Store is OFF")


def test_one_that_is_gone_is_named(server: Server, two: Two) -> None:
    gone = Error(942, "Database 'mail' cannot be opened because it is offline.")
    scripted(server, RowLocks, {BANK: lock_rows("t", 1.5, 3), MAIL: gone})
    with opened(RowLocks(two)) as collector, pytest.raises(StallmarkError, match=r"o'mail\]: the server refused"):
        collector.sample(0.0)
