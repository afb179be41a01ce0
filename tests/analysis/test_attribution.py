"""The division of sessions' time in I/O: in the device, above the device, or at a CPU."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.synthetic import Truth, make_run
from support.synthetic_steps import WAITS, only_step, step_of
from support.tables import get, put

from stallmark.analysis import attribution
from stallmark.analysis.attribution import divide_io
from stallmark.analysis.bottleneck import DeviceKind
from stallmark.analysis.prediction import WHAT_IF_MS, predict
from stallmark.analysis.read.counters import Counters, Delta
from stallmark.analysis.read.io import OwnCpu
from stallmark.analysis.read.server_summary import SERVER
from stallmark.analysis.read.times import Interval
from stallmark.analysis.step_summary import PARTS, Demands, Source
from stallmark.stats.thresholds import MODEL_ERROR


def test_times_are_added_up_the_same_in_any_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """A set of names has another order in each process, and sums of floats would differ in their last digit."""
    columns = [f"t{number}" for number in range(9)]
    values = dict.fromkeys(columns, 1.0) | {"t4": 2.0**53}
    monkeypatch.setattr(attribution, "delta_over", lambda counters, interval: Delta(0.0, 1.0, False, values))
    names = SimpleNamespace(read_ms=columns[:3], write_ms=columns[3:6], sync_ms=columns[6:])
    interval: Interval = SimpleNamespace()  # type: ignore[assignment]
    assert attribution._ms_per_second([(None, names)], interval, reads=False) == 2.0**53 + 5  # type: ignore[list-item]


REAL = {"name": "vda", "model": None, "rotational": True}
SLOW = Truth(read_ms=27, device_share=0.1, waits=WAITS, emulated=False, device=REAL)
"""30 users, 22 of them in reads of which the device counted a tenth."""


def test_time_that_no_cpu_explains_is_storage_above_the_device(tmp_path):
    step = step_of(tmp_path, SLOW)
    budget = step.cause.budget
    assert budget.share("read") == pytest.approx(0.72, abs=0.05) and budget.is_above("read")
    assert budget.share("unknown") == 0
    assert step.bottleneck.device_verdict.kind == DeviceKind.ABOVE_LIMITS and step.bottleneck.is_device is True
    assert step.bottleneck.device_verdict.facts["above_share"] == pytest.approx(0.9, abs=0.05)
    assert step.cause.demands.read_source == Source.SERVER  # faster reads are predicted from what reads took


def test_time_that_the_servers_processes_waited_for_a_cpu_is_no_storage(tmp_path):
    step = step_of(tmp_path, replace(SLOW, run_delay=25, host_cpu=0.75))
    assert step.cause.budget.share("read") < 0.1 and step.cause.budget.share("cpu") > 0.7
    assert step.bottleneck.device_verdict.kind == DeviceKind.NOT_LIMITING


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("host_cpu", "kind", "unknown"), [(0.02, DeviceKind.ABOVE_LIMITS, 0.02), (0.75, DeviceKind.NOT_DIVIDED, 0.6)]
)
def test_without_the_servers_processes_busy_cpus_leave_it_open(tmp_path, host_cpu, kind, unknown):
    step = step_of(tmp_path, replace(SLOW, host_cpu=host_cpu, off=("server_cpu",)))
    assert step.bottleneck.device_verdict.kind == kind
    assert step.cause.budget.share("unknown") == pytest.approx(unknown, abs=0.1)


def test_a_device_that_counts_no_syncs_has_the_time_of_writes(tmp_path):
    """A partition: how long its flushes took is in no counter, so nothing is said to be above it."""
    folder = make_run(tmp_path / "run", replace(SLOW, device_share=0.01))
    device = get(folder, "device")
    put(folder, "device", device.set_column(device.column_names.index("sync_ms"), "sync_ms", pa.nulls(len(device))))
    budget = only_step(folder).cause.budget
    assert budget.above_ms["log"] == 0 and budget.above_ms["read"] > 0


@given(
    device=st.floats(0, 100), server=st.floats(0.1, 100), delay=st.none() | st.floats(0, 50), alone=st.booleans(),
    seen=st.dictionaries(st.sampled_from(PARTS), st.floats(0, 50)),
)  # fmt: skip
def test_shares_sum_to_one_and_are_at_least_zero(device, server, seen, delay, alone):
    def counters(**values: float) -> Counters:
        return SimpleNamespace(delta=lambda begin, end: Delta(0.0, 1.0, False, values))  # type: ignore[return-value]

    io = SimpleNamespace(
        data=counters(read_stall_ms=server, write_stall_ms=server), wal=None, wal_names=SERVER, wal_device=None,
        data_device=counters(read_ms=device, write_ms=device, sync_ms=0.0), cpu_pressure=None,
        host=counters(user_s=0.5, system_s=0.1, idle_s=1.4),
    )  # fmt: skip
    own = None if delay is None else OwnCpu(1.0, 0.3, 0.1, delay, 0.0)
    interval = SimpleNamespace(begin=0.0, end=1.0)
    for time in divide_io(io, seen, own, interval, alone).values():  # type: ignore[arg-type]
        assert min(time.device, time.above, time.cpu, time.unknown) >= 0
        assert time.device + time.above + time.cpu + time.unknown == pytest.approx(1)
        assert alone or not time.cpu  # others may have used that CPU time


def test_cpu_time_of_maintenance_is_not_that_of_the_users_sessions(tmp_path):
    """The server's processes waited for CPUs, and which of them is not known."""
    folder = make_run(tmp_path / "run", replace(SLOW, run_delay=25, host_cpu=0.75))
    file = folder / "manifest.json"
    manifest = json.loads(file.read_text())
    manifest["variant"]["during"] = {"check": True}
    manifest.pop("checksum", None)
    file.write_text(json.dumps(manifest))
    step = only_step(folder)
    assert step.bottleneck.device_verdict.kind == DeviceKind.NOT_DIVIDED
    assert step.cause.budget.share("unknown") > 0.5


