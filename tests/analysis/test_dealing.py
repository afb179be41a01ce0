"""A mix left to chance, against decks that are dealt."""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stallmark.analysis.validity.gates import deviation, variance
from stallmark.driver.pacing import Dealer


@pytest.mark.parametrize(("deck", "of_type", "dealt", "executors"), [(20, 5, 13, 1), (20, 5, 33, 1), (30, 3, 240, 2)])
def test_windows_over_dealt_decks_vary_as_it_says(deck, of_type, dealt, executors):
    rng = random.Random(7)
    counts = []
    for _ in range(3000):
        seen = 0
        for _ in range(executors):
            dealer = Dealer({"it": of_type, "other": deck - of_type}, rng)
            for _ in range(rng.randrange(deck)):
                dealer.next_card()
            seen += sum(dealer.next_card() == "it" for _ in range(dealt // executors))
        counts.append(seen)
    assert np.mean(counts) == pytest.approx(dealt * of_type / deck, rel=0.02)
    assert np.var(counts) == pytest.approx(variance(dealt, deck, of_type / deck, executors), rel=0.1)


@given(st.floats(0, 1e6), st.integers(1, 1000), st.floats(0, 1), st.integers(1, 8))
def test_never_more_than_drawing_with_replacement_and_bounded_for_ever(dealt, deck, share, executors):
    of_cards = variance(dealt, deck, share, executors)
    assert 0 <= of_cards <= (dealt + executors) * share * (1 - share) + 1e-9
    assert of_cards <= executors * share * (1 - share) * (deck + 1) / 2 + 1e-9


def test_those_under_way_at_both_ends_count():
    """With a share of a fifth: 0.8² of its own variance and 0.2² of the others'."""
    assert deviation(0, 890, 0.2, 2, under_way=8, others_under_way=0) == pytest.approx(4 * 0.8)
    assert deviation(0, 890, 0.2, 2, under_way=0, others_under_way=8) == pytest.approx(4 * 0.2)
