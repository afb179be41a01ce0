"""In which order runs are made."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stallmark.scenarios.variant import run_order


@pytest.mark.parametrize(
    ("order", "letters"), [("alternating", "ABCABCABC"), ("abba", "ABCCBAABC"), ("blocks", "AAABBBCCCAAA")]
)
def test_orders(order, letters):
    made = run_order("ABC", 3, order)
    assert "".join(run.variant for run in made) == letters
    assert "".join(run.variant for run in made if run.again) == ("AAA" if order == "blocks" else "")


@given(st.integers(1, 6), st.integers(1, 8), st.sampled_from(["alternating", "abba", "blocks"]))
def test_every_variant_runs_as_often_as_asked_and_no_repeat_twice(variants, repeats, order):
    made = run_order(range(variants), repeats, order)
    places = [(run.variant, run.repeat) for run in made]
    assert len(set(places)) == len(places)
    for variant in range(variants):
        assert sum(run.variant == variant and not run.again for run in made) == repeats


@given(st.integers(2, 6), st.sampled_from([2, 4, 6]))
def test_a_steady_drift_falls_on_all_variants_alike_in_the_order_abba(variants, repeats):
    made = run_order(range(variants), repeats, "abba")
    when = [sum(time for time, run in enumerate(made) if run.variant == variant) for variant in range(variants)]
    assert len(set(when)) == 1


def test_blocks_end_with_the_first_variant_again():
    assert [(run.variant, run.repeat, run.block, run.again) for run in run_order("AB", 1, "blocks")] == [
        ("A", 1, 1, False), ("B", 1, 2, False), ("A", 2, 3, True),
    ]  # fmt: skip
