"""A run that is followed: each row added is read once, whole, and the figures are those of the record."""

import shutil

import numpy as np
import pytest
from support.synthetic import Truth, make_run

from stallmark.live.followed import FollowedRun
from stallmark.live.lines import MEANS, WAITS, mean, means, sums
from stallmark.record.growing import GrowingStream
from stallmark.record.reader import Record

WHOLE = slice(None)


@pytest.fixture(scope="module")
def cut(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("cut") / "run", Truth(cut_at=40, measured_s=60, read_ms=8.0))


def test_a_stream_cut_anywhere_gives_every_row_once(cut, tmp_path):
    whole = (cut / "users.arrows").read_bytes()
    path = tmp_path / "users.arrows"
    stream, seconds = GrowingStream(path), []
    for length in (*range(0, len(whole), 333), len(whole)):
        path.write_bytes(whole[:length])
        for batch in stream.read():
            seconds += batch.column("second").to_pylist()
    assert seconds == Record(cut).table("users")["second"].to_pylist() and len(seconds) == 80
    assert stream.read() == []


def test_a_run_followed_piece_by_piece_is_that_of_the_record(cut, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(cut, folder)
    tables = {path: path.read_bytes() for path in folder.glob("*.arrows")}
    followed = FollowedRun(Record(folder))
    for part in range(1, 9):
        for path, content in tables.items():
            path.write_bytes(content[: len(content) * part // 8])
        followed.follow(Record(folder))
    record = Record(folder)
    assert followed.seconds == 40 and not followed.whole
    committed = record.table("transactions")["committed"].to_pylist()
    assert followed.sums["committed"].tolist() == committed
    tallied = [(key, tally.counts["committed"], tally.latencies.size) for key, tally in followed.tallies.items()]
    warm, measured = sum(committed[:5]), sum(committed[5:])
    assert sorted(tallied) == [((0, False, "transfer"), warm, warm), ((0, True, "transfer"), measured, measured)]
    raw = record.table("server_io").to_pylist()
    assert followed.files["client backend/relation/normal"]["reads"] == max(
        row["reads"] for row in raw if row["entity"] == "client backend/relation/normal"
    )


def test_means_are_weighted_by_what_they_are_of(cut):
    found = sums(Record(cut), 40)
    assert mean(found, "read_ms", WHOLE) == pytest.approx(8.0, rel=0.05)
    assert mean(found, "log_ms", WHOLE) == pytest.approx(2.1, rel=0.05)  # a sync of 2 ms, and the write before it
    assert mean(found, "hit_share", WHOLE) == pytest.approx(0.9, rel=0.01)
    assert means(found, "tps", 10).tolist() == pytest.approx(found["committed"].reshape(4, 10).mean(axis=1).tolist())
    assert means({"reads": np.array([1, 3, 0]), "read_stall_ms": np.array([4, 0, 0])}, "read_ms", 2)[0] == 1
    assert np.isnan(means({"reads": np.array([0]), "read_stall_ms": np.array([0])}, "read_ms", 1)[0])


def test_nothing_measured_is_missing_and_not_zero(tmp_path):
    folder = make_run(tmp_path / "run", Truth(cut_at=10, off=("server_io", "wal", "database", "waits")))
    followed = FollowedRun(Record(folder))
    followed.follow(Record(folder))
    known = {line: mean(followed.sums, line, WHOLE) for line in (*MEANS, *WAITS)}
    assert {line for line, value in known.items() if value is not None} == {"tps", "latency_ms"}


def test_a_run_that_has_ended_is_read_to_the_end_of_its_last_step(tmp_path):
    folder = make_run(tmp_path / "run", Truth(measured_s=10))
    followed = FollowedRun(Record(folder))
    followed.follow(Record(folder))
    assert followed.whole and followed.seconds == 15
    assert followed.measured().tolist() == [False] * 5 + [True] * 10
