"""The collectors through the real ODBC driver, fed with what servers answered (`published`) or with made-up rows."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tds.answers import Error, Rows
from tds.tokens import Column

from stallmark.driver.collectors import REGISTRY, collectors_for, storage_alarm
from stallmark.driver.collectors.base import Collector, Row
from stallmark.driver.collectors.mssql import statement
from stallmark.driver.collectors.mssql.collector import MssqlCollector
from stallmark.driver.collectors.mssql.counters import (
    LogSpace,
    Performance,
    Procedures,
    ServerIO,
    ServerWaits,
    SessionWaits,
    TempDb,
)
from stallmark.driver.collectors.mssql.error_log import ErrorLog, storage_error
from stallmark.driver.collectors.mssql.moments import BufferPool, Cpu, PendingIO, Schedulers
from stallmark.driver.collectors.mssql.waits import Waits
from stallmark.driver.engines.errors import StallmarkError
from stallmark.driver.record import Record, RecordWriter
from stallmark.driver.sampler import Sampler

from . import published
from .conftest import TYPES, Server, eventually, opened, read, rows

START = "start 2026-03-01T10:00:00"
HANDLE = "0x0000000000000B5C"

# Made up, of the types that the views document.
FILES = [
    (1.5, f"{START} database 7 of 2026-03-02T08:00:00 handle {HANDLE}", "bank/bank", "data", 100, 819200, 700, 10,
     81920, 0, 0, 0, 1 << 30, "/var/opt/mssql/data/bank.mdf", HANDLE),
    (1.5, f"{START} database 7 of 2026-03-02T08:00:00 handle 0x01", "bank/bank_log", "wal", 0, 0, 0, 50, 204800, 45, 0,
     0, 1 << 28, "/var/opt/mssql/data/bank_log.ldf", "0x01"),
    (1.5, f"{START} database 2 of 2026-03-01T10:00:00 handle 0x02", "tempdb/tempdev", "temp", 5, 40960, 3, 5, 40960, 2,
     0, 0, 8 << 20, "/var/opt/mssql/data/tempdb.mdf", "0x02"),
    (1.5, f"{START} database 9 of  handle 0x03", "database 9/file 1", "foreign", 9, 73728, 1, 0, 0, 0, 0, 0, 1 << 20,
     None, "0x03"),
]  # fmt: skip
WAITS = [
    (1.5, START, "PAGEIOLATCH_SH", 120, 900, 30, 45),
    (1.5, START, "LAZYWRITER_SLEEP", 60, 60000, 12, 1010),
    (1.5, START, "WRITELOG", 50, 45, 4, 5),
]
ANSWERS: dict[type[MssqlCollector], Rows] = {
    ServerIO: rows(ServerIO.columns.names, *FILES),
    Waits: rows(["status", "wait_type", "users"], ("suspended", "PAGEIOLATCH_SH", 3), (None, None, 2)),
    ServerWaits: rows(["server_time", "epoch", "wait_type", "waits", "wait_ms", "signal_ms", "max_ms"], *WAITS),
    SessionWaits: rows(
        ["server_time", "epoch", "session", "wait_type", "waits", "wait_ms", "signal_ms", "max_ms"],
        *[(t, epoch, "57 since 2026-03-02T09:00:00", *rest) for t, epoch, *rest in WAITS],
    ),
    Performance: rows(
        Performance.columns.names,
        *[(1.5, START, object.partition(":")[2], counter, instance, kind, value)
          for object, counter, instance, value, kind in published.COUNTERS],
    ),
    Procedures: rows(
        Procedures.columns.names,
        (1.5, "plan cache", "bank.transfer", "0x03 0x05 2026-03-02T09:00:00", 40, 9000, 60000, 130, 800, 200, 0),
    ),
    PendingIO: rows(PendingIO.columns.names, (1.5, HANDLE, "disk", True, 3, 12), (1.5, HANDLE, "disk", False, 1, 2)),
    Schedulers: rows(
        Schedulers.columns.names,
        (1.5, len(published.RUNNABLE_SCHEDULERS), *(
            f(one[at] for one in published.RUNNABLE_SCHEDULERS) for f, at in [(sum, 0), (sum, 1), (max, 1), (sum, 2)]
        ), 0),
    ),
    Cpu: rows(["server_time", "age_ms", "platform", "record"], (1.5, 20000, "Windows", published.CPU_RECORD)),
    LogSpace: rows(LogSpace.columns.names, (1.5, 1 << 28, 1 << 20, 1 << 19, "LOG_BACKUP")),
    TempDb: rows(TempDb.columns.names, (1.5, 1, 8 << 20, 4 << 20, 0, 1 << 20, 1 << 20, 1 << 20)),
    BufferPool: rows(BufferPool.columns.names, (1.5, "bank", 1, "DATA_PAGE", 900, 40, 0, 850, 4_000_000)),
    ErrorLog: rows(["LogDate", "ProcessInfo", "Text"], ("2026-03-02 09:00:00.000", "spid9s", "no offset to speak of")),
}  # fmt: skip
SETTLED = {"HAS_PERMS_BY_NAME": rows(["may"], [1]), "Target Server Memory": rows(["name", "value"])}


def words_of(kind: type[MssqlCollector]) -> str:
    """What tells a collector's query from every other."""
    return {
        Waits: r"FROM sys\.dm_exec_sessions AS session\s+LEFT JOIN sys\.dm_exec_requests",
        ServerIO: "dm_io_virtual_file_stats", ServerWaits: "dm_os_wait_stats|dm_db_wait_stats",
        SessionWaits: "dm_exec_session_wait_stats", Performance: "dm_os_performance_counters AS counters",
        Procedures: "dm_exec_procedure_stats", PendingIO: "dm_io_pending_io_requests", Schedulers: "dm_os_schedulers",
        Cpu: "dm_os_ring_buffers", LogSpace: "dm_db_log_space_usage", TempDb: "dm_db_file_space_usage",
        BufferPool: "dm_os_buffer_descriptors", ErrorLog: "sp_readerrorlog",
    }[kind]  # fmt: skip


