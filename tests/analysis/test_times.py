"""The measured seconds, and a server's clock: the dates of samples, and a jump while a step is measured."""

import numpy as np
import pyarrow as pa
import pytest
from support.comparisons import template
from support.manifests import a_manifest
from support.tables import InMemory

from stallmark.analysis.read.times import (
    Interval,
    clock_findings,
    measured_intervals,
    rows_with_times,
    sample_times,
    server_clock,
)


def steps(*times):
    return a_manifest(
        steps=[{"name": "", "users": 1, "begin_s": 0, "measure_s": measure, "end_s": end} for measure, end in times]
    )


def test_takes_whole_seconds_only():
    (interval,) = measured_intervals(steps((9.25, 33.5)), recorded=40, cut=False)
    assert (interval.begin, interval.end, interval.cut) == (10, 33, False)


@pytest.mark.parametrize(
    ("recorded", "found"),
    [
        (9, []),
        (10, []),
        (15, [(10, 15, True)]),
        (30, [(10, 30, False)]),
        (38, [(10, 30, False)]),
        (45, [(10, 30, False), (40, 45, True)]),
        (99, [(10, 30, False), (40, 60, False)]),
    ],
)
def test_a_cut_run_keeps_what_there_is(recorded, found):
    intervals = measured_intervals(steps((10, 30), (40, 60)), recorded, cut=True)
    assert [(i.begin, i.end, i.cut) for i in intervals] == found


def test_silence_at_the_end_of_a_complete_run_is_measured():
    (interval,) = measured_intervals(steps((10, 30)), recorded=25, cut=False)
    assert interval.end == 30 and not interval.cut


def test_without_steps_nothing_is_measured():
    assert measured_intervals(a_manifest(), 50, cut=True) == []


class Table(InMemory):
    """Stands for a record whose only table is server_io, if no others are given."""

    def __init__(self, columns: dict[str, np.ndarray], **others: pa.Table):
        tables = {"server_io": pa.table(columns)} | others
        super().__init__(tables, collectors={name: {"title": name} for name in tables})

    def column(self, name: str) -> np.ndarray:
        return self.tables["server_io"][name].to_numpy()


OFFSET_S, DRIFT = 1.7e9 - 3600.25, 2e-4


def calls(took_s: np.ndarray, counted: np.ndarray, jump_s: float = 0.0, **columns: np.ndarray) -> Table:
    """Calls that begin every second; `counted`: where in its call the server says its time, 0 to 1."""
    began = np.arange(len(took_s), dtype=float)
    at = began + counted * took_s
    server = OFFSET_S + at * (1 + DRIFT) + np.where(began > len(began) / 2, jump_s, 0.0)
    return Table({"t": began + took_s / 2, "took_s": took_s, "server_time": server, "at": at} | columns)


def test_samples_are_dated_by_the_servers_clock_of_the_shortest_calls():
    random = np.random.default_rng(1)
    slow = random.random(600) < 0.7
    table = calls(np.where(slow, 6.0 * random.random(600), 0.004), random.random(600))
    clock = server_clock(table)
    assert clock.drift == pytest.approx(DRIFT, abs=1e-5)
    assert clock.offset_s == pytest.approx(OFFSET_S, abs=0.01) and clock.uncertainty_s < 0.02
    at = table.column("at")
    times = np.concatenate([times for times, _ in rows_with_times(table, "server_io", ())])
    assert np.abs(times - at).max() < 0.02
    assert np.abs(table.column("t") - at).max() > 2.5  # as the middle of the call would have it


def test_the_calls_of_every_collector_show_the_servers_clock():
    random = np.random.default_rng(1)
    slow, short = (calls(np.full(600, took_s), random.random(600)) for took_s in (3.0, 0.004))
    assert server_clock(slow).uncertainty_s > 0.1
    both = Table(slow.tables["server_io"].to_pydict(), new=short.tables["server_io"], host=pa.table({"t": [1.0]}))
    clock = server_clock(both)
    assert clock.offset_s == pytest.approx(OFFSET_S, abs=0.01) and clock.uncertainty_s < 0.02


def test_a_clock_that_jumps_dates_no_sample_outside_of_its_call():
    table = calls(np.full(600, 0.5), np.full(600, 0.5), jump_s=30.0)
    assert np.abs(sample_times(table, "server_io") - table.column("at")).max() <= 0.25 + 1e-6


def test_without_the_length_of_calls_their_middle_counts():
    table = Table({"t": np.arange(9.0), "server_time": np.arange(9.0) + 5})
    assert server_clock(table) is None
    assert list(sample_times(table, "server_io")) == list(range(9))


STEP = Interval(0, 5, 95, 90.0, False)


def found(server: np.ndarray, t: np.ndarray, monkeypatch) -> float | None:
    monkeypatch.setattr("stallmark.analysis.read.times._clocks", lambda record: (t, server))
    jumped = clock_findings(None, [STEP]).get(STEP.span)
    return jumped and jumped.facts["jump_s"]


@pytest.mark.parametrize(("jump", "told"), [(3600.0, 3600.0), (-2.5, -2.5), (0.5, None)])
def test_a_jump_of_more_than_a_second_is_told(jump, told, monkeypatch):
    t = np.arange(100) + 0.3
    server = 1.7e9 + t + np.where(t > 50, jump, 0.0)
    assert found(server, t, monkeypatch) == (told and pytest.approx(told))


def test_a_late_sample_and_a_clock_that_drifts_are_no_jump(monkeypatch):
    t = np.arange(100) + 0.3
    server = 1.7e9 + t * (1 + 5e-4)
    server[50] += 4.0
    assert found(server, t, monkeypatch) is None


def test_a_jump_outside_the_measured_interval_changes_no_figure(monkeypatch):
    t = np.arange(100) + 0.3
    assert found(1.7e9 + t + np.where(t > 97, 60.0, 0.0), t, monkeypatch) is None


def test_a_sound_record_has_none(tmp_path):
    assert template(tmp_path).steps[0].validity.invalid == []
