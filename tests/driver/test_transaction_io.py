"""Reads of a transaction itself: asked of its session, outside the time that is measured."""

import json
import math
import random
import socket
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator

import pytest
from support.clusters import Cluster, ClusterEngine
from support.driving import executor_order

from stallmark.driver import client as own_io
from stallmark.driver.channel import Channel
from stallmark.driver.client import NEVER, OwnIOSampler
from stallmark.driver.executor import Executor
from stallmark.driver.messages import FinalReport, Go, Quit, StartUser
from stallmark.driver.rows import OwnIORow, Rows
from stallmark.driver.run_state import Merger
from stallmark.driver.tally import own_io_rows
from stallmark.engines.base import OwnIO, Session
from stallmark.engines.postgres.embedded_engine import EmbeddedEngine
from stallmark.errors import CallFailed, ErrorClass
from stallmark.record.schema import TRANSACTION_IO

BLOCK = 8192


class Counting(Session):
    """Answers with the next of what it is given."""

    dialect = "spoken"

    def __init__(self, *answers: OwnIO | CallFailed | None):
        self.answers = list(answers)

    def own_io(self) -> OwnIO | None:
        answer = self.answers.pop(0)
        if isinstance(answer, CallFailed):
            raise answer
        return answer


def io(reads: int, read_us: int | None = 0) -> OwnIO:
    return OwnIO(reads, 8192 * reads, 10 * reads, read_us, 0)


GONE = CallFailed(ErrorClass.CONNECTION_LOST, "08006", "gone")


@pytest.fixture
def reported() -> list[tuple]:
    return []


@pytest.fixture
def samples(reported: list[tuple], monkeypatch: pytest.MonkeyPatch) -> OwnIOSampler:
    monkeypatch.setattr(own_io, "RUN", 1)
    return OwnIOSampler(3, reported.append)


def test_the_transaction_between_two_looks_is_reported(samples, reported):
    session = Counting(io(5, 100), io(7, 350))
    assert samples.sample(session, 0, 111, done=True) == 1
    assert samples.sample(session, 2, 222, done=True) >= 1
    assert reported == [(2, 222, 2, 16384, 20, 250, 0)]


def test_times_that_the_server_does_not_take_stay_empty(samples, reported):
    session = Counting(io(5, None), io(7, None))
    samples.sample(session, 0, 111, done=True)
    samples.sample(session, 2, 222, done=True)
    assert reported == [(2, 222, 2, 16384, 20, None, 0)]


def test_in_a_run_a_look_ends_one_and_begins_the_next(samples, reported, monkeypatch):
    monkeypatch.setattr(own_io, "RUN", 3)
    monkeypatch.setattr(samples, "pause", lambda: 77)
    session = Counting(io(5), io(7), io(7), io(11))
    assert [samples.sample(session, 0, ended, done=True) for ended in range(4)] == [1, 1, 1, 77]
    assert [(ended, reads) for _, ended, reads, *_ in reported] == [(1, 2), (2, 0), (3, 4)]


@pytest.mark.parametrize(
    ("after", "done"),
    [
        (lambda before: before, False),  # given up
        (lambda before: Counting(io(7)), True),  # in another session, which counts from 0
        (lambda before: Counting(GONE), True),
    ],
)
def test_what_is_not_known_whole_is_not_reported(samples, reported, after: Callable, done: bool):
    session = Counting(io(5), io(7), io(9), io(12))
    samples.sample(session, 0, 111, done=True)
    samples.sample(after(session), 0, 222, done=done)
    assert reported == []
    samples.sample(session, 1, 333, done=True)
    samples.sample(session, 1, 444, done=True)
    assert len(reported) == 1  # and the next one is


def test_a_server_that_does_not_say_is_asked_once(samples, reported):
    assert samples.sample(Counting(None), 0, 111, done=True) == NEVER


@pytest.mark.parametrize("types", [1, 12])
def test_one_in_so_many_is_looked_at_wherever_it_is_in_a_deck(reported, types):
    """Of a deck whose length goes into how far samples are apart."""
    random.seed(7)
    session = Counting()
    samples = OwnIOSampler(types, reported.append)
    left, transactions = samples.pause(), 4000 * own_io.sampling_interval(types)
    for number in range(transactions):
        left -= 1
        if left < 1:
            session.answers.append(io(0))
            left = samples.sample(session, number % 10, number, done=True)
    assert len(reported) == pytest.approx(4000, rel=0.1)
    places = Counter(place for place, *_ in reported)
    assert len(places) == 10
    assert all(count == pytest.approx(400, rel=0.2) for count in places.values())