def answer_all(server: Server) -> None:
    for kind, answer in ANSWERS.items():
        server.script.sql(words_of(kind), answer)
    for words, answer in SETTLED.items():
        server.script.sql(words, answer)


def answered(server: Server, kind: type[MssqlCollector], answer: Any = None, **more: Any) -> MssqlCollector:
    """The collector of a server that answers its query so."""
    server.script.sql(words_of(kind), answer or ANSWERS[kind], **more)
    for words, settled in SETTLED.items():
        server.script.sql(words, settled)
    return kind(server.engine())


def everything(collector: Collector, seconds: tuple[float, ...] = (0.0, 1.0)) -> list[Row]:
    with opened(collector):
        return [row for second in seconds for row in collector.sample(second)] + collector.finish()


# All of them


def test_every_collector_describes_itself(server: Server) -> None:
    collectors = collectors_for(server.engine())
    assert [collector.name for collector in collectors] == [kind.name for kind in REGISTRY["mssql"]]
    assert len({collector.name for collector in collectors}) == len(collectors)
    for collector in collectors:
        assert collector.title and collector.help.endswith(".") and collector.interval_s > 0
        assert len(collector.columns.names) == len(set(collector.columns.names))


@pytest.mark.parametrize("kind", [kind for kind in ANSWERS if kind is not ErrorLog])
def test_rows_have_the_columns_they_declare(server: Server, kind: type[MssqlCollector]) -> None:
    collector = answered(server, kind)
    assert collector.unavailable() is None
    found = everything(collector)
    assert found
    for row in found:
        assert list(row) == collector.columns.names
    batch = pa.RecordBatch.from_pylist(found, schema=collector.columns)
    assert batch.to_pylist() == found


def test_all_are_available_to_a_login_that_may(server: Server) -> None:
    answer_all(server)
    reasons = {
        c.name: c.unavailable() for c in collectors_for(server.engine()) if isinstance(c, MssqlCollector)
    }
    assert set(reasons.values()) == {None}, reasons


