"""Streams of queries on a server that the tests are: order, what is recorded, and how they end."""

import itertools
import random
import statistics
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.manifests import a_manifest
from support.query_server import Server, Session

from stallmark.driver.controller import Interrupted
from stallmark.driver.pacing import Arrivals, DueQueries
from stallmark.driver.query_streams import Query, QueryDrive, Refreshing, Stopwatch, StreamProgress, plan_file
from stallmark.errors import CallFailed, ErrorClass, StallmarkError
from stallmark.record.writer import RecordWriter


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
def drive(server: Server, tmp_path: Path) -> QueryDrive:
    return QueryDrive(server, RecordWriter(tmp_path / "run", a_manifest()), 60, Stopwatch(), "reports")  # type: ignore[arg-type]


def follow(drive: QueryDrive, *streams, check=lambda: None) -> list[StreamProgress]:
    shown: list[StreamProgress] = []
    try:
        drive.began, drive.ended = drive.follow("power", list(enumerate(streams)), shown.append, check)
    finally:
        drive.finish()
        drive._writer.close()
    return shown


def rows(tmp_path: Path) -> list[dict]:
    return pq.read_table(tmp_path / "run" / "queries.parquet").to_pylist()


def queries(*names: str, dop: int | None = None) -> list[Query]:
    return [Query(name, name.lower(), dop) for name in names]


def test_a_stream_executes_in_order_and_every_execution_is_a_row(server, drive, tmp_path):
    done: list[str] = []
    first = Refreshing("RF1", lambda: done.append("did") or 12, lambda: done.append("prepared"))
    shown = follow(drive, [first, *queries("Q14", "Q2", dop=2)])
    assert done == ["prepared", "did"] and server.seen == [("q14", 2), ("q2", 2)]
    found = rows(tmp_path)
    assert [(r["query"], r["position"], r["stream"], r["phase"]) for r in found] == [
        ("RF1", 1, 0, "power"), ("Q14", 2, 0, "power"), ("Q2", 3, 0, "power"),
    ]  # fmt: skip
    assert found[0]["rows"] == 12 and found[0]["dop"] is None and found[0]["physical_reads"] is None
    assert (found[1]["rows"], found[1]["physical_reads"], found[1]["dop"]) == (3, 7, 2)
    assert (found[1]["wait_ms"], found[1]["plan_hash"]) == ('{"read": 1.5}', "abc")
    starts = [r["started_s"] for r in found]
    assert starts == sorted(starts) and drive.began <= starts[0]
    assert drive.ended == pytest.approx(found[-1]["started_s"] + found[-1]["seconds"])
    assert (shown[-1].done, shown[-1].total, shown[-1].failed) == (3, 3, 0)
    assert all(session.closed for session in server.sessions)


def test_a_plan_is_kept_once_for_each_shape(server, drive, tmp_path):
    follow(drive, [Query("Q3", "first"), Query("Q3", "second"), Query("Q12", "third")])
    folder = tmp_path / "run" / "plans"
    assert sorted(path.name for path in folder.iterdir()) == ["q03-abc.json", "q12-abc.json"]
    assert (folder / "q03-abc.json").read_text() == "plan of first"
    assert plan_file("Q9", "2f", "sqlplan") == "plans/q09-2f.sqlplan"


def test_streams_work_at_once(server, drive, tmp_path):
    server.answers["q1"] = threading.Barrier(3)  # nobody comes through alone
    follow(drive, *[queries("Q1", "Q6") for _ in range(3)])
    assert sorted((r["stream"], r["query"]) for r in rows(tmp_path)) == [(s, q) for s in range(3) for q in ("Q1", "Q6")]


def test_a_query_that_fails_is_noted_and_its_stream_goes_on(server, drive, tmp_path):
    server.answers |= {"q1": CallFailed(ErrorClass.TIMEOUT, "57014", "statement timeout"),
                       "q2": CallFailed(ErrorClass.OTHER, "42P01", "no such table")}  # fmt: skip
    shown = follow(drive, queries("Q1", "Q2", "Q3"))
    found = rows(tmp_path)
    assert [r["error_class"] for r in found] == ["timeout", "other", None]
    assert found[0]["error"] == "statement timeout (57014)" and found[0]["rows"] is None
    assert shown[-1].failed == 2


@pytest.mark.parametrize(
    ("kind", "reason"),
    [(ErrorClass.CONNECTION_LOST, "stream 0 lost the server in Q1"), (ErrorClass.STORAGE, "the server lost data")],
)
def test_a_lost_server_ends_the_run(server, drive, tmp_path, kind, reason):
    server.answers["q1"] = CallFailed(kind, "x", "it went away")
    with pytest.raises(Interrupted, match=reason):
        follow(drive, queries("Q1", "Q2"))
    assert rows(tmp_path)[0]["error_class"] == str(kind)


