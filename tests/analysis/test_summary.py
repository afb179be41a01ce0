"""Whole records of known truth through `summarise`."""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from support.findings import facts_of, kinds_of
from support.synthetic import EMULATED, MIB, Step, Truth, make_experiment, make_run
from support.synthetic_steps import STEADY, step_of
from support.tables import With, get, put

from stallmark.analysis.bottleneck import DeviceKind
from stallmark.analysis.cautions import CautionKind
from stallmark.analysis.experiment import summarise
from stallmark.analysis.finding import ExperimentKind, invalid
from stallmark.analysis.pool_curve import CurveKind
from stallmark.analysis.read.times import ReadKind
from stallmark.analysis.validity import CounterSource, ValidityKind
from stallmark.analysis.validity_gates import GateKind
from stallmark.errors import StallmarkError
from stallmark.record.reader import Record, find_records
from stallmark.report.experiment import experiment_in_json
from stallmark.report.renderers import dumped, in_json

pytestmark = pytest.mark.thorough


def test_the_quantities_of_a_step_are_those_of_the_truth(tmp_path):
    device = EMULATED | {"spindles": 16}
    step = step_of(tmp_path, replace(STEADY, tps=500, think_ms=20, read_ms=12.5, device=device))
    assert (step.throughput.committed, step.throughput.tps, step.interval.measured_s, step.interval.warm_up_s) == (
        15_000,
        500,
        30,
        5,
    )
    assert step.latency.mean_ms == pytest.approx(30 / 500 * 1000 * 0.99 - 20, rel=1e-3)
    assert step.storage.reads_per_transaction == pytest.approx(2.0, rel=1e-3)
    io = step.storage.data
    assert io.seconds == pytest.approx(28.4)  # the last sample is 0.7 s before the end and shows 0.9 s earlier
    assert io.read_ms == pytest.approx(12.5, rel=1e-3)
    assert io.read_interval_mean_ms == pytest.approx(12.5, rel=5e-3)
    assert io.iops == pytest.approx(500 * 2.2, rel=1e-3)
    assert io.mb_per_s == pytest.approx(500 * 2.2 * 8192 / 1e6, rel=1e-3)
    assert step.storage.read_stall_ms_per_s == pytest.approx(500 * 2 * 12.5, rel=1e-3)
    assert step.server.hit_share == pytest.approx(0.9, abs=1e-3)
    assert step.server.cpu_busy_share == pytest.approx(0.35)
    assert sum(step.waits.share.values()) == pytest.approx(1)
    assert step.waits.share["io"] == pytest.approx(0.72, abs=0.02)
    assert step.waits.top[0][0] == "IO:DataFileRead"
    assert step.storage.busy_share == pytest.approx(500 * (2 * 8 + 0.2 * 4) / 16_000, rel=2e-3)
    assert step.storage.wal.syncs == pytest.approx(500 * 0.3 * io.seconds, rel=1e-3)
    assert step.storage.wal.sync_ms == pytest.approx(2, rel=1e-2)
    assert step.validity.invalid == [] and step.validity.driver_bound == []


def test_extends_count_as_writes(tmp_path):
    step = step_of(tmp_path, replace(STEADY, writes_per_transaction=0, extends_per_second=40, write_ms=3))
    assert step.storage.data.writes == pytest.approx(40 * step.storage.data.seconds, rel=0.01)
    assert step.storage.data.write_bytes == step.storage.data.writes * 8192
    assert step.storage.data.write_ms == pytest.approx(3)