def test_counters_share_a_connection_and_each_view_is_asked_once(server: Server) -> None:
    answer_all(server)
    counters = [c for c in collectors_for(server.engine()) if isinstance(c, MssqlCollector) and not c.polling]
    assert counters[0].major == 16  # asks who the server is, once
    server.responder.forget()
    logins = len(server.responder.logins)
    for collector in counters:
        collector.open()
        collector.sample(0.0)
    assert len(server.responder.logins) == logins + 1
    assert server.responder.logins[-1].application == "stallmark-collector"
    texts = [request.text for request in server.responder.requests if "SELECT" in (request.text or "")]
    assert len(texts) == len(set(texts)) == len(counters)
    for collector in counters:
        collector.close()
    with opened(counters[0]):
        counters[0].sample(1.0)
    assert len(server.responder.logins) == logins + 2  # the first one is closed once nobody needs it


def test_a_lost_connection_is_made_again(server: Server) -> None:
    collector = answered(server, ServerIO)
    with opened(collector):
        assert len(collector.sample(0.0)) == len(FILES)
        server.responder.cut_all()
        with pytest.raises(StallmarkError, match="connection to the server was lost"):
            collector.sample(1.0)
        assert len(collector.sample(2.0)) == len(FILES)


def test_a_query_that_fails_in_the_middle_says_why(server: Server) -> None:
    server.script.sql(words_of(ServerIO), Error(1222, "Lock request time out period exceeded."), times=1)
    collector = answered(server, ServerIO)
    with opened(collector):
        with pytest.raises(
            StallmarkError, match=r"refused the query \(Lock request time out period exceeded\)"
        ):
            collector.sample(0.0)
        assert collector.sample(1.0)


# Who may not see it, and who has not got it


@pytest.mark.parametrize("kind", [kind for kind in ANSWERS if kind is not ErrorLog])
@pytest.mark.parametrize(("version", "permission"), [("15.0.4430.1", "VIEW SERVER STATE"),
                                                     ("16.0.4105.2", "VIEW SERVER PERFORMANCE STATE")])  # fmt: skip
def test_without_permission_it_is_off_and_says_what_to_grant(
    new_server: Callable[..., Server], kind: type[MssqlCollector], version: str, permission: str
) -> None:
    server = new_server(version=version)
    sentence = answered(
        server, kind, lambda request: [Error(n, text, s) for n, s, text in published.DENIED]
    ).unavailable()
    assert sentence == (
        "The login [watcher] may not see this (VIEW SERVER STATE permission was denied on object 'server', database "
        f"'master'): run GRANT {permission} TO [watcher];"
    )


@pytest.mark.parametrize(
    "error",
    [
        Error(297, published.DENIED[1][2]),
        Error(300, published.DENIED_2022, severity=14),
        Error(371, published.DENIED_2022, severity=14),
        Error(262, "VIEW DATABASE STATE permission denied in database 'master'.", severity=14),
        Error(229, "The EXECUTE permission was denied on the object 'sp_readerrorlog'.", severity=14),
    ],
)
def test_every_way_to_be_refused(server: Server, error: Error) -> None:
    sentence = answered(server, ErrorLog, error).unavailable()
    assert sentence is not None and sentence.endswith("run GRANT VIEW ANY ERROR LOG TO [watcher];")
    assert error.text.rstrip(".") in sentence


def test_a_view_that_is_missing(server: Server) -> None:
    sentence = answered(
        server, PendingIO, Error(208, "Invalid object name 'sys.dm_io_pending_io_requests'.")
    ).unavailable()
    assert sentence == (
        "This server does not have the view it needs (Invalid object name 'sys.dm_io_pending_io_requests')."
    )


def test_another_error_is_told_as_it_is(server: Server) -> None:
    sentence = answered(server, TempDb, Error(8134, "Divide by zero error encountered.")).unavailable()
    assert sentence == "The server refused its query (Divide by zero error encountered, error 8134)."