@pytest.mark.parametrize("error", [StallmarkError("There is no set left."), CallFailed(ErrorClass.OTHER, "1", "no")])
def test_a_refresh_that_fails_ends_the_run_before_anything_else_is_executed(server, drive, tmp_path, error):
    def fail() -> int:
        raise error

    with pytest.raises(Interrupted, match="RF1 failed: "):
        follow(drive, [Refreshing("RF1", fail), *queries("Q1")])
    assert server.seen == [] and rows(tmp_path)[0]["error_class"] == "other"


def test_ending_early_gives_up_what_is_under_way_and_keeps_what_was_done(server, drive, tmp_path):
    server.answers["q2"] = "hang"

    def check() -> None:
        if ("q2", None) in server.seen:
            raise Interrupted("stopped by Ctrl-C")

    with pytest.raises(Interrupted, match="Ctrl-C"):
        follow(drive, queries("Q1", "Q2", "Q3"), check=check)
    assert [r["query"] for r in rows(tmp_path)] == ["Q1"], "what was given up is no timeout of the server's"
    assert len(drive.given_up) == 1
    assert all(session.closed for session in server.sessions)


def test_a_stream_without_a_connection_is_refused_and_the_others_closed(server, drive):
    server.most = 1
    with pytest.raises(StallmarkError, match="got no connection: too many clients already"):
        follow(drive, queries("Q1"), queries("Q1"))
    assert server.seen == [] and server.sessions[0].closed


def test_a_fault_of_our_own_ends_the_run_and_not_in_silence(server, drive):
    server.answers["q1"] = ZeroDivisionError("a bug")
    with pytest.raises(Interrupted, match="ended unexpectedly: a bug"):
        follow(drive, queries("Q1"))


def test_what_the_server_does_not_tell_is_noted_once(server, drive, monkeypatch):
    monkeypatch.setattr(Session, "limited", "It sends no plan.")
    follow(drive, [Query("Q1", "garbled")], queries("Q2"))
    assert drive.notes() == ["The plan of Q1 could not be read (not a plan).", "It sends no plan."]


@pytest.mark.thorough
def test_streams_beside_others_go_on_until_they_are_given_up(server, tmp_path):
    beside = QueryDrive(
        server, RecordWriter(tmp_path / "run", a_manifest()), 60, Stopwatch(), "reports", "stallmark-stream"
    )  # type: ignore[arg-type]
    began = beside.begin("concurrent", [(1, queries("Q1", "Q6")), (2, queries("Q3"))], over_and_over=True)
    try:
        while len(server.seen) < 50:
            beside.poll(0.01)
    finally:
        beside.finish()
        beside._writer.close()
    found = rows(tmp_path)
    first = [row for row in sorted(found, key=lambda row: row["position"]) if row["stream"] == 1]
    assert [row["query"] for row in first] == ["Q1", "Q6"] * (len(first) // 2) + ["Q1"] * (len(first) % 2)
    assert [row["position"] for row in first] == list(range(1, len(first) + 1))
    assert {row["query"] for row in found if row["stream"] == 2} == {"Q3"}
    assert {row["due_s"] for row in found} == {None}
    assert {row["phase"] for row in found} == {"concurrent"} and min(row["started_s"] for row in found) >= began
    assert server.applications == ["stallmark-stream"] * 2 and all(one.closed for one in server.sessions)


def test_a_look_waits_for_nothing_and_says_when_the_server_is_lost(server, drive):
    server.answers["q1"] = CallFailed(ErrorClass.CONNECTION_LOST, "57P01", "terminating connection")
    drive.poll()  # nothing has begun
    drive.begin("concurrent", [(1, queries("Q1"))], over_and_over=True)
    with pytest.raises(Interrupted, match="stream 1 lost the server in Q1"):
        while True:
            drive.poll(0.01)
    drive.finish()
    drive._writer.close()


def beginning(server, folder, steps, streams: int = 2) -> tuple[QueryDrive, DueQueries]:
    """Streams of queries that come due a thousand times a second."""
    drive = QueryDrive(server, RecordWriter(folder, a_manifest()), 60, Stopwatch(), "reports")  # type: ignore[arg-type]
    due = DueQueries(Arrivals("poisson", rate=1000), random.Random(1), drive.clock)
    due.set_rate(1000)
    drive.begin("concurrent", [(number, steps) for number in range(1, streams + 1)], due=due)
    return drive, due


def test_queries_at_a_rate_come_in_one_order_and_each_is_done_given_up_or_not_begun(server, tmp_path):
    names = ("Q1", "Q6", "Q3", "Q9")
    drive, due = beginning(server, tmp_path / "run", queries(*names))
    try:
        while len(server.seen) < 60:
            drive.poll(0.01)
        server.answers |= dict.fromkeys(("q1", "q6", "q3", "q9"), "hang")
        while len(server.hanging) < 2 or due.queue(2).waiting < 5:
            drive.poll(0.01)
    finally:
        due.set_rate(0)
        drive.finish()
        drive._writer.close()
    found = sorted(rows(tmp_path), key=lambda row: row["due_s"])
    assert [row["query"] for row in found][:60] == list(names) * 15
    assert all(row["due_s"] <= row["started_s"] for row in found) and {row["stream"] for row in found} == {1, 2}
    forgotten = due.pop_forgotten()
    assert len(drive.given_up) == 2 and len(forgotten) >= 5 and not due.pop_forgotten()
    assert due.queue(2).due == len(found) + 2 + len(forgotten)
    assert all(one.due_s <= one.started_s < min(forgotten) + 1 for one in drive.given_up), "in order"


def test_streams_that_wait_for_a_query_end_at_once(server, tmp_path):
    drive, due = beginning(server, tmp_path / "run", queries("Q1"))
    due.set_rate(1e-6)
    drive.finish()
    drive._writer.close()
    assert drive.given_up == [] and all(session.closed for session in server.sessions)


# The queries of an open loop: none is lost or doubled, and they come due as a Poisson process has it


GO_ON = threading.Event()  # never set


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def due_queries(kind: str, clock, seed: int = 1) -> DueQueries:
    return DueQueries(Arrivals(kind, rate=1.0), random.Random(seed), clock)


ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("wait"), st.floats(0, 30)),
        st.tuples(st.just("rate"), st.sampled_from([0.0, 0.05, 1.0, 7.0])),
        st.tuples(st.just("take"), st.integers(1, 9)),
    ),
    max_size=30,
)


