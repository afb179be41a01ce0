"""Sizes are chosen where the curve bends; fewer of them do than on an even grid."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.memory_curves import ASKED, LOADS, Curve, cliff, flat, off, rate, searched, zipf

from stallmark.stats.curve_search import (
    MIB,
    NARROW,
    Asked,
    Choice,
    MonotoneCurve,
    Values,
    Why,
    lattice,
    next_size,
    smallest_enough,
)

asked = st.builds(
    lambda low, more, most, tolerance: Asked(low * MIB, (low + more) * MIB, most, tolerance),
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
    assert third.why is Why.MIDDLE and third.between == (ASKED.low, ASKED.high)


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
    near = Asked(100 * MIB, 101 * MIB, 9, 0.05)
    assert next_size(near, {near.low: Values(9.0, 1.0), near.high: Values(1.0, 9.0)}) is None
