"""Common behaviour of all collectors, through the real ODBC driver."""

import time
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from support.collecting import opened
from support.manifests import a_manifest
from support.mssql_server import Server
from support.scripted_views import ANSWERS, FILES, REQUESTS, answer_all, answered, everything, words_of
from support.tds.answers import Error, Rows
from support.waiting import eventually

from stallmark.collectors import ON_REQUEST, REGISTRY, collectors_for, storage_alarm
from stallmark.collectors.base import Row
from stallmark.collectors.mssql.collector import MssqlCollector
from stallmark.collectors.mssql.counters import ServerIO, StatisticsUpdates
from stallmark.collectors.mssql.error_log import ErrorLog
from stallmark.collectors.mssql.io_latency import LogLatency
from stallmark.collectors.sampler import Sampler
from stallmark.errors import StallmarkError
from stallmark.record.reader import Record
from stallmark.record.schema import SAMPLED
from stallmark.record.writer import RecordWriter


def test_every_collector_describes_itself(server: Server) -> None:
    collectors = collectors_for(server.engine(), REQUESTS)
    requested = [kind for kinds in ON_REQUEST["mssql"].values() for kind in kinds]
    named = dict.fromkeys(kind.name for kind in (*REGISTRY["mssql"], *requested))
    assert [collector.name for collector in collectors] == list(named)
    assert len({collector.name for collector in collectors}) == len(collectors)
    for collector in collectors:
        assert collector.title and collector.help.endswith(".") and collector.interval_s > 0
        assert len(collector.columns.names) == len(set(collector.columns.names))


@pytest.mark.parametrize("kind", [kind for kind in ANSWERS if kind is not ErrorLog])
def test_rows_have_the_columns_they_declare(server: Server, kind: type[MssqlCollector]) -> None:
    if kind is StatisticsUpdates:  # rows come of a change
        server.script.sql(words_of(kind), Rows(ANSWERS[kind].columns, []), times=2)
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
        c.name: c.unavailable() for c in collectors_for(server.engine(), REQUESTS) if isinstance(c, MssqlCollector)
    }
    assert set(reasons.values()) == {None}, reasons


def test_each_has_a_connection_before_it_samples_and_asks_a_view_of_its_own(server: Server) -> None:
    answer_all(server)
    counters = [
        c
        for c in collectors_for(server.engine(), ["query_store"])
        if isinstance(c, MssqlCollector) and not c.polling and not isinstance(c, LogLatency)  # which makes sessions too
    ]
    assert counters[0].major == 16  # asks who the server is, once
    assert all(counter.sql for counter in counters)  # as `unavailable` tried it
    logins = len(server.responder.logins)
    for number, collector in enumerate(counters, 1):
        collector.open()
        assert len(server.responder.logins) == logins + number
    server.responder.forget()
    for collector in counters:
        collector.sample(0.0)
    assert len(server.responder.logins) == logins + len(counters)
    assert {login.application for login in server.responder.logins[logins:]} == {"stallmark-collector"}
    texts = [request.text for request in server.responder.requests if "query_plan(0x" not in request.text]
    assert len(texts) == len(set(texts)) == len(counters)
    for collector in counters:
        collector.close()


def test_a_lost_connection_is_made_again(server: Server) -> None:
    collector = answered(server, ServerIO)
    with opened(collector):
        assert len(collector.sample(0.0)) == len(FILES)
        server.responder.cut_all()
        with pytest.raises(StallmarkError, match="connection to the server was lost"):
            collector.sample(1.0)
        collector.open()
        assert len(collector.sample(2.0)) == len(FILES)


def test_a_query_that_fails_in_the_middle_says_why(server: Server) -> None:
    server.script.sql(words_of(ServerIO), Error(1222, "Lock request time out period exceeded."), times=1)
    collector = answered(server, ServerIO)
    with opened(collector):
        with pytest.raises(StallmarkError, match=r"refused the query \(Lock request time out period exceeded\)"):
            collector.sample(0.0)
        assert collector.sample(1.0)


def test_the_sampler_fills_every_table(server: Server, tmp_path: Path) -> None:
    answer_all(server)
    collectors = [c for c in collectors_for(server.engine(), REQUESTS) if c.unavailable() is None]
    assert {c.name for c in collectors} == {kind.name for kind in ANSWERS}
    writer = RecordWriter(tmp_path / "run", a_manifest())
    seen: set[str] = set()

    def store(table: str, some: Sequence[Row]) -> None:
        writer.append(table, some)
        seen.add(table)

    for collector in collectors:
        writer.add_table(collector.name, pa.schema([*SAMPLED, *collector.columns]))
    begin = time.monotonic()
    sampler = Sampler(collectors, store, lambda: time.monotonic() - begin)
    sampler.start()
    eventually(lambda: {"pending_io", "schedulers", "waits"} <= seen)  # those that look at random instants
    sampler.stop()
    writer.close()
    assert sampler.failures == [] and storage_alarm(collectors) is None
    record = Record(tmp_path / "run")
    empty = {name for name in record.tables() if not record.table(name).num_rows}
    assert empty - {"blocking"} == {  # whose moment may not have come
        "transactions", "transaction_io", "users", "client_cpu", "deferred_queue", "errors", "queries", "error_log",
        "statistics_updates",
    }  # fmt: skip


def test_what_is_not_asked_for_is_not_collected(server: Server) -> None:
    names = {collector.name for collector in collectors_for(server.engine(), ["io_latency"])}
    assert "io_latency" in names and not names & {"query_store", "query_store_waits"}