@pytest.fixture
def table(cluster: Cluster, engine: ClusterEngine) -> Iterator[None]:
    """A table of four times the pool, none of it in the pool."""
    engine.execute("CREATE TABLE big AS SELECT i, repeat('x', 1000) AS filler FROM generate_series(1, 16000) i")
    engine.execute("ALTER TABLE big ADD PRIMARY KEY (i)")
    engine.execute("VACUUM (FREEZE, ANALYZE) big")
    cluster.restart()
    yield
    engine.execute("DROP TABLE big")


QUERIES = {
    "by key": "SELECT count(filler) FROM big WHERE i BETWEEN 7000 AND 7400",
    "once more": "SELECT count(filler) FROM big WHERE i BETWEEN 7000 AND 7400",
    "all": "SELECT count(filler) FROM big",  # which goes through a ring of its own
    "change": "UPDATE big SET filler = 'y' WHERE i BETWEEN 7100 AND 7300",
}


def test_a_session_counts_what_explain_says_it_read(cluster: Cluster, engine: ClusterEngine, table) -> None:
    session = engine.session(call_timeout_s=30)
    if cluster.major < 18:
        assert session.own_io() is None
        session.close()
        return
    for name, sql in QUERIES.items():
        session.prepare(name, f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {sql}")
    for name in QUERIES:
        session.call(name, ())  # plans, and reads the catalogue for it
    engine.query("SELECT count(filler) FROM big WHERE i BETWEEN 10000 AND 15000 AND i % 1 = 0")
    before = session.own_io()
    assert session.own_io() == before  # asking costs nothing that is counted
    for name in QUERIES:
        [(text,)] = session.call(name, ())
        [explained] = json.loads(text)
        after = session.own_io()
        blocks = explained["Plan"]["Shared Read Blocks"]
        assert after.read_bytes - before.read_bytes == BLOCK * blocks, name
        assert after.hits - before.hits == explained["Plan"]["Shared Hit Blocks"], name
        assert 0 <= after.reads - before.reads <= blocks
        assert (after.read_us > before.read_us) == (blocks > 0), name
        before = after
    session.close()


def test_its_time_is_unknown_where_the_server_takes_none(cluster: Cluster, engine: ClusterEngine) -> None:
    engine.execute("ALTER DATABASE postgres SET track_io_timing = off")
    try:
        session = engine.session(call_timeout_s=30)
        found = session.own_io()
        session.close()
    finally:
        engine.execute("ALTER DATABASE postgres RESET track_io_timing")
    assert found is None if cluster.major < 18 else found is not None and found.read_us is None


# In the record


def test_samples_of_a_second_are_one_row_for_each_transaction():
    second = 10**9
    samples = [
        (0, 5 * second + 1, *io(3, 30)),
        (1, 5 * second + 2, *io(1, 10)),
        (0, 5 * second + 3, *io(4, 40)),
        (0, 6 * second, *io(9, 90)),
    ]
    parts = [samples[:1], samples[1:3], samples[3:]]

    class Tables:
        def __init__(self) -> None:
            self.rows: dict[str, list[dict]] = defaultdict(list)

        def append(self, name: str, rows: list[dict]) -> None:
            self.rows[name] += rows

    tables = Tables()
    merger = Merger(tables)  # type: ignore[arg-type]
    for part in parts:
        merger.add(Rows(transaction_io=own_io_rows(part, "shop", ["order", "status"], 2 * second)))
    merger.write_before(4)
    assert [tuple(row.values()) for row in tables.rows["transaction_io"]] == [
        (3, "shop", "order", 2, 7, 7 * BLOCK, 70, 70, 0),
        (3, "shop", "status", 1, 1, BLOCK, 10, 10, 0),
    ]
    merger.write_before(math.inf)
    rows = tables.rows["transaction_io"]
    assert [row["second"] for row in rows] == [3, 3, 4]
    assert all(list(row) == TRANSACTION_IO.names for row in rows)


def test_a_time_that_one_sample_lacks_is_missing_from_the_sum():
    [row] = own_io_rows([(0, 1, *io(1, 10)), (0, 2, *io(1, None))], "shop", ["order"], 0)
    assert row.read_us is None and row.reads == 2 and row.sampled == 2


def test_an_executor_reports_what_its_transactions_read(bank: EmbeddedEngine, monkeypatch) -> None:
    monkeypatch.setattr(OwnIOSampler, "pause", lambda samples: 1)
    ours, theirs = map(Channel, socket.socketpair())
    executor = threading.Thread(target=Executor(theirs, executor_order(bank)).run)
    executor.start()
    ours.send(Go(time.monotonic_ns()))
    ours.send(StartUser(0, 0))
    found: list[OwnIORow] = []
    while not found:
        found = ours.receive().rows().transaction_io
    ours.send(Quit())
    while not isinstance(ours.receive(), FinalReport):
        pass
    executor.join()
    for each in (ours, theirs):
        each.close()
    for row in found:
        assert list(row.columns()) == TRANSACTION_IO.names
        assert row.transaction == "transfer" and row.sampled > 0 and row.hits > row.sampled
