"""Waits of the users."""

import threading

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.clusters import Cluster, ClusterEngine
from support.collecting import opened
from support.waiting import eventually

from stallmark.collectors.postgres.waits import UserWaits, wait_class

WAIT_CLASSES = ("io", "lock", "wal", "cpu", "client", "other")


def test_waits_count_each_user_once_per_poll(cluster: Cluster, engine: ClusterEngine, user) -> None:
    holder = engine.connect("not a user")
    holder.execute("CREATE TABLE locked (i int); INSERT INTO locked VALUES (1)")
    holder.execute("BEGIN; UPDATE locked SET i = 2")
    busy = [engine.connect(f"stallmark-user{load}") for load in ("", "-bank", "-mail")]
    statements = ["UPDATE locked SET i = 3", "UPDATE locked SET i = 4", "DO $$ BEGIN LOOP END LOOP; END $$"]
    threads = [threading.Thread(target=_until_cancelled, args=pair) for pair in zip(busy, statements, strict=True)]
    for thread in threads:
        thread.start()
    try:
        waiting = (
            "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'stallmark-user%'"
            " AND state = 'active' AND (wait_event_type = 'Lock' OR query LIKE 'DO%')"
        )
        eventually(lambda: engine.query(waiting) == [(3,)])
        with opened(UserWaits(engine)) as waits:
            for tick in range(10):
                assert waits.sample(5 + tick / 10) == []
            rows = waits.sample(6.0)
            rest = waits.finish()
    finally:
        for connection in busy:
            connection.cancel()
        for thread in threads:
            thread.join()
        holder.execute("ROLLBACK; DROP TABLE locked")
        for connection in (*busy, holder):
            connection.close()
    assert {row["second"] for row in rows} == {5} and {row["polls"] for row in rows} == {10}
    samples = {kind: sum(row["samples"] for row in rows if row["wait_class"] == kind) for kind in WAIT_CLASSES}
    assert samples == {"lock": 20, "cpu": 10, "client": 10, "io": 0, "wal": 0, "other": 0}
    locked = {row["application"]: row["samples"] for row in rows if row["wait_class"] == "lock"}
    assert locked == {"stallmark-user": 10, "stallmark-user-bank": 10}
    assert {row["application"] for row in rows if row["wait_class"] == "cpu"} == {"stallmark-user-mail"}
    assert {row["second"] for row in rest} == {6} and sum(row["samples"] for row in rest) == 4


def _until_cancelled(connection: psycopg.Connection, statement: str) -> None:
    with pytest.raises(psycopg.errors.QueryCanceled):
        connection.execute(statement)


@pytest.mark.parametrize(
    ("state", "event_type", "event", "expected"),
    [
        ("active", None, None, ("cpu", "CPU")),
        ("active", "IO", "DataFileRead", ("io", "IO:DataFileRead")),
        ("active", "IO", "AioIoCompletion", ("io", "IO:AioIoCompletion")),
        ("active", "IPC", "BufferIO", ("io", "IPC:BufferIO")),
        ("active", "IPC", "BufferIo", ("io", "IPC:BufferIo")),
        ("active", "IO", "WALSync", ("wal", "IO:WALSync")),
        ("active", "IO", "WalWrite", ("wal", "IO:WalWrite")),
        ("active", "LWLock", "WALWrite", ("wal", "LWLock:WALWrite")),
        ("active", "LWLock", "BufferMapping", ("other", "LWLock:BufferMapping")),
        ("active", "Lock", "tuple", ("lock", "Lock:tuple")),
        ("active", "Client", "ClientRead", ("client", "Client:ClientRead")),
        ("active", "IPC", "ExecuteGather", ("other", "IPC:ExecuteGather")),
        ("idle", "Client", "ClientRead", ("client", "idle")),
        ("idle in transaction", "Client", "ClientRead", ("client", "idle in transaction")),
        ("idle", "LWLock", "ProcArray", ("client", "idle")),
        ("disabled", "IO", "DataFileRead", ("io", "IO:DataFileRead")),
        (None, None, None, ("other", "starting")),
    ],
)
def test_wait_classes(state, event_type, event, expected) -> None:
    assert wait_class(state, event_type, event) == expected


words = st.none() | st.text(min_size=1) | st.sampled_from(["IO", "LWLock", "IPC", "Lock", "Client", "WALSync"])


@given(words, words, words)
def test_every_wait_has_a_class(state, event_type, event) -> None:
    kind, name = wait_class(state, event_type, event)
    assert kind in WAIT_CLASSES and name