@pytest.mark.parametrize("may", [0, None])
def test_users_hidden_from_the_login_turn_their_waits_off(server: Server, may: int | None) -> None:
    server.script.sql("HAS_PERMS_BY_NAME", Rows([Column("may", TYPES[int])], [(may,)]))
    sentence = answered(server, Waits).unavailable()
    assert sentence == (
        "The login [watcher] may not see this (the sessions of the virtual users are hidden from it): run GRANT "
        "VIEW SERVER PERFORMANCE STATE TO [watcher];"
    )


def test_babelfish_has_none(new_server: Callable[..., Server]) -> None:
    server = new_server(
        version="12.0.2000.8", banner="Babelfish for PostgreSQL with SQL Server Compatibility - 4.4.0"
    )
    for collector in collectors_for(server.engine()):
        if isinstance(collector, MssqlCollector):
            assert collector.unavailable() == "Babelfish has none of SQL Server's management views."


def test_azure_sql_database_has_some(new_server: Callable[..., Server]) -> None:
    server = new_server(version="12.0.2000.8", edition=5)
    answer_all(server)
    reasons = {
        c.name: c.unavailable() for c in collectors_for(server.engine()) if isinstance(c, MssqlCollector)
    }
    assert {name for name, why in reasons.items() if why} == {"tempdb", "cpu", "error_log"}
    assert "Azure SQL Database" in str(reasons["tempdb"])
    assert server.asked("dm_db_wait_stats") and not server.asked("dm_os_wait_stats")
    assert not server.asked("master_files")
    assert server.asked("total_spills")  # as new as any server


def test_azure_sql_database_grants_by_database(new_server: Callable[..., Server]) -> None:
    server = new_server(version="12.0.2000.8", edition=5)
    denied = Error(262, "VIEW DATABASE STATE permission denied in database 'bank'.", severity=14)
    assert answered(server, ServerIO, denied).unavailable() == (
        "The user [watcher] may not see this (VIEW DATABASE STATE permission denied in database 'bank'): run GRANT "
        "VIEW DATABASE STATE TO [watcher];"
    )


@pytest.mark.parametrize(
    ("version", "has_spills"), [("14.0.3456.2", False), ("15.0.4430.1", True), ("17.0.700.9", True)]
)
def test_the_query_is_the_versions(new_server: Callable[..., Server], version: str, has_spills: bool) -> None:
    server = new_server(version=version)
    read(answered(server, Procedures))
    assert bool(server.asked("cached.total_spills")) is has_spills


# What each makes of its answer


def test_server_io_keeps_files_without_a_name(server: Server) -> None:
    collector = answered(server, ServerIO)
    found = {row["entity"]: row for row in read(collector)}
    assert {row["kind"] for row in found.values()} == {"data", "wal", "temp", "foreign"}
    assert found["database 9/file 1"]["reads"] == 9
    assert found["bank/bank"]["write_stall_ms"] == 0 and found["bank/bank"]["writes"] == 10
    assert collector.limited() == (
        "The names of other databases' files (1) are hidden from this login, their I/O is counted: to see them it "
        "needs VIEW ANY DEFINITION."
    )


def test_server_io_says_nothing_when_it_sees_all(server: Server) -> None:
    assert answered(server, ServerIO, rows(ServerIO.columns.names, *FILES[:3])).limited() is None


def test_performance_keeps_raw_values_with_their_types(server: Server) -> None:
    found = {(row["object"], row["counter"]): row for row in read(answered(server, Performance))}
    assert len(found) == len(published.COUNTERS)
    life = found["Buffer Manager", "Page life expectancy"]
    assert (life["value"], life["type"]) == (29730, 65792)
    hit, base = (found["Buffer Manager", f"Buffer cache hit ratio{end}"] for end in ("", " base"))
    assert (hit["value"], base["value"], base["type"]) == (1, 2448, 1073939712)


def test_performance_asks_for_counters_that_exist() -> None:
    """By the names that a server published; a name misspelt would be missed for ever."""
    sql = statement("performance", 14)
    for object, counter, _, _, _ in published.COUNTERS:
        assert f"'{object.partition(':')[2]}'" in sql and f"'{counter}'" in sql


