"""The closed model of a step: what it must say whatever the step, and what is exactly known of simple ones."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stallmark.analysis.bottleneck.laws import WHAT_IF_MS, predict
from stallmark.analysis.bottleneck.summary import Demands
from stallmark.stats.thresholds import MODEL_ERROR


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
