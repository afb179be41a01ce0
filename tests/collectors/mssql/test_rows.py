"""What each collector makes of its answer."""

import pytest
from support import published_waits as published
from support.collecting import opened, read
from support.mssql_server import Server, rows
from support.scripted_views import FILES, answered, words_of

from stallmark.collectors.mssql.collector import statement
from stallmark.collectors.mssql.counters import Performance, ServerIO, ServerWaits
from stallmark.collectors.mssql.moments import BufferPool, Cpu, PendingIO, Schedulers
from stallmark.collectors.mssql.waits import Waits


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
