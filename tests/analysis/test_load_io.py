"""Reads by load: against sessions whose every read is known."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.tables import InMemory

from stallmark.analysis.read.load_io import OTHER_SESSIONS, IoByLoad, LoadIo, LoadSessions
from stallmark.analysis.read.server_io import read_server_io
from stallmark.analysis.read.times import Interval
from stallmark.collectors.columns import EndedSessions

STEP = Interval(index=0, begin=10, end=30, planned_s=20, cut=False)
SECONDS = range(0, 41)
STEPS = [{"name": "one", "users": 2, "begin_s": 0, "measure_s": 10, "end_s": 30}]
LOADS = [{"name": name, "kind": "users", "counts": [2]} for name in ("bank", "mail")]
BLOCK = 8192

Session = tuple[int, int, int]
"""When it began and ended (s), and its reads per second."""


def done(session: Session, t: float) -> int:
    began, ended, rate = session
    return max(0, min(round(t), ended) - began) * rate


def sampled(loads: dict[str, list[Session]]) -> list[dict]:
    collected, rows = EndedSessions(), []
    for t in SECONDS:
        alive = {name: [(n, s) for n, s in enumerate(them) if s[0] <= t < s[1]] for name, them in loads.items()}
        answer = [
            {
                "epoch": "start",
                "application": f"stallmark-user-{name}",
                "sessions": ",".join(str(n) for n, _ in them),
                "reads": sum(done(session, t) for _, session in them),
                "writes": 0,
                "read_bytes": sum(done(session, t) for _, session in them) * BLOCK,
                "write_bytes": 0,
            }
            for name, them in alive.items()
            if them
        ]
        rows += [{"t": float(t)} | row for row in collected.with_session_counts(answer)]
    return rows


def server(entity: str, kind: str, rate: int) -> list[dict]:
    named = {"epoch": "start", "entity": entity, "kind": kind, "writes": 0, "write_bytes": 0}
    return [named | {"t": float(t), "reads": t * rate, "read_bytes": t * rate * BLOCK} for t in SECONDS]


def within(loads: dict[str, list[Session]], *entities: list[dict], product: str = "SQL Server") -> IoByLoad | None:
    tables = {"load_io": sampled(loads), "server_io": [row for rows in entities for row in rows]}
    there = {name: pa.Table.from_pylist(rows) for name, rows in tables.items() if rows}
    record = InMemory(there, server={"product": product}, steps=STEPS, loads=LOADS)
    sessions = LoadSessions(record, [STEP])
    return sessions.io_by_load(read_server_io(record, sessions.stretches))[STEP.span]


ANY = st.lists(st.tuples(st.integers(0, 35), st.integers(0, 45), st.integers(0, 500)), max_size=6)


@given(ANY)
def test_whatever_ends_a_figure_is_that_of_its_seconds_or_missing(sessions):
    sessions = [session for session in sessions if session[0] < session[1]]
    found = within({"bank": sessions})
    if not found or not (io := found.loads["bank"]):
        return
    assert STEP.begin <= io.begin < io.end <= STEP.end and io.seconds >= 10
    assert io.reads == pytest.approx(sum(done(s, io.end) - done(s, io.begin) for s in sessions))
    assert io.read_bytes == pytest.approx(io.reads * BLOCK)


def test_a_session_that_ends_with_its_step_takes_nothing_away():
    found = within({"bank": [(0, 30, 100)] * 3})
    assert found and (io := found.loads["bank"])
    assert io.reads_per_s == 300 and io.end >= 29


def test_a_session_that_joins_is_counted_from_its_first_read():
    found = within({"bank": [(0, 40, 100), (15, 40, 40)]})
    assert found and (io := found.loads["bank"])
    assert (io.begin, io.end, io.reads) == (10, 30, 20 * 100 + 15 * 40)


def test_where_sessions_come_and_go_all_the_time_the_load_is_not_known():
    churning = [(second, second + 5, 100) for second in range(0, 36, 2)]
    found = within({"bank": churning, "mail": [(0, 40, 7)]}, server("bank/bank", "data", 400))
    assert found and found.loads["bank"] is None and (mail := found.loads["mail"])
    assert mail.reads == 20 * 7
    assert (found.server, found.others, found.loads_share) == (None, None, None)


def test_a_load_that_rests_is_left_out():
    found = within({"bank": [(0, 40, 10)], "mail": [(0, 8, 100)]})
    assert found and found.loads.keys() == {"bank"}


def test_what_is_left_of_the_server_s_reads_is_told_by_process():
    loads = {"bank": [(0, 40, 300)], "mail": [(0, 40, 100)]}
    found = within(
        loads,
        server("client backend/relation/normal", "data", 405),
        server("client backend/wal/normal", "wal", 77),
        server("autovacuum worker/relation/vacuum", "data", 90),
        server("background worker/relation/bulkread", "data", 5),
        product="PostgreSQL",
    )
    assert found and found.server and found.others
    assert found.server.reads == pytest.approx(20 * 500)
    expected = {OTHER_SESSIONS: 20 * 5, "autovacuum worker": 20 * 90, "background worker": 20 * 5}
    assert found.others == pytest.approx(expected)
    assert found.loads_share == pytest.approx(0.8)


def test_sql_server_does_not_tell_processes_apart():
    found = within(
        {"bank": [(0, 40, 300)]},
        server("bank/bank", "data", 310),
        server("tempdb/tempdev", "temp", 10),
        server("crm/crm", "foreign", 999),
    )
    assert found and found.others == pytest.approx({OTHER_SESSIONS: 20 * 20})


def test_a_server_that_does_not_count_by_session_has_no_loads():
    assert within({}, server("bank/bank", "data", 310)) is None


@pytest.mark.parametrize(("reads", "share"), [(5_000.0, 0.98), (20.0, None)])
def test_of_a_server_that_hardly_reads_no_share_is_told(reads, share):
    found = IoByLoad({}, LoadIo(0, 10, reads, 0.0, None, None), {"io worker": 100.0})
    assert found.loads_share == share
