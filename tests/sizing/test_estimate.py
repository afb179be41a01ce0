"""The time that a sizing takes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stallmark.experiment.estimate import estimate
from stallmark.scenarios.read import read_any_scenario
from stallmark.sizing.scenario import estimate_sizing


@given(st.integers(1, 9))
def test_every_window_of_a_profile_is_replayed_at_every_level(windows):
    sizing = read_any_scenario("sizing")
    one, more = estimate(sizing), estimate_sizing(sizing, windows=windows)
    levels = sizing.search.spec().usual_levels
    assert more.runs_s[0] - one.runs_s[0] == pytest.approx((windows - 1) * levels * sizing.replay.play)
    assert more.runs_s[1:] == one.runs_s[1:]


def test_only_a_sizing_is_estimated():
    assert estimate_sizing(read_any_scenario("demo")) is None
