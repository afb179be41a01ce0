"""The cause within one step, on records whose truth is known."""

from dataclasses import replace

import pyarrow as pa
import pytest
from support.findings import kinds_of
from support.manifests import changed
from support.synthetic import Truth, make_run
from support.synthetic_shapes import Shape, make_shaped_run
from support.synthetic_steps import WAITS, only_step, step_of
from support.tables import get, put

from stallmark.analysis.attribution import wait_laws
from stallmark.analysis.read.server_views import ServerWait
from stallmark.analysis.read.throughput import Load
from stallmark.analysis.read.waits import part_of
from stallmark.analysis.step_summary import Associated, LawKind, NoteKind, Source


def test_the_response_time_is_divided_as_sessions_were_seen(slow):
    budget = slow.cause.budget
    assert budget.response_ms == pytest.approx(slow.latency.mean_ms)
    assert sum(budget.parts_ms.values()) == pytest.approx(budget.response_ms)
    assert budget.share("read") == pytest.approx(0.72, abs=0.02)
    assert budget.share("log") == pytest.approx(0.06, abs=0.01)
    assert budget.looks == 30 * 10 * 30 and budget.device_known


def test_what_the_device_does_not_account_for_is_waiting_for_a_cpu(tmp_path):
    half = step_of(tmp_path, Truth(read_ms=27, device_share=0.5, waits=WAITS, run_delay=15))
    assert half.cause.budget.share("read") == pytest.approx(0.36, abs=0.02)
    assert half.cause.budget.share("cpu") == pytest.approx(0.14 + 0.36, abs=0.05)


def test_laws_close_on_a_record_that_is_whole(slow):
    laws = {law.kind: law for law in slow.cause.laws}
    assert len(slow.cause.laws) == 5
    assert all(law.closed is not False for law in slow.cause.laws)
    assert laws[LawKind.READS].left_value == pytest.approx(400 * 2 * 0.027, rel=0.05)
    assert laws[LawKind.USERS].right_value == pytest.approx(30, rel=0.05)


def test_a_law_that_does_not_close_has_both_sides(tmp_path):
    """Sessions were seen reading three times as long as the server counted."""
    step = step_of(tmp_path, Truth(read_ms=9, waits=WAITS))
    [law] = [law for law in step.cause.laws if law.closed is False]
    assert law.kind == LawKind.READS and law.gap == pytest.approx(2, abs=0.2)
    assert law.finding.facts == {"left": law.left_value, "right": law.right_value, "closed": False, "few": None}


