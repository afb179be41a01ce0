"""The rows that each collector makes of its answer."""

import re
from xml.etree import ElementTree

import pytest
from support import published_waits as published
from support.collecting import opened, read
from support.mssql_server import Server, rows
from support.scripted_views import EVENT_FILE, FILES, MOMENT, answered, everything, words_of
from support.tds.answers import Error

from stallmark.collectors.mssql import statement
from stallmark.collectors.mssql.counters import Performance, Replicas, ServerIO, ServerWaits, StatisticsUpdates
from stallmark.collectors.mssql.moments import BufferPool, Cpu, PendingIO, Schedulers
from stallmark.collectors.mssql.statements import Statements
from stallmark.collectors.mssql.waits import Blocking, Deadlocks, UserWaits, shape


def test_server_io_keeps_files_without_a_name(server: Server) -> None:
    collector = answered(server, ServerIO)
    found = {row["entity"]: row for row in read(collector)}
    assert {row["kind"] for row in found.values()} == {"data", "wal", "temp", "foreign"}
    assert found["database 9/file 1"]["reads"] == 9
    assert found["bank/bank"]["write_stall_ms"] == 0 and found["bank/bank"]["writes"] == 10
    assert collector.limitation() == (
        "The names of other databases' files (1) are hidden from this login, their I/O is counted: to see them it "
        "needs VIEW ANY DEFINITION."
    )


def test_server_io_says_nothing_when_it_sees_all(server: Server) -> None:
    assert answered(server, ServerIO, rows(ServerIO.columns.names, *FILES[:3])).limitation() is None


def test_statements_are_named_by_place_and_plan_and_each_plan_is_kept_once(server: Server) -> None:
    collector = answered(server, Statements)
    with opened(collector):
        [row], [again] = collector.sample(0.0), collector.sample(15.0)
    assert row == again
    assert (row["statement"], row["planned"]) == ("bank.transfer-120", "bank.transfer-120-01a2b3c4d5e6f708")
    assert (row["position"], row["text"], row["worker_us"]) == (120, "UPDATE bank.accounts SET balance", 9000)
    assert list(row) == Statements.columns.names
    assert collector.files() == {"plans/bank.transfer-120-01a2b3c4d5e6f708.sqlplan": "<ShowPlanXML/>"}
    [asked] = server.asked("dm_exec_text_query_plan")
    assert "(0x0500, 240, 520)" in asked


def test_who_blocks_whom_is_counted_by_procedure(server: Server) -> None:
    collector = answered(server, Blocking)
    with opened(collector):
        assert collector.sample(7.3) == []
        found = {(row["blocked"], row["blocker"]): row for row in collector.finish()}
    pair = found["brokerage.trade_status", "brokerage.trade_result_completion"]
    assert (pair["second"], pair["samples"], pair["polls"], pair["wait_type"]) == (7, 2, 1, "LCK_M_S")
    assert ("brokerage.trade_order_account", "SET XACT_ABORT ON; BEGIN") in found


def test_deadlocks_are_read_once_after_the_load_with_their_graphs(server: Server) -> None:
    collector = answered(server, Deadlocks)
    with opened(collector):
        assert collector.sample(0.0) == collector.sample(60.0) == []
        assert not server.asked("xml_deadlock_report")
        [row] = collector.finish()
    assert row == {
        "happened": "2026-03-02T09:00:00.123",
        "victim": "brokerage.trade_status",
        "others": "brokerage.trade_result_completion",
        "isolation": "read committed",
        "resources": "brokerage.trade (ix_trade_t_ca_id_t_dts): S held, X wanted; "
        "brokerage.trade (pk_trade): X held, S wanted",
        "graph": "deadlocks/01.xdl",
    }
    [(name, graph)] = collector.files().items()
    assert name == "deadlocks/01.xdl" and graph.startswith("<deadlock>") and "WS8" not in graph and "ana" not in graph
    assert "> '2026-03-02T08:59:00.000'" in server.asked("xml_deadlock_report")[0]
    [asked] = server.asked("xml_deadlock_report")
    assert "system_health_0_134170000000000000.xel" in asked and "*" not in asked.partition("WHERE")[0]


def rolled_over(server: Server) -> None:
    """The server writes to one file at the start, and to the next one at the end."""
    first, second = (EVENT_FILE.replace("_0_", f"_{n}_") for n in range(2))
    for file in (first, second):
        server.script.sql(MOMENT, rows(["now", "written"], ["2026-03-02T08:59:00.000", file]), times=1)