def test_waits_count_each_user_once_per_poll(server: Server) -> None:
    collector = answered(server, Waits)
    with opened(collector):
        for tick in range(10):
            assert collector.sample(5 + tick / 10) == []
        second, rest = collector.sample(6.0), collector.finish()
    assert [(r["second"], r["wait_class"], r["event"], r["samples"], r["polls"]) for r in second] == [
        (5, "client", "idle", 20, 10),
        (5, "io", "PAGEIOLATCH_SH", 30, 10),
    ]
    assert {row["second"] for row in rest} == {6} and sum(row["samples"] for row in rest) == 5
    assert collector.finish() == []


def test_server_waits_mark_what_is_benign(server: Server) -> None:
    found = {
        row["wait_type"]: (row["wait_class"], row["benign"]) for row in read(answered(server, ServerWaits))
    }
    assert found == {
        "PAGEIOLATCH_SH": ("io", False),
        "LAZYWRITER_SLEEP": ("other", True),
        "WRITELOG": ("wal", False),
    }


def test_nothing_pending_is_a_row_too(server: Server) -> None:
    [row] = read(answered(server, PendingIO, rows(PendingIO.columns.names)))
    assert row["requests"] == 0 and row["handle"] is None


def test_schedulers_are_summed(server: Server) -> None:
    [row] = read(answered(server, Schedulers))
    assert (row["tasks"], row["runnable"], row["most_runnable"], row["waiting_for_worker"]) == (
        217,
        198,
        100,
        0,
    )


def cpu_note(record: int, platform: str = "Windows", idle: int = 91) -> tuple:
    text = published.CPU_RECORD.replace('"38446"', f'"{record}"').replace(
        "<SystemIdle>91", f"<SystemIdle>{idle}"
    )
    return (1.5, 20000, platform, text)


def test_cpu_notes_come_once(server: Server) -> None:
    names = ["server_time", "age_ms", "platform", "record"]
    server.script.sql(words_of(Cpu), rows(names, cpu_note(2), cpu_note(1)), times=1)
    server.script.sql(words_of(Cpu), rows(names, cpu_note(3), cpu_note(2)), times=1)
    collector = answered(server, Cpu, rows(names, cpu_note(3)))
    with opened(collector):
        first, second, third = (collector.sample(60.0 * n) for n in range(3))
    assert [row["record"] for row in first] == [1, 2]
    assert [row["record"] for row in second] == [3] and third == []
    assert (first[0]["process_percent"], first[0]["idle_percent"], first[0]["memory_percent"]) == (2, 91, 100)
    assert first[0]["age_s"] == 20


@pytest.mark.parametrize(
    ("platform", "idle", "known"), [("Linux", 0, None), ("Linux", 40, 40), ("Windows", 0, 0)]
)
def test_an_idle_time_that_linux_does_not_note_is_not_zero(
    server: Server, platform: str, idle: int, known: int | None
) -> None:
    names = ["server_time", "age_ms", "platform", "record"]
    [row] = read(answered(server, Cpu, rows(names, cpu_note(7, platform, idle))))
    assert row["idle_percent"] == known


@pytest.mark.parametrize(("gib", "off"), [(8, False), (32, False), (64, True)])
def test_a_large_pool_is_not_walked_through(server: Server, gib: int, off: bool) -> None:
    memory = rows(["name", "value"], ("Target Server Memory (KB)", gib << 20))
    server.script.sql("Target Server Memory", memory)
    sentence = answered(server, BufferPool).unavailable()
    assert (sentence is not None) is off
    assert bool(server.asked("dm_os_buffer_descriptors")) is not off
    if sentence:
        assert sentence.startswith("The server uses 64 GiB of memory")


# The error log


@pytest.mark.parametrize(
    ("text", "number"),
    [
        (published.HARD_ERROR, 823),
        (published.CORRUPT_PAGE, 824),
        (published.READ_RETRIED, 825),
        (published.LONG_IO, 833),
        ("Recovery of database 'bank' (7) is 50% complete, at offset 12", None),
    ],
)
def test_storage_errors_are_told_by_their_words(text: str, number: int | None) -> None:
    assert storage_error(text) == number
    assert "offset" in text  # what the query searches for