def test_spindles_are_busy_with_raw_loads_as_well(tmp_path):
    """Half of the reads that keep the spindles busy are taken from the server and given to a raw load."""
    folder = make_run(tmp_path / "run", Truth(read_ms=27, waits=WAITS))

    def gaps() -> list[float]:
        return [law.gap for law in only_step(folder).cause.laws if law.kind == LawKind.DEVICE]

    before = gaps()
    device = get(folder, "device")
    for name in ("reads", "read_bytes"):
        half = pa.array(device[name].to_numpy() // 2)
        device = device.set_column(device.schema.get_field_index(name), name, half).append_column(f"raw_{name}", half)
    put(folder, "device", device)
    assert before and gaps() == pytest.approx(before, abs=1e-3)


@pytest.mark.thorough
@pytest.mark.parametrize(("streams", "closed"), [(0, False), (2, None)])
def test_what_queries_beside_the_users_read_is_no_failure_of_the_law(tmp_path, streams, closed):
    folder = make_run(tmp_path / "run", Truth(read_ms=81, waits=WAITS))
    changed(folder, concurrent_streams={"streams": streams})
    [law] = [law for law in only_step(folder).cause.laws if law.kind == LawKind.READS]
    assert law.closed is closed


@pytest.mark.thorough
def test_reads_move_with_throughput_at_the_lag_and_by_as_much_as_they_do(tmp_path):
    shape = Shape(phi=0.6, swing=0.15, lag_s=2, elasticity=-0.5, trend_per_s=0.002)
    step = only_step(make_shaped_run(tmp_path / "run", shape, Truth(measured_s=140)))
    [found] = [
        one for one in step.cause.associations if (one.series, one.source) == (Associated.READ_TIME, Source.DEVICE)
    ]
    assert (found.lag_low_s, found.lag_s, found.lag_high_s) == (2, 2, 2)
    aligned = only_step(
        make_shaped_run(tmp_path / "aligned", replace(shape, lag_s=0), Truth(measured_s=140))
    ).cause.associations
    [found] = [one for one in aligned if (one.series, one.source) == (Associated.READ_TIME, Source.DEVICE)]
    assert found.is_associated and found.r < -0.5
    assert found.elasticity_low <= -0.5 <= found.elasticity_high < 0
    assert found.elasticity == pytest.approx(-0.5, abs=0.12) and found.elasticity_n >= 15
    assert found.expected == pytest.approx(-0.72, abs=0.03)


@pytest.mark.thorough
def test_a_clock_that_jumps_and_seconds_gone_wrong_change_no_cause(tmp_path, slow):
    shape = Shape(phi=0.3, swing=0.06, scatter=0.01, clock_jump_at=20)
    calm = only_step(make_shaped_run(tmp_path / "jump", shape, Truth(read_ms=27, waits=WAITS, measured_s=120)))
    wild = replace(shape, outliers=(25, 45))
    off = only_step(make_shaped_run(tmp_path / "outliers", wild, Truth(read_ms=27, waits=WAITS, measured_s=120)))
    assert calm.cause.budget.share("read") == pytest.approx(slow.cause.budget.share("read"), abs=0.03)
    for step in (calm, off):
        [read] = [
            one for one in step.cause.associations if (one.series, one.source) == (Associated.READ_TIME, Source.DEVICE)
        ]
        assert read.elasticity == pytest.approx(-0.7, abs=0.15)


@pytest.mark.thorough
@pytest.mark.parametrize("broken", [{"epoch_change_at": 20}, {"falls_at": 20}], ids=["epoch", "reset"])
def test_counters_that_began_again_leave_their_laws_out(tmp_path, broken):
    step = step_of(tmp_path, Truth(read_ms=27, waits=WAITS, **broken))
    assert step.cause.budget.share("read") == pytest.approx(0.72, abs=0.02), "looks are not counters"
    assert LawKind.READS not in {law.kind for law in step.cause.laws}
    assert step.cause.demands.read_source == Source.DEVICE, "its counters did not begin again"


def test_without_looks_at_sessions_the_notes_say_what_is_missing(tmp_path):
    cause = step_of(tmp_path, Truth(off=("waits",))).cause
    assert cause.budget is None and not cause.predictions
    assert kinds_of(cause.notes) == [NoteKind.NOT_LOOKED_AT]


def test_an_open_loop_is_not_predicted(tmp_path):
    cause = step_of(tmp_path, Truth(arrivals="poisson")).cause
    assert cause.budget is not None and not cause.predictions
    assert kinds_of(cause.notes) == [NoteKind.OPEN_LOOP]
    assert LawKind.USERS not in {law.kind for law in cause.laws}


def test_a_closed_loop_in_which_users_ended_nothing_is_not_called_an_open_one(tmp_path, monkeypatch):
    """Only transactions of others ended."""
    monkeypatch.setattr(Load, "users_sum", lambda load, column: 0 * load.all(column))
    cause = step_of(tmp_path, Truth(waits=WAITS)).cause
    assert cause.budget is not None and not cause.predictions
    assert kinds_of(cause.notes) == [NoteKind.NOTHING_ENDED]


def test_more_sessions_than_cores_do_not_account_for_the_cores(slow):
    """Of 30 users 14 % were running or wanted to, and 35 % of two cores were busy."""
    [law] = [law for law in slow.cause.laws if law.kind == LawKind.CPU]
    assert law.right_value > 5 * law.left_value and law.closed is None


def test_predictions_are_of_the_measured_step(slow):
    assert slow.cause.demands.tps == slow.throughput.tps
    assert slow.cause.demands.reads_per_transaction == pytest.approx(2.0, rel=0.05)
    assert [one.read_ms for one in slow.cause.predictions] == [5, 2, 1, 0.5, 0.2]
    assert slow.cause.predictions[0].tps > slow.throughput.tps


@pytest.mark.parametrize(
    ("wait_class", "event", "part"),
    [
        ("io", "IO:DataFileRead", "read"),
        ("io", "IO:AioIoCompletion", "read"),
        ("io", "IPC:BufferIO", "read"),
        ("io", "PAGEIOLATCH_SH", "read"),
        ("io", "IO:DataFileWrite", "other_io"),
        ("io", "IO:BuffileRead", "other_io"),  # of a temporary file
        ("io", "ASYNC_IO_COMPLETION", "other_io"),
        ("wal", "LWLock:WALWrite", "log"),
        ("lock", "LCK_M_X", "lock"),
        ("cpu", "runnable", "cpu"),
        ("client", "idle", "client"),
        ("other", "LWLock:BufferContent", "rest"),
    ],
)
def test_events_of_both_engines_belong_to_a_part(wait_class, event, part):
    assert part_of(wait_class, event) == part


@pytest.mark.parametrize(
    ("seen", "closed"), [(4.2, True), (2.0, None), (8.0, False)], ids=["agree", "the server's own", "too few"]
)
def test_what_the_server_counted_holds_what_sessions_were_seen_in(seen, closed):
    """4 s of PAGEIOLATCH_SH a second, without the waits for a CPU after them."""
    waits = [
        ServerWait("PAGEIOLATCH_SH", "io", 10.0, 9_000, 41_000.0, 1_000.0),
        ServerWait("WRITELOG", "wal", 10.0, 100, 50.0, 0.0),  # too little for a law
    ]
    [law] = wait_laws(waits, {"read": seen, "log": 0.01})
    assert (law.left_value, law.right_value, law.closed) == (4.0, seen, closed)
    assert law.finding.facts["wait_types"] == ["PAGEIOLATCH_SH"] and law.finding.facts["part"] == "read"
    [law] = wait_laws([replace(one, uncertainty=0.9) for one in waits], {"read": seen})
    assert law.closed is (None if closed is False else closed), "few samples leave it open"