def test_files_that_the_server_began_since_are_all_read_the_newest_first(server: Server) -> None:
    rolled_over(server)
    collector = answered(server, Deadlocks)
    assert collector.unavailable() is None
    assert "TOP (1)" in server.asked("fn_xe_file_target_read_file")[0]  # all of them may take minutes
    assert len(everything(collector)) == 1  # each event once
    files = [re.findall(r"N'([^']*)'", text)[0].rpartition("/")[2] for text in server.asked("xml_deadlock_report")]
    number = "134170000000000000"
    assert files == [f"system_health_1_{number}.xel", f"system_health_0_{number}.xel", "system_health*.xel"]
    assert collector.incomplete is None


@pytest.mark.parametrize("refused", [r"system_health_0_", r"N'system_health\*"])
def test_older_files_that_cannot_be_read_cost_no_deadlock_of_the_others(server: Server, refused: str) -> None:
    rolled_over(server)
    server.script.sql(refused + r"[\s\S]*xml_deadlock_report", Error(25718, "The log file name is invalid."))
    collector = answered(server, Deadlocks)
    assert len(everything(collector)) == 1
    assert collector.incomplete == (
        "older files of events were not read (The log file name is invalid): deadlocks may be missing"
    )
    assert len(server.asked("xml_deadlock_report")) == 3  # the first file may be gone, and one behind it there


def test_optimized_locking_has_table_and_index_inside_the_lock_of_a_transaction() -> None:
    """As Managed Instance and 2025 write it ("Optimized locking", learn.microsoft.com)."""
    graph = """<deadlock><resource-list><xactlock xdesIdLow="2476" dbid="23" mode="X"><UnderlyingResource>
    <keylock hobtid="72057594049593344" objectname="e6fc405e-1ee8-49df-a2b3-54ee0151d851.brokerage.trade"
    indexname="pk_trade"/></UnderlyingResource><owner-list><owner id="a" mode="X"/></owner-list><waiter-list>
    <waiter id="b" mode="S" requestType="wait"/></waiter-list></xactlock></resource-list></deadlock>"""
    assert shape(ElementTree.fromstring(graph))["resources"] == "brokerage.trade (pk_trade): X held, S wanted"


def test_statistics_that_changed_are_known_by_their_date_whatever_the_clock(server: Server) -> None:
    """The hour that runs twice in autumn: nothing is told but a change of STATS_DATE, which is a local time."""
    names = ["server_time", "table", "statistic", "counted_at"]
    old, back = "2026-10-25T02:59:50.000", "2026-10-25T02:00:05.000"
    for days in (old, old, back):
        server.script.sql(
            words_of(StatisticsUpdates),
            rows(names, (1.5, "bank.accounts", "pk", days), (1.5, "bank.branch", "pk", "2026-01-01T00:00:00.000")),
            times=1,
        )
    new = rows(names, (1.5, "bank.accounts", "pk", back), (1.5, "bank.branch", "new", None))
    with opened(answered(server, StatisticsUpdates, new)) as collector:
        found = [collector.sample(10.0 * n) for n in range(4)]
    assert [list(rows) for rows in found] == [
        [], [], [{"server_time": 1.5, "table": "bank.accounts", "statistic": "pk", "age_s": 5.0}], [],
    ]  # fmt: skip


def test_other_peoples_deadlocks_are_not_ours(server: Server) -> None:
    theirs = published.DEADLOCK.replace("stallmark-user", "crm")
    collector = answered(server, Deadlocks, rows(["happened", "event"], ("2026-03-02T09:00:00.123", theirs)))
    with opened(collector):
        collector.sample(0.0)
        assert collector.finish() == [] and collector.files() == {}


def test_a_plan_that_cannot_be_had_costs_no_counts(server: Server) -> None:
    server.script.sql("dm_exec_text_query_plan", Error(300, "denied", severity=14))
    collector = answered(server, Statements)
    assert len(read(collector)) == 1 and collector.files() == {}


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


def test_counters_that_are_disabled_are_told_from_a_right_that_is_missing(server: Server) -> None:
    """learn.microsoft.com, sys.dm_os_performance_counters: "if the return value is 0 rows, this means that the
    performance counters have been disabled"."""
    nothing = rows(Performance.columns.names)
    server.script.sql(r"COUNT\(\*\) FROM sys\.dm_os_performance_counters", rows(["n"], [0]))
    collector = answered(server, Performance, nothing)
    assert "are disabled" in str(collector.unavailable())
    refused = Error(300, "VIEW SERVER PERFORMANCE STATE permission was denied.", severity=14)
    server.script._rules.clear()
    server.script.sql("SELECT QUOTENAME", rows(["name"], ["[watcher]"]))
    server.script.sql(words_of(Performance), refused)
    assert "GRANT VIEW SERVER PERFORMANCE STATE" in str(collector.unavailable())