LOG = ["LogDate", "ProcessInfo", "Text"]


def watching(server: Server, *answers: Sequence[tuple]) -> ErrorLog:
    """The watch on a log that reads so, one answer after the other, the last one again and again."""
    for lines in answers[:-1]:
        server.script.sql(words_of(ErrorLog), rows(LOG, *lines), times=1)
    collector = answered(server, ErrorLog, rows(LOG, *answers[-1]))
    assert isinstance(collector, ErrorLog)
    return collector


@pytest.mark.parametrize("text", [published.HARD_ERROR, published.READ_RETRIED, published.LONG_IO])
def test_a_storage_error_raises_the_alarm(server: Server, text: str) -> None:
    old = ("2026-03-02 09:00:00.000", "spid9s", published.LONG_IO)
    new = ("2026-03-02 09:10:00.000", "spid9s", text)
    collector = watching(server, [old], [old], [old], [old, new])
    assert collector.unavailable() is None  # reads it twice: what was there before is not ours
    others: list[Collector] = [ServerIO(collector.engine), collector]
    with opened(collector):
        assert collector.sample(15.0) == [] and storage_alarm(others) is None
        [row] = collector.sample(30.0)
        assert row == {"log_time": new[0], "number": storage_error(text), "text": text}
        assert collector.sample(45.0) == []
        alarm = storage_alarm(others)
    assert (
        alarm is not None
        and text in alarm
        and alarm.endswith(f"(error {storage_error(text)}); check the storage")
    )
    assert pa.RecordBatch.from_pylist([row], schema=collector.columns).to_pylist() == [row]


def test_the_same_line_again_is_another_error(server: Server) -> None:
    line = ("2026-03-02 09:00:00.000", "spid9s", published.LONG_IO)
    collector = watching(server, [line], [line], [line, line])
    assert collector.unavailable() is None
    with opened(collector):
        assert len(collector.sample(15.0)) == 1


def test_what_is_logged_before_the_first_turn_or_in_an_outage_or_at_the_end_counts(server: Server) -> None:
    first, second, third = (
        (f"2026-03-02 09:0{n}:00.000", "s", text)
        for n, text in enumerate([published.LONG_IO, published.CORRUPT_PAGE, published.READ_RETRIED])
    )
    collector = watching(server, [], [], [first], [first, second], [first, second, third])
    assert collector.unavailable() is None
    with opened(collector):
        assert [row["number"] for row in collector.sample(15.0)] == [833]
    with opened(collector):
        assert [row["number"] for row in collector.sample(60.0)] == [824]
        server.responder.cut_all()
        with pytest.raises(StallmarkError):
            collector.sample(75.0)
    assert [row["number"] for row in collector.finish()] == [825]
    eventually(lambda: server.responder.open_connections == 0)  # the look at the end leaves none behind


def test_no_log_no_alarm(server: Server) -> None:
    assert storage_alarm(collectors_for(server.engine())) is None


# With the sampler


def test_the_sampler_fills_every_table(server: Server, tmp_path: Path) -> None:
    answer_all(server)
    collectors = [c for c in collectors_for(server.engine()) if c.unavailable() is None]
    assert {c.name for c in collectors} == {kind.name for kind in ANSWERS}
    writer = RecordWriter(tmp_path / "run", {})
    seen: set[str] = set()

    def store(table: str, some: Sequence[Row]) -> None:
        writer.append(table, some)
        seen.add(table)

    for collector in collectors:
        writer.add_table(collector.name, pa.schema([("t", pa.float64()), *collector.columns]))
    begin = time.monotonic()
    sampler = Sampler(collectors, store, lambda: time.monotonic() - begin)
    sampler.start()
    eventually(lambda: {"pending_io", "schedulers", "waits"} <= seen)  # those that look at random instants
    sampler.stop()
    writer.close()
    assert sampler.failures == [] and storage_alarm(collectors) is None
    record = Record(tmp_path / "run")
    empty = {name for name in record.tables() if not record.table(name).num_rows}
    assert empty == {"transactions", "users", "errors", "error_log"}