@given(actions=ACTIONS, kind=st.sampled_from(["poisson", "fixed"]), seed=st.integers())
def test_no_query_is_lost_or_doubled(actions, kind, seed):
    clock = Clock()
    queries, taken, forgotten = due_queries(kind, clock, seed), [], []
    for what, value in actions:
        if what == "wait":
            clock.now += value
        elif what == "rate":
            queries.set_rate(value)
            assert queries.queue(1).waiting == 0
        else:
            for _ in range(min(value, queries.queue(1).waiting)):
                taken.append((clock.now, queries.next_due(GO_ON)))
        forgotten += queries.pop_forgotten()
        queue = queries.queue(1)
        assert queue.due == len(taken) + queue.waiting + len(forgotten)
    assert [number for _, (number, _) in taken] == list(range(len(taken)))
    moments = [due_s for _, (_, due_s) in taken]
    assert moments == sorted(moments) and all(due_s <= now for now, (_, due_s) in taken)


@pytest.mark.parametrize(("kind", "spread"), [("poisson", 1.0), ("fixed", 0.0)])
def test_counts_have_the_mean_and_the_spread_of_their_kind(kind, spread):
    clock = Clock()
    queries, seen = due_queries(kind, clock), [0]
    queries.set_rate(5)
    for _ in range(20_000):
        clock.now += 1
        seen.append(queries.queue(1).due)
    counts = [after - before for before, after in itertools.pairwise(seen)]
    # The mean of 20,000 counts has a standard error of 0.3 %, their variance one of 1 %.
    assert statistics.fmean(counts) == pytest.approx(5, rel=0.015)
    assert statistics.variance(counts) / 5 == pytest.approx(spread, abs=0.05)


def test_streams_that_take_turns_take_each_query_once():
    queries, stopping = due_queries("poisson", time.monotonic), threading.Event()

    def stream(_: int) -> list[int]:
        return [number for number, _ in iter(lambda: queries.next_due(stopping), None)]

    with ThreadPoolExecutor(4) as pool:
        found = pool.map(stream, range(4))
        queries.set_rate(2000)
        while queries.queue(4).due < 400:
            time.sleep(0.01)
        stopping.set()
        numbers = sorted(itertools.chain(*found))
    assert len(numbers) >= 400 - queries.queue(4).waiting and numbers == list(range(len(numbers)))


def test_a_new_rate_reaches_streams_that_wait_at_the_old_one():
    queries, taken = due_queries("fixed", time.monotonic), []
    queries.set_rate(1e-6)
    stream = threading.Thread(target=lambda: taken.append(queries.next_due(GO_ON)), daemon=True)
    stream.start()
    queries.set_rate(1000)
    stream.join(30)
    assert taken[0][0] == 0
