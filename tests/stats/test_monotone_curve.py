"""The curve keeps to one way, goes through clean values, and its error is honest."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.memory_curves import LOADS, flat, off, rate, searched

from stallmark.stats.curve_search import MIB, MonotoneCurve

values = st.dictionaries(
    st.integers(1, 10**12), st.floats(0, 1e6).map(lambda one: round(one, 6)), min_size=2, max_size=12
)


@given(values, st.sampled_from(["falls", "rises"]))
def test_it_goes_one_way_and_stays_in_its_range(seen, way):
    curve = MonotoneCurve.through(seen, way)
    sizes = np.geomspace(curve.sizes[0], curve.sizes[-1], 50).clip(curve.sizes[0], curve.sizes[-1])
    found = np.array([curve.at(size) for size in sizes])
    slack = 1e-9 * max(1.0, max(seen.values()))
    assert (np.diff(found if way == "rises" else -found) >= -slack).all()
    assert min(seen.values()) - slack <= found.min() and found.max() <= max(seen.values()) + slack


@given(values)
def test_clean_values_are_kept(seen):
    falling = dict(zip(sorted(seen), sorted(seen.values(), reverse=True), strict=True))
    curve = MonotoneCurve.through(falling, "falls")
    assert [curve.at(size) for size in curve.sizes] == pytest.approx(list(falling.values()), abs=1e-6)


@given(values, st.floats(0, 1e6))
def test_size_of_is_the_way_back(seen, value):
    curve = MonotoneCurve.through(seen, "rises")
    size = curve.size_of(value)
    if size is None:
        assert curve.fitted[-1] < value
    else:
        assert curve.at(min(max(size, curve.sizes[0]), curve.sizes[-1])) >= value - 1e-6 * max(1.0, value)


@pytest.mark.parametrize("reads", LOADS.values(), ids=LOADS)
def test_left_out_error_is_honest_without_scatter(reads):
    seen = searched(reads)
    for curve, truth in (
        (MonotoneCurve.through({size: one.falls for size, one in seen.items()}, "falls"), reads),
        (MonotoneCurve.through({size: one.rises for size, one in seen.items()}, "rises"), rate(reads)),
    ):
        assert off(curve, truth) <= curve.error + 0.002


def test_left_out_error_is_honest_with_scatter():
    """Of many experiments whose runs scatter by 3 %, the curve is off by more than its error and the scatter in few."""
    rng = np.random.default_rng(22)
    missed = []
    for reads in LOADS.values():
        for _ in range(40):
            seen = searched(reads, scatter=lambda: float(np.exp(rng.normal(0, 0.03))))
            curve = MonotoneCurve.through({size: one.rises for size, one in seen.items()}, "rises")
            missed.append(off(curve, rate(reads)) > np.hypot(curve.error, 0.03))
    assert np.mean(missed) < 0.05


def test_a_flat_curve_is_flat_however_it_scatters():
    rng = np.random.default_rng(3)
    seen = searched(flat, scatter=lambda: float(np.exp(rng.normal(0, 0.02))))
    curve = MonotoneCurve.through({size: one.falls for size, one in seen.items()}, "falls")
    assert curve.error < 0.05 and off(curve, flat) < 0.05


def test_a_curve_with_values_the_wrong_way_has_an_error():
    rising = {MIB: 1.0, 2 * MIB: 3.0, 4 * MIB: 5.0, 8 * MIB: 9.0}
    assert MonotoneCurve.through(rising, "falls").error > 0.15


def test_few_sizes_have_no_error_and_outside_them_nothing_is_said():
    curve = MonotoneCurve.through({MIB: 3.0, 2 * MIB: 2.0, 4 * MIB: 1.0}, "falls")
    assert curve.error is None and curve.left_out == ()
    with pytest.raises(ValueError):
        curve.at(8 * MIB)
    with pytest.raises(ValueError):
        MonotoneCurve.through({MIB: 3.0}, "falls")
