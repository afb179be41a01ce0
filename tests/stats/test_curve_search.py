"""Sizes are chosen where the curve bends; fewer of them do than on an even grid."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.memory_curves import ASKED, LOADS, Curve, cliff, flat, off, rate, searched, zipf

from stallmark.stats.ceiling_search import Verdict, enough, judge
from stallmark.stats.curve_search import (
    MIB,
    NARROW,
    Choice,
    CurveSpec,
    MonotoneCurve,
    Values,
    Why,
    lattice,
    next_size,
    smallest_enough,
)

pytestmark = pytest.mark.thorough

asked = st.builds(
    lambda low, more, most, tolerance: CurveSpec(low * MIB, (low + more) * MIB, most, tolerance),
    st.integers(8, 10_000), st.integers(1, 10**6), st.integers(3, 20), st.floats(0.01, 0.2),
)  # fmt: skip


@given(asked)
def test_lattice_holds_half_and_twice(asked):
    sizes = lattice(asked)
    assert sizes == sorted(set(sizes)) and (sizes[0], sizes[-1]) == (asked.low, asked.high)
    for size in sizes[1:]:
        if size >= 64 * MIB and asked.high >= 2 * size:
            assert min(abs(other / size - 2) for other in sizes) < 0.05


@given(asked, st.floats(0, 1), st.floats(0.5, 30), st.floats(0, 0.1), st.integers(0, 99))
def test_it_ends_within_its_sizes_and_never_chooses_one_twice(asked, where, sharp, scatter, seed):
    rng = np.random.default_rng(seed)
    working_set = asked.low * (asked.high / asked.low) ** where
    seen = searched(cliff(working_set, sharp), asked, lambda: float(np.exp(rng.normal(0, scatter))))
    assert len(seen) <= asked.most and set(seen) <= set(lattice(asked))


@given(st.sampled_from(list(LOADS.values())))
def test_it_goes_on_as_it_would_have(reads):
    """The choice depends on what was seen alone, in whatever order it comes."""
    whole = searched(reads)
    for so_far in range(len(whole)):
        part = dict(list(whole.items())[:so_far])
        assert next_size(ASKED, part).size == list(whole)[so_far]
        assert next_size(ASKED, dict(reversed(part.items()))) == next_size(ASKED, part)


def test_ends_and_middle_come_first_with_their_reasons():
    assert next_size(ASKED, {}) == Choice(ASKED.low, Why.END)
    ends = {ASKED.low: Values(9.0, 100.0), ASKED.high: Values(0.2, 500.0)}
    third = next_size(ASKED, ends)
    assert third.reason is Why.MIDDLE and third.between == (ASKED.low, ASKED.high)


def test_flat_takes_the_fewest_sizes():
    assert len(searched(flat)) == 4  # ends, middle, and twice the smallest, which is enough


@pytest.mark.parametrize("working_set", [25, 60, 130, 280])
def test_a_cliff_is_closed_in_on(working_set):
    seen = sorted(searched(cliff(working_set * MIB, 40)))
    below, above = (max(s for s in seen if s < working_set * MIB), min(s for s in seen if s >= working_set * MIB))
    assert above / below < 2**0.51


def test_the_smallest_that_is_enough_is_closed_in_on_with_half_and_twice_of_it():
    for reads in LOADS.values():
        seen = searched(reads)
        curve = MonotoneCurve.through({size: one.rises for size, one in seen.items()}, "rises")
        enough = smallest_enough(curve)
        assert enough == ASKED.low or enough / max(size for size in seen if size < enough) <= NARROW
        for wanted in (enough / 2, 2 * enough):
            if ASKED.low <= wanted <= ASKED.high:
                assert min(max(size / wanted, wanted / size) for size in seen) < 1.1


def test_fewer_sizes_than_an_even_grid_for_the_same_error():
    def worst(sizes: list[int], reads: Curve) -> float:
        """Return the error of the curve of reads or of that of throughput, the larger one."""
        falling = MonotoneCurve.through({size: reads(size) for size in sizes}, "falls")
        rising = MonotoneCurve.through({size: rate(reads)(size) for size in sizes}, "rises")
        return max(off(falling, reads), off(rising, rate(reads)))

    def needed(reads: Curve, error: float) -> int:
        grids = ([int(size) for size in np.linspace(ASKED.low, ASKED.high, count)] for count in range(2, 200))
        return next(len(sizes) for sizes in grids if worst(sizes, reads) <= error)

    chosen = {name: list(searched(reads)) for name, reads in LOADS.items()}
    even = {name: needed(reads, worst(chosen[name], reads)) for name, reads in LOADS.items()}
    fewer = {name for name, sizes in chosen.items() if len(sizes) < even[name]}
    assert fewer == set(LOADS) - {"zipf 0.5"}, even  # which is nearly straight
    assert 2 * sum(map(len, chosen.values())) < sum(even.values())


def test_what_was_not_measured_is_not_chosen_again():
    seen = {ASKED.low: Values(9.0, 100.0), ASKED.high: Values(0.2, 500.0)}
    failed = next_size(ASKED, seen).size
    seen[failed] = Values(None, None)
    while choice := next_size(ASKED, seen):
        assert choice.size not in seen
        seen[choice.size] = Values(zipf(0.5)(choice.size), rate(zipf(0.5))(choice.size))
    assert len(seen) <= ASKED.most


def test_two_neighbours_leave_nothing_to_choose():
    near = CurveSpec(100 * MIB, 101 * MIB, 9, 0.05)
    assert next_size(near, {near.low: Values(9.0, 1.0), near.high: Values(1.0, 9.0)}) is None


# The curve keeps to one way, goes through clean values, and its error is honest


values = st.dictionaries(
    st.integers(1, 10**12), st.floats(0, 1e6).map(lambda one: round(one, 6)), min_size=2, max_size=12
)


@given(values, st.sampled_from(["falls", "rises"]))
def test_it_goes_one_way_and_stays_in_its_range(seen, way):
    curve = MonotoneCurve.through(seen, way)
    sizes = np.geomspace(curve.sizes[0], curve.sizes[-1], 50).clip(curve.sizes[0], curve.sizes[-1])
    found = np.array([curve.value_at(size) for size in sizes])
    slack = 1e-9 * max(1.0, max(seen.values()))
    assert (np.diff(found if way == "rises" else -found) >= -slack).all()
    assert min(seen.values()) - slack <= found.min() and found.max() <= max(seen.values()) + slack


@given(values)
def test_clean_values_are_kept(seen):
    falling = dict(zip(sorted(seen), sorted(seen.values(), reverse=True), strict=True))
    curve = MonotoneCurve.through(falling, "falls")
    assert [curve.value_at(size) for size in curve.sizes] == pytest.approx(list(falling.values()), abs=1e-6)


@given(values, st.floats(0, 1e6))
def test_size_of_is_the_way_back(seen, value):
    curve = MonotoneCurve.through(seen, "rises")
    size = curve.size_of(value)
    if size is None:
        assert curve.monotone_values[-1] < value
    else:
        assert curve.value_at(min(max(size, curve.sizes[0]), curve.sizes[-1])) >= value - 1e-6 * max(1.0, value)


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
        curve.value_at(8 * MIB)
    with pytest.raises(ValueError):
        MonotoneCurve.through({MIB: 3.0}, "falls")


# test_within_limit


def test_a_share_far_from_its_limit_is_decided():
    every = [100] * 20
    assert judge([1, 2] * 10, every, 0.05).verdict == Verdict.HELD
    assert judge([9, 11] * 10, every, 0.05).verdict == Verdict.BROKE
    assert judge([4, 6] * 10, every, 0.05).verdict == Verdict.UNDECIDED


def test_too_few_transactions_decide_nothing():
    found = judge([0] * 10, [10] * 10, 0.05, enough(0.05))
    assert (found.verdict, found.value, found.total) == (Verdict.UNDECIDED, None, 100)
    assert judge([0] * 10, [20] * 10, 0.05, enough(0.05)).verdict == Verdict.HELD


def test_nothing_seen_decides_nothing():
    assert judge([], [], 10).verdict == Verdict.UNDECIDED
    assert judge([0.0] * 5, [0.0] * 5, 10).verdict == Verdict.UNDECIDED
    assert judge([5.0], [1.0], 10).verdict == Verdict.UNDECIDED


def test_the_mean_is_weighted_by_what_was_done():
    found = judge([10, 900] * 5 + [10, 700] * 5, [10, 100] * 10, 8)
    assert found.value == 8100 / 1100
    assert found.low < found.value < found.high


def test_wrong_in_no_more_than_5_of_100_where_seconds_resemble_each_other():
    """Slow transactions come in bursts: a queue builds up and drains. A test by single transactions would be wrong far
    more often."""
    rng = np.random.default_rng(4)
    wrong = by_transactions = 0
    for _ in range(1_000):
        busy = np.repeat(rng.gamma(2, 0.5, 20), 3)  # bursts of three seconds
        done = np.full(60, 100)
        slow = rng.binomial(done, np.clip(0.05 * busy, 0, 1))
        found = judge(slow, done, 0.05)
        wrong += found.verdict != Verdict.UNDECIDED
        share = slow.sum() / done.sum()
        by_transactions += abs(share - 0.05) > 1.96 * np.sqrt(share * (1 - share) / done.sum())
    assert wrong <= 80  # of a skew distribution ten batches are a little too few: 5 % would be 50
    assert by_transactions > 2 * wrong