def test_the_mean_over_ios_and_the_mean_of_seconds_differ_where_volume_does(tmp_path):
    """A second full of slow reads weighs more than an idle one; drawing tools would weigh them alike."""
    folder = make_run(tmp_path / "run", replace(STEADY, measured_s=20, warm_up_s=0))
    samples = [(t, 1000 * (t // 2), 1000 * (t // 2) * 20.0 + 10.0 * (t - t // 2)) for t in range(21)]
    reads = [r + (t - t // 2) * 10 for t, r, _ in samples]
    clock = {"kind": "data", "entity": "e", "epoch": "x"}
    rows = [
        clock | {"t": float(t), "reads": n, "read_stall_ms": s} for (t, _, s), n in zip(samples, reads, strict=True)
    ]
    record = With(folder, server_io=rows)
    record.manifest = record.manifest.changed(server={"product": "a server that reports at once"})
    io = summarise([record]).steps[0].storage.data
    assert io.read_ms == pytest.approx((1000 * 20 + 10) / 1010, rel=1e-6)
    assert io.read_interval_mean_ms == pytest.approx((20 + 1) / 2, rel=1e-6)


@pytest.mark.parametrize("how", ["epoch_change_at", "falls_at"])
def test_counters_that_begin_again_while_measured_are_not_used(tmp_path, how):
    step = step_of(tmp_path, replace(STEADY, **{how: 20.0}))
    assert step.storage.data is None and step.storage.wal is None
    assert (
        step.storage.reads_per_transaction is None
        and step.storage.read_stall_ms_per_s is None
        and step.server.hit_share is None
    )
    assert step.storage.data_device is not None  # the device was not restarted
    assert step.throughput.tps == 400
    assert invalid(ValidityKind.COUNTERS_BEGAN_AGAIN, of=CounterSource.DATA_FILES) in step.validity.invalid


def without_times(
    folder: Path, begin: float, end: float, table: str = "server_io", kinds: Sequence[str] = ("data",)
) -> Record:
    """A run whose server did not time its I/O from `begin` to before `end`."""
    rows = get(folder, table).to_pylist()
    for row in rows:
        if begin <= row["t"] < end and row.get("kind") in (None, *kinds):
            row |= {name: None for name in row if name.endswith(("stall_ms", "write_ms", "sync_ms"))}
    put(folder, table, pa.Table.from_pylist(rows, schema=get(folder, table).schema))
    return Record(folder)


@pytest.mark.parametrize(
    ("begin", "end", "invalid_kinds"),
    [
        (15, 25, [ValidityKind.NOT_TIMED]),  # a mean over all reads would be too small by a third
        (20, 99, [ValidityKind.NOT_TIMED]),
        (0, 20, [ValidityKind.NOT_TIMED]),
        (0, 3, []),  # in the warm-up
        (99, 99, []),
        (0, 99, []),  # never: no times at all, which is known
    ],
)
def test_io_that_was_not_timed_for_a_while_has_no_times(tmp_path, begin, end, invalid_kinds):
    record = without_times(make_run(tmp_path / "run", STEADY), begin, end)
    [step] = summarise([record]).steps
    assert [one.kind for one in step.validity.invalid] == invalid_kinds
    if invalid_kinds:
        assert step.validity.invalid[0].facts["of"] is CounterSource.DATA_FILES
        data = step.storage.data  # none, or of the seconds before
        assert data is None or (data.seconds < 15 and data.read_ms == pytest.approx(8, rel=0.02))
        assert step.storage.wal is not None
    elif (begin, end) == (0, 99):
        assert step.storage.data.reads and step.storage.data.read_ms is None
    else:
        assert step.storage.data.read_ms == pytest.approx(8, rel=0.02)


@pytest.mark.parametrize("has_view", [False, True])
def test_the_log_has_a_setting_of_its_own(tmp_path, has_view):
    """Up to PostgreSQL 17 its I/O is in a view of its own."""
    folder = make_run(tmp_path / "run", STEADY)
    without_times(folder, 15, 25, kinds=["wal"])
    if has_view:
        table = get(folder, "server_io")
        put(folder, "server_io", table.filter(pc.not_equal(table["kind"], "wal")))
        view = get(folder, "wal")
        rows = [row | {"writes": row["records"], "write_ms": row["records"] / 2} for row in view.to_pylist()]
        put(folder, "wal", pa.Table.from_pylist(rows, schema=view.schema))
    [step] = summarise([without_times(folder, 15, 25, "wal")]).steps
    assert step.validity.invalid == [invalid(ValidityKind.NOT_TIMED, of=CounterSource.LOG)]
    assert step.storage.wal is None and step.storage.data.read_ms == pytest.approx(8, rel=0.02)


@pytest.mark.parametrize("has_syncs", [True, False])
def test_the_view_of_the_log_has_a_page_more_for_each_flush(tmp_path, has_syncs):
    """It counts the length of the records. With open_datasync writes are flushes, and no sync is counted."""
    folder = make_run(tmp_path / "run", STEADY)
    table = get(folder, "server_io")
    put(folder, "server_io", table.filter(pc.not_equal(table["kind"], "wal")))
    view = get(folder, "wal")
    rows = [
        row | {"bytes": 300_000 * number, "writes": 2000 * number, "syncs": 1000 * number * has_syncs}
        for number, row in enumerate(view.to_pylist())
    ]
    put(folder, "wal", pa.Table.from_pylist(rows, schema=view.schema))
    [step] = summarise([Record(folder)]).steps
    log = step.storage.wal
    assert log.write_bytes / log.writes == pytest.approx((300 + 8192 * (1 if has_syncs else 2)) / 2, rel=1e-4)


@pytest.mark.parametrize(("reset", "is_told"), [(20.0, True), (2.0, False), (99.0, False)])
@pytest.mark.parametrize("name", ["database", "checkpoints"])
def test_statistics_that_somebody_reset_are_said(tmp_path, name, reset, is_told):
    """pg_stat_reset and pg_stat_reset_shared: these counters alone."""
    folder = make_run(tmp_path / "run", STEADY)
    table = get(folder, name)
    rows = [row | {"epoch": "another"} if row["t"] > reset else row for row in table.to_pylist()]
    put(folder, name, pa.Table.from_pylist(rows, schema=table.schema))
    record = Record(folder)
    [step] = summarise([record]).steps
    title = record.manifest.collectors[name].title
    assert facts_of(step.validity.gaps, ReadKind.COUNTERS_RESTARTED) == ([{"sources": [title]}] if is_told else [])
    assert (step.server.hit_share is None) == (is_told and name == "database") and not step.validity.invalid


def test_counters_that_begin_again_in_the_warm_up_do_no_harm(tmp_path):
    step = step_of(tmp_path, replace(STEADY, epoch_change_at=2.0))
    assert step.validity.invalid == []
    assert step.storage.reads_per_transaction == pytest.approx(2.0, rel=1e-3)


def test_a_restart_leaves_a_gap_in_the_lines(tmp_path):
    series = summarise([Record(make_run(tmp_path / "run", replace(STEADY, epoch_change_at=20.0)))]).runs[0].series
    unknown = [18, 19, 20]  # from what the last sample before it showed to the first one after it
    assert np.flatnonzero(np.isnan(series.read_ms)).tolist() == [*unknown, 33, 34]
    assert (series.tps == 400).all()


def test_lines_have_one_value_a_second(steady):
    (run,) = summarise([Record(steady)]).runs
    lengths = {len(line) for line in vars(run.series).values() if line is not None}
    assert lengths == {35}
    known = ~np.isnan(run.series.read_stall_ms_per_s)
    known[0] = False
    assert known.sum() == 32
    assert run.series.read_stall_ms_per_s[known] == pytest.approx(400 * 2 * 8, rel=1e-3)
    assert run.series.users == pytest.approx(30)


@pytest.mark.parametrize("cut_at", [3, 5, 12, 34])
def test_a_killed_run_keeps_the_seconds_there_are(tmp_path, cut_at):
    (run,) = summarise([Record(make_run(tmp_path / "run", replace(STEADY, cut_at=cut_at)))]).runs
    assert "killed" in run.incomplete_because
    if cut_at <= 5:
        assert run.steps == []
        return
    (step,) = run.steps
    assert step.interval.cut
    assert step.throughput.tps == 400
    assert 0 < step.interval.measured_s < 30 and step.interval.measured_s >= cut_at - 5 - 1
    assert [one.kind for one in step.validity.invalid] == [ValidityKind.ENDED_EARLY]
    assert step.storage.reads_per_transaction == pytest.approx(2.0, rel=1e-2)


def test_nothing_at_all_measured_is_said(tmp_path):
    summary = summarise([Record(make_run(tmp_path / "run", replace(STEADY, cut_at=2)))])
    assert summary.steps == []
    assert kinds_of(summary.findings) == [ExperimentKind.NOTHING_MEASURED]
    dumped(experiment_in_json(summary))


@pytest.mark.parametrize("off", ["server_io", "waits", "device", "host", "database", "wal", "checkpoints"])
def test_a_collector_that_is_off_leaves_its_quantities_unknown(tmp_path, off):
    (run,) = summarise([Record(make_run(tmp_path / "run", replace(STEADY, off=(off,))))]).runs
    (step,) = run.steps
    assert len(run.collectors_off) == 1
    assert step.throughput.tps == 400 and step.validity.invalid == []
    missing = {
        "server_io": ("data_io", "reads_per_transaction", "read_stall_ms_per_s"),
        "waits": ("wait_share",),
        "device": ("device_io", "wal_device_io", "device_busy_share"),
        "host": ("cpu_busy_share",),
        "database": ("hit_share", "foreign_io_share"),
    }
    told = in_json(step)
    assert all(told[key] is None for key in missing.get(off, ()))


def test_a_buffer_pool_sweep(tmp_path):
    make_experiment(tmp_path)
    summary = summarise(find_records([tmp_path]))
    assert summary.axis == "buffer_pool" and summary.emulated
    assert summary.answer.kind == CurveKind.STILL_BUYS and len(summary.curves[0].sizes) == 4
    [pool] = facts_of(summary.findings, ExperimentKind.POOL)
    assert pool["differ"] and pool["pools_bytes"] == [16 * MIB, 320 * MIB]
    assert pool["pools_share"] == pytest.approx([0.05, 1], abs=0.01)
    assert pool["per_s"][1] / pool["per_s"][0] == pytest.approx(7.6, abs=0.1)
    assert pool["reads_per_transaction"] == pytest.approx([2.1, 0], abs=0.05)
    [unlike] = facts_of(summary.findings, ExperimentKind.DEVICES_UNLIKE)
    assert unlike["pool_bytes"] == 64 * MIB
    storage = facts_of(summary.findings, ExperimentKind.STORAGE_LIMITS)
    assert storage == [{"steps": ["cap 5%", "cap 20%", "cap 50%"]}]
    others = [told["step"] for told in facts_of(summary.findings, ExperimentKind.STORAGE_DOES_NOT_LIMIT)]
    assert "bare device, cap 20%" in others
    assert summary.findings[-1].kind == ExperimentKind.ONE_RUN_EACH
    verdicts = [step.bottleneck.is_device for step in summary.steps]
    assert verdicts == [True, True, True, None, False]
    assert len({step.key for step in summary.steps}) == 5
    dumped(experiment_in_json(summary))


def test_a_user_ramp(tmp_path):
    make_experiment(tmp_path, "user-ramp")
    summary = summarise(find_records([tmp_path]))
    assert summary.axis == "users"
    assert [step.users for step in summary.steps] == [1, 10, 20, 50, 100]
    assert all(not step.validity.invalid for step in summary.steps)
    most, knee = summary.findings[:2]
    assert most.kind == ExperimentKind.MOST_USERS and most.facts["users"] == [1, 100]
    assert most.facts["per_s"] == pytest.approx([45, 615], rel=0.01)
    assert knee.kind == ExperimentKind.KNEE and knee.facts["users"] == [50, 100]
    assert knee.facts["share"] == pytest.approx(0.99, abs=0.01)


def test_repeats_are_one_point_and_their_spread_is_said(tmp_path):
    make_experiment(tmp_path, repeats=2, measured_s=10)
    summary = summarise(find_records([tmp_path]))
    assert [run.title for run in summary.runs][:2] == ["cap 5%, repeat 1", "cap 20%, repeat 1"]
    assert summary.findings[-1].kind == ExperimentKind.SPREAD and summary.findings[-1].facts["fewest_runs"] == 2
    assert facts_of(summary.cautions, CautionKind.FEW_RUNS) == [{"fewest": 2, "most": 2}]


def test_invalid_steps_are_not_compared(tmp_path):
    make_experiment(tmp_path, measured_s=10, foreign_reads_per_second=2000)
    summary = summarise(find_records([tmp_path]))
    [found] = summary.findings
    assert (found.kind, found.facts) == (ExperimentKind.STEPS_LEFT_OUT, {"left_out": 5, "steps": 5})


def test_broken_data_are_the_first_finding(steady):
    record = Record(steady)
    broken = record.manifest.conditions[0].changed(holds=False, offending=3)
    record.manifest = record.manifest.changed(conditions=[broken, *record.manifest.conditions[1:]])
    summary = summarise([record])
    assert facts_of(summary.findings[:1], ExperimentKind.DATA_WRONG) == [{"runs": [summary.runs[0].title]}]
    assert [one.kind for one in summary.steps[0].validity.invalid] == [GateKind.CONSISTENCY]


def test_no_transaction_at_all_is_a_result(tmp_path):
    step = step_of(tmp_path, replace(STEADY, steps=(Step(30, 0.4, 0.0, "stuck"),), host_cpu=0.01))
    assert step.throughput.tps == 0 and step.latency.mean_ms is None and step.storage.reads_per_transaction is None
    assert set(step.latency.percentiles_ms.values()) == {None}


def test_growth_cost_and_pool(tmp_path):
    (run,) = summarise([Record(make_run(tmp_path / "run", replace(STEADY, growth_share=0.02)))]).runs
    assert run.growth_share == pytest.approx(0.02, abs=1e-6)
    assert run.collector_cost_share == pytest.approx(8 * 400e-6, rel=1e-3)
    assert run.steps[0].buffer_pool_bytes == 64 * MIB
    assert run.steps[0].buffer_pool_share == pytest.approx(0.2)
    assert math.isclose(run.steps[0].storage.late_share or 0, 0)


def test_no_record_is_an_error():
    with pytest.raises(StallmarkError):
        summarise([])


def test_the_share_of_the_stall_that_was_the_device_is_found(tmp_path):
    """The server's stall is ten times the device's: its sessions waited for a CPU."""
    waits = {"io": 0.4, "wal": 0.2, "lock": 0.1, "client": 0.05, "other": 0.02}
    real = {"name": "vda", "model": None, "rotational": True}
    truth = replace(STEADY, waits=waits, emulated=False, device=real, read_ms=0.5, write_ms=0.4, host_cpu=0.78)
    assert step_of(tmp_path / "slow", truth).bottleneck.is_device is True
    step = step_of(tmp_path / "busy", replace(truth, device_share=0.1, run_delay=30))
    assert step.bottleneck.is_device is False
    assert step.bottleneck.device_verdict.facts["device_share"] < 0.2


@pytest.mark.parametrize(("arrivals", "gain"), [("closed", 1 / 0.94 - 1), ("poisson", None)])
def test_where_the_cpus_are_busy_storage_is_not_said_to_be_the_bottleneck_without_them(tmp_path, arrivals, gain):
    waits = {"io": 0.6, "wal": 0.1, "lock": 0.02, "client": 0.02, "other": 0.02}
    busy = make_run(tmp_path / "run", replace(STEADY, waits=waits, host_cpu=0.94, arrivals=arrivals))
    found = summarise([Record(busy)]).findings
    [told] = facts_of(found, ExperimentKind.STORAGE_DOES_NOT_LIMIT)
    assert told["verdict"].kind == DeviceKind.WITH_CPUS
    assert told["verdict"].facts["gain_share"] == (gain and pytest.approx(gain, rel=0.01))
    assert not facts_of(found, ExperimentKind.STORAGE_LIMITS)


def test_reads_per_transaction_are_of_the_time_the_counters_cover(tmp_path):
    """Throughput doubles within the interval, and the server's counters end before it does."""
    steps = (Step(30, 200, 0.0, "low"), Step(30, 2000, 0.0, "high"))
    folder = make_run(tmp_path / "run", replace(STEADY, steps=steps, warm_up_s=0, measured_s=4))
    record = Record(folder)
    record.manifest = record.manifest.changed(steps=[record.manifest.steps[0].changed(end_s=8.0)])
    (step,) = summarise([record]).steps
    assert step.storage.data.seconds == pytest.approx(6.4)
    assert step.storage.reads_per_transaction == pytest.approx(2.0, rel=0.02)


def test_correlations_are_with_the_device_where_it_is_known(tmp_path):
    truth = Truth(noise=0.1, coupling=1.0, measured_s=60, tps=500)
    device = {c.right_unit: c for c in step_of(tmp_path / "device", truth).bottleneck.correlations}
    assert device["ms per I/O"].right == "mean read time (device)"
    assert device["ms per I/O"].high < -0.5
    server = step_of(tmp_path / "server", replace(truth, off=("device",))).bottleneck.correlations
    assert {c.right for c in server} == {"mean read time (server)", "read stall (server)"}
    independent = step_of(tmp_path / "free", replace(truth, coupling=0.0)).bottleneck.correlations
    (found,) = [c for c in independent if c.right_unit == "ms per I/O"]
    assert found.low < 0 < found.high


def test_in_json_a_step_is_flat_and_a_gate_that_passed_has_no_sentence(steady):
    [step] = experiment_in_json(summarise([Record(steady)]))["runs"][0]["steps"]
    assert not {"interval", "throughput", "latency", "storage", "server", "waits", "validity"} & step.keys()
    assert step.keys() >= {"measured_s", "tps", "latency_mean_ms", "latency_ms", "data_io", "wal_io", "device_io"}
    assert step.keys() >= {"wal_device_io", "device_busy_share", "device_late_share", "raw", "server_state"}
    assert step.keys() >= {"wait_share", "top_waits", "invalid", "device_is_bottleneck", "emulated"}
    assert step["device"] == "EMULATED 8 spindles, 8 ms"
    gates = step["gates"]
    assert {gate["passed"] for gate in gates} == {True}
    assert {gate["sentence"] for gate in gates} == {None}
