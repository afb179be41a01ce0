"""The run's own CPU time: never the host's."""

from dataclasses import replace

import pytest
from support.synthetic import Truth, make_run
from support.synthetic_steps import STEADY, step_of

from stallmark.analysis.bottleneck.summary import NoteKind
from stallmark.analysis.read.interval import Interval
from stallmark.analysis.read.io import OwnCpu, cpu_of_run, read_io
from stallmark.analysis.read.server_io import read_server_io
from stallmark.analysis.read.throughput import read_load
from stallmark.record.reader import Record

INTERVAL = Interval(0, 10, 20, 10, False)


def used(tmp_path, truth: Truth) -> OwnCpu | None:
    record = Record(make_run(tmp_path / "run", truth))
    return cpu_of_run(read_load(record, 20, [INTERVAL]), read_io(record, read_server_io(record)), INTERVAL)


def test_it_is_of_server_and_client_whatever_else_runs(tmp_path):
    truth = replace(STEADY, host_cpu=0.95, foreign_cpu=0.5, run_delay=0.7)
    own = used(tmp_path, truth)
    assert own is not None and own.cores == pytest.approx(0.45 * truth.cores, abs=0.01)
    assert own.server_run_delay_s == pytest.approx(0.7 * own.seconds)
    assert own.client_s == pytest.approx((2 * truth.executor_cpu + 0.04) * own.seconds)


def test_without_the_server_s_processes_it_is_not_known(tmp_path):
    assert used(tmp_path, replace(STEADY, off=("server_cpu",))) is None


def test_a_client_elsewhere_is_no_part(tmp_path):
    own = used(tmp_path, replace(STEADY, off=("host",)))
    assert own is not None and own.client_s == 0.0 and own.cores == pytest.approx(STEADY.server_cores)


def test_other_work_raises_no_cpu_time_per_transaction(tmp_path):
    quiet = step_of(tmp_path / "quiet", replace(STEADY, host_cpu=0.5))
    noisy = step_of(tmp_path / "noisy", replace(STEADY, host_cpu=0.95, foreign_cpu=0.45))
    assert quiet.cause and noisy.cause and quiet.cause.demands and noisy.cause.demands
    assert noisy.cause.demands.cpu_ms == pytest.approx(quiet.cause.demands.cpu_ms, rel=0.02)


def test_old_records_have_no_cpu_time_per_transaction(tmp_path):
    step = step_of(tmp_path, replace(STEADY, off=("server_cpu",)))
    assert step.cause and step.cause.demands and step.cause.demands.cpu_ms is None
    assert NoteKind.CPU_UNKNOWN in [note.kind for note in step.cause.notes]