@pytest.mark.parametrize(("edition", "by_files"), [(3, False), (8, True), (5, True)])
def test_azure_names_our_counters_by_its_files(new_server, edition: int, by_files: bool) -> None:
    """github.com/influxdata/telegraf, plugins/inputs/sqlserver/azuresqlmanagedqueries.go: the instance's name is a GUID
    there, sys.databases.physical_database_name."""
    server = new_server(version="16.0.4085.2" if edition == 3 else "12.0.2000.8", edition=edition)
    guid = "2f1c9c7e-5d0e-4a0e-9f57-0f0a4c8a1b11"
    flushes = (1.5, "start", "Databases", "Log Flushes/sec", guid if by_files else "bank", 272696576, 400)
    collector = answered(server, Performance, rows(Performance.columns.names, flushes))
    assert collector.unavailable() is None and collector.limitation() is None
    assert bool(server.asked("physical_database_name")) is by_files


def test_counters_without_our_database_say_so(server: Server) -> None:
    tempdb = (1.5, "start", "Databases", "Log Flushes/sec", "tempdb", 272696576, 400)
    assert "no counters of our database" in str(
        answered(server, Performance, rows(Performance.columns.names, tempdb)).limitation()
    )


def test_waits_count_each_user_of_a_load_once_per_poll(server: Server) -> None:
    collector = answered(server, UserWaits)
    with opened(collector):
        for tick in range(10):
            assert collector.sample(5 + tick / 10) == []
        second, rest = collector.sample(6.0), collector.finish()
    assert [tuple(row.values()) for row in second] == [
        (5, "stallmark-user-bank", "client", "idle", 20, 10),
        (5, "stallmark-user-bank", "io", "PAGEIOLATCH_SH", 10, 10),
        (5, "stallmark-user-mail", "io", "PAGEIOLATCH_SH", 30, 10),
    ]
    assert [tuple(second[0])] == [tuple(collector.columns.names)]
    assert {row["second"] for row in rest} == {6} and sum(row["samples"] for row in rest) == 6
    assert collector.finish() == []


def test_server_waits_mark_what_is_benign(server: Server) -> None:
    found = {row["wait_type"]: (row["wait_class"], row["benign"]) for row in read(answered(server, ServerWaits))}
    assert found == {"PAGEIOLATCH_SH": ("io", False), "LAZYWRITER_SLEEP": ("other", True), "WRITELOG": ("wal", False)}


def test_nothing_pending_is_a_row_too(server: Server) -> None:
    [row] = read(answered(server, PendingIO, rows(PendingIO.columns.names)))
    assert row["requests"] == 0 and row["handle"] is None


def test_schedulers_are_summed(server: Server) -> None:
    [row] = read(answered(server, Schedulers))
    assert (row["tasks"], row["runnable"], row["most_runnable"], row["waiting_for_worker"]) == (217, 198, 100, 0)


def cpu_note(record: int, platform: str = "Windows", idle: int = 91) -> tuple:
    text = published.CPU_RECORD.replace('"38446"', f'"{record}"').replace("<SystemIdle>91", f"<SystemIdle>{idle}")
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


def test_notes_of_the_cpu_that_cannot_be_read_are_told_and_the_others_kept(server: Server) -> None:
    names = ["server_time", "age_ms", "platform", "record"]
    cut = (1.5, 80000, "Windows", published.CPU_RECORD[:40])
    collector = answered(server, Cpu, rows(names, cut, cpu_note(2)))
    assert [row["record"] for row in read(collector)] == [2]
    assert collector.incomplete == "some of the server's notes on its CPU cannot be read"


@pytest.mark.parametrize(("platform", "idle", "known"), [("Linux", 0, None), ("Linux", 40, 40), ("Windows", 0, 0)])
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


@pytest.mark.parametrize(("gib", "sampled"), [(8, [0, 1, 1, 1, 1, 1]), (9, [0, 0, 1, 1, 0, 1])])
def test_a_pool_above_8_gib_is_walked_through_before_the_end_of_a_step_alone(
    server: Server, gib: int, sampled: list[int]
) -> None:
    server.script.sql("Target Server Memory", rows(["name", "value"], ("Target Server Memory (KB)", gib << 20)))
    collector = answered(server, BufferPool)
    collector.step_ends = [200.0, 300.0]
    counts = [0]
    with opened(collector):
        counts += [len(collector.sample(now)) for now in (100.0, 141.0, 199.0, 230.0)] + [len(collector.finish())]
    assert counts == sampled


def test_a_database_in_no_group_has_no_replicas(server: Server) -> None:
    assert "no other replicas" in str(answered(server, Replicas, rows(Replicas.columns.names)).unavailable())
    assert "replica_server_name" not in answered(server, Replicas).sql  # no names of machines
