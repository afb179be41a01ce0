import pyarrow as pa
import pytest
from support.tables import InMemory

from stallmark.analysis.read.counters import Delta
from stallmark.analysis.read.io import host_cpu
from stallmark.analysis.read.server_summary import WAIT_CLASSES
from stallmark.analysis.read.throughput import Part
from stallmark.analysis.read.times import Interval
from stallmark.analysis.read.waits import SessionWaits

READ, WRITE, LOCK = ("io", "IO:DataFileRead"), ("io", "IO:DataFileWrite"), ("lock", "Lock:tuple")


NAMES = ("second", "wait_class", "event", "samples", "polls")


def session_waits(*rows, intervals=((0, 0, 10),)):
    part = Part(None, 10, [Interval(i, a, b, None, False) for i, a, b in intervals])
    sampled = pa.Table.from_pylist([dict(zip(NAMES, row, strict=True)) for row in rows])
    return SessionWaits(InMemory({"waits": sampled}, [3]), [part]), part


def waits(*rows, intervals=((0, 0, 10),)):
    found, part = session_waits(*rows, intervals=intervals)
    return found.sampled(part)


def test_a_busy_second_polled_less_often_weighs_the_same():
    found = waits((0, *READ, 300, 10), (1, *LOCK, 60, 2))[0]
    assert found.shares()["io"] == pytest.approx(0.5)
    assert found.shares()["lock"] == pytest.approx(0.5)


def test_classes_sum_events_and_shares_sum_to_one():
    found = waits((0, *READ, 18, 1), (0, *WRITE, 6, 1), (1, *READ, 3, 1), (1, "new kind", "X:y", 3, 1))[0]
    assert found.shares() == dict.fromkeys(WAIT_CLASSES, 0.0) | {"io": 0.9, "other": 0.1}
    assert found.top() == [("IO:DataFileRead", 0.7), ("IO:DataFileWrite", 0.2), ("X:y", 0.1)]


def test_every_interval_has_its_own_and_the_warm_up_none():
    found = waits(
        *((second, *(READ if second < 6 else LOCK), 10, 1) for second in range(12)),
        intervals=((0, 2, 6), (1, 8, 12), (2, 20, 30)),
    )
    assert found.keys() == {0, 1}
    assert found[0].shares()["io"] == 1 and found[1].shares()["lock"] == 1


def test_shares_of_fewer_than_thirty_samples_are_not_known():
    """However many polls found so few."""
    rows = [(second, *READ, 1, 5) for second in range(10)]
    assert waits(*rows, (9, *LOCK, 19, 5)) == {}
    assert waits(*rows, (9, *LOCK, 20, 5)).keys() == {0}
    found, part = session_waits(*rows, (9, *LOCK, 19, 5))
    parts = found.parts(part)
    assert parts is not None and parts.mean_sessions(Interval(0, 0, 10, None, False)) == ({}, 0)


def test_background_sessions_without_an_order_take_nothing_from_the_shares_of_those_who_work():
    idle = ("client", "idle")
    found = waits(*((second, *who) for second in range(4) for who in ((*READ, 20, 1), (*idle, 40, 1))))[0]
    assert found.shares()["io"] == pytest.approx(1 / 3)
    assert found.without_idle(30).shares() == dict.fromkeys(WAIT_CLASSES, 0.0) | {"io": 2 / 3, "client": 1 / 3}
    assert found.without_idle(30).top() == [("IO:DataFileRead", pytest.approx(2 / 3)), ("idle", pytest.approx(1 / 3))]
    assert found.without_idle(19).shares()["io"] == 1  # looks scatter
    assert found.without_idle(0) is found  # nobody ran: then there is nobody whose time it could be a share of
    assert found.without_idle(60) is found and found.without_idle(99) is found


def test_waiting_for_io_is_not_a_busy_cpu_and_stolen_time_is():
    host = {"user_s": 2.0, "system_s": 1.0, "iowait_s": 4.0, "idle_s": 2.0, "steal_s": 1.0}
    assert host_cpu(Delta(0, 5, False, host)).busy_share == pytest.approx(0.4)
    without = {"user_s": 1.0, "system_s": 1.0, "idle_s": 8.0}
    assert host_cpu(Delta(0, 5, False, without)).busy_share == pytest.approx(0.2)
    assert host_cpu(Delta(0, 5, True, host)) is None