# The closed model of a step: what it must say whatever the step, and what is exactly known of simple ones.


def step(
    users: float = 30,
    think: float = 0.0,
    reads: float = 2.0,
    read_ms: float = 8.0,
    lock: float = 0.0,
    cpu_part: float = 0.0,
    cpu: float | None = None,
    cores: int | None = None,
    fixed: float = 0.0,
    counted: float = 1.0,
) -> Demands:
    cycle = think + reads * read_ms + lock + cpu_part + fixed
    rate = users / cycle * 1000
    return Demands(
        users=users,
        think_ms=think,
        rate=rate,
        tps=rate / 10,  # of a primary transaction
        read_ms=read_ms,
        read_source="server",
        read_part_ms=reads * read_ms,
        read_volume_ms=reads * read_ms * counted,
        lock_ms=lock,
        cpu_part_ms=cpu_part,
        cpu_ms=cpu,
        cores=cores,
        fixed_ms=fixed,
        spread=0.0,
    )


def busy(demands: Demands, used: float, cores: int) -> Demands:
    """With so many cores, of which this share is used."""
    cpu_ms = used * cores * 1000 / demands.rate
    return replace(demands, cores=cores, cpu_ms=cpu_ms)


steps = st.builds(
    step,
    users=st.floats(1, 200),
    think=st.floats(0, 50),
    reads=st.floats(0.1, 20),
    read_ms=st.floats(0.1, 30),
    lock=st.floats(0, 20),
    cpu_part=st.floats(0.01, 5),
    cpu=st.none(),
    fixed=st.floats(0, 20),
    counted=st.floats(0.7, 1.3),
)


@given(steps, st.floats(0.05, 1.0), st.integers(1, 64))
def test_the_read_time_as_it_was_gives_the_throughput_as_it_was(demands, used, cores):
    """Whatever the CPU's share: what the model does not explain stays as it was."""
    demands = busy(demands, used * 0.98, cores)
    same = predict(demands, demands.read_ms)
    assert same.tps == pytest.approx(demands.tps, rel=1e-4)
    assert same.low == pytest.approx(same.high, rel=1e-3), "all assumptions agree there"


@given(steps, st.floats(0.1, 0.9), st.integers(1, 64))
def test_faster_reads_never_give_less_and_never_more_than_the_cores_can(demands, used, cores):
    demands = busy(demands, used, cores)
    found = [predict(demands, read_ms) for read_ms in WHAT_IF_MS]
    assert all(one.low <= one.tps * 1.000001 and one.tps <= one.high * 1.000001 for one in found)
    tps = [one.tps for one in found]
    assert tps == sorted(tps)
    most = demands.tps / used
    assert tps[-1] <= most * 1.000001


def test_without_cpu_and_locks_it_is_users_over_cycle():
    demands = step(users=30, think=5, reads=2, read_ms=8, fixed=3)
    assert predict(demands, 1.0).tps == pytest.approx(30 / (5 + 2 * 1.0 + 3) * 1000 / 10, rel=1e-6)
    assert predict(demands, 1.0).response_ms == pytest.approx(5.0, rel=1e-6)
    assert predict(demands, 1.0).limit == "think_time"


def test_locks_shrink_with_the_rest_or_stay_and_the_range_holds_both():
    demands = step(users=10, reads=2, read_ms=8, lock=4, fixed=4)  # 24 ms, 20 without the locks
    found = predict(demands, 1.0)
    assert found.tps == pytest.approx(10 / (6 + 4 * 6 / 20) * 100, rel=1e-6)
    assert found.low == pytest.approx(10 / (6 + 4) * 100 / (1 + 3 * MODEL_ERROR), rel=1e-6)
    assert found.high == pytest.approx(found.tps * (1 + 3 * MODEL_ERROR))


def test_the_cpu_becomes_the_limit_as_mean_value_analysis_has_it():
    """One core, 20 users, 1 ms of CPU and 19 ms of reads each. Exact mean value analysis of the same network at a read
    time of nothing is the asymptote, 1000/s; Schweitzer's approximation is close to it from below."""
    demands = step(users=20, reads=1, read_ms=19, cpu_part=2.0, cpu=1.0, cores=1)
    found = predict(demands, 0.001)
    assert 0.9 * 1000 <= found.tps * 10 <= 1000
    assert found.limit == "CPU"


def test_counters_that_say_otherwise_widen_the_range():
    agreed, not_agreed = (step(reads=2, read_ms=8, fixed=10, counted=one) for one in (1.0, 1.4))
    narrow, wide = predict(agreed, 1.0), predict(not_agreed, 1.0)
    assert wide.tps == pytest.approx(narrow.tps)
    assert wide.high > 1.2 * narrow.high


def test_a_scattered_step_predicts_less_closely():
    found = predict(replace(step(fixed=4), spread=0.05), 1.0)
    error = 1 + 2 * 0.05 + 3 * MODEL_ERROR  # 8 ms to 1 ms are three halvings
    assert found.high == pytest.approx(error * found.tps) and found.low == pytest.approx(found.tps / error)
