"""A load of streams: the rate at which its queries come due, and what becomes of them when that changes."""

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from support.manifests import a_manifest
from support.query_server import Server

from stallmark.driver.query_streams import Stopwatch
from stallmark.experiment.loads_beside import RunningStreams
from stallmark.record.schema import QUERIES_LEFT
from stallmark.record.writer import RecordWriter
from stallmark.scenarios.load import StreamsLoad

AT_A_RATE = {"kind": "fixed", "rate": 500}


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Callable[..., tuple[Server, RunningStreams]]]:
    writer, made = RecordWriter(tmp_path / "run", a_manifest()), []
    writer.add_table("queries_left", QUERIES_LEFT)

    def begin(streams: int = 2, otherwise: object = None, **keys: Any) -> tuple[Server, RunningStreams]:
        load = StreamsLoad(workload="warehouse", scale={"factor": 0.01}, streams=[streams], **keys)
        server = Server()
        server.otherwise = otherwise
        made.append(RunningStreams("reports", load, 1, server, writer, Stopwatch()))  # type: ignore[arg-type]
        made[-1].run(streams)
        return server, made[-1]

    yield begin
    for one in made:
        one.finish()


def until(holds: Callable[[], bool], streams: RunningStreams) -> None:
    deadline = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < deadline
        streams.poll(0.01)


def rows(tmp_path: Path, streams: RunningStreams) -> list[dict]:
    streams.finish()
    streams._drive._writer.close()
    return pq.read_table(tmp_path / "run" / "queries.parquet").to_pylist()


def test_a_new_rate_gives_up_no_query_and_forgets_those_that_wait(running, tmp_path):
    released = threading.Event()
    server, streams = running(otherwise=released, arrivals=AT_A_RATE)
    until(lambda: len(server.seen) >= 2 and streams.queue().waiting > 3, streams)
    begun = len(server.seen)
    streams.set_rate(1e-6)
    streams.run(2)
    assert streams.queue().waiting == 0 and streams.queue().streams == 2
    released.set()
    until(lambda: streams._drive._done == begun, streams)
    found = rows(tmp_path, streams)
    assert len(found) == begun and not any(row["error"] for row in found)
    left = streams.work_left()
    assert left["given_up"] == 0 and left["left_waiting"].arrivals > 3
    unended = pq.read_table(tmp_path / "run" / "queries_left.parquet").to_pylist()
    assert len(unended) == left["left_waiting"].arrivals
    assert all(one["started_s"] is None and one["due_s"] <= one["left_s"] for one in unended)
    assert streams.queue().due == begun + left["left_waiting"].arrivals


def test_another_number_of_streams_gives_up_what_is_under_way_and_says_so(running, tmp_path):
    server, streams = running(otherwise=threading.Event(), arrivals=AT_A_RATE)
    until(lambda: len(server.seen) == 2, streams)
    streams.run(0)
    assert streams.queue().streams == 0
    assert rows(tmp_path, streams) == [] and streams.work_left()["given_up"] == 2
    unended = pq.read_table(tmp_path / "run" / "queries_left.parquet").to_pylist()
    assert len([one for one in unended if one["started_s"] is not None]) == 2
    assert all(one["due_s"] <= (one["started_s"] or one["left_s"]) <= one["left_s"] for one in unended)


def test_streams_of_an_open_loop_take_all_22_queries_before_one_comes_again(running, tmp_path):
    _, streams = running(streams=3, arrivals=AT_A_RATE)
    until(lambda: streams._drive._done >= 100, streams)
    found = sorted(rows(tmp_path, streams), key=lambda row: row["due_s"])
    for at in (0, 22, 44):
        assert {row["query"] for row in found[at : at + 22]} == {f"Q{number}" for number in range(1, 23)}


def test_a_closed_loop_has_no_queue(running, tmp_path):
    server, streams = running(otherwise=threading.Event())
    until(lambda: len(server.seen) == 2, streams)
    assert streams.queue() is None and rows(tmp_path, streams) == []
    assert streams.work_left()["given_up"] == 2 and streams.work_left()["left_waiting"].arrivals == 0
