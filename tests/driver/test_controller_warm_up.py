"""A run that waits for a steady state: Locust, executors and the record follow what was decided."""

from collections import Counter
from itertools import pairwise

import pytest
from support.driving import drive_to_the_end

from stallmark.driver.pacing import Arrivals
from stallmark.driver.timeline import Timeline, WarmUpLimits, consecutive_steps
from stallmark.stats import steady_state


def test_each_step_is_measured_from_when_it_is_steady(bank, tmp_path, monkeypatch):
    """Steadiness is decided here, so that the machine that runs this has no say in it."""
    monkeypatch.setattr(steady_state, "steady_enough", lambda series, to_measure_s: True)
    steps = consecutive_steps([2, 6], ramp_s=0, warm_up_s=60, measure_s=1)
    timeline = Timeline(steps, WarmUpLimits(at_least_s=3, at_most_s=60))
    shown: list = []
    record = drive_to_the_end(bank, tmp_path / "run", timeline, Arrivals("fixed", rate=60), shown.append)

    told = record.manifest.steps
    assert [step.waited.steady for step in told] == [True, True]
    assert all(step.end_s - step.measure_s == 1 for step in told)
    assert all(later.begin_s == earlier.end_s for earlier, later in pairwise(told))
    assert told[-1].end_s < steps[-1].end_s / 2
    assert shown[0].waiting and not shown[-1].waiting
    assert shown[-1].ends_s - told[-1].end_s == pytest.approx(timeline.end_s - steps[-1].end_s)

    rows = record.table("users").to_pylist()
    running = Counter[int]()
    for row in rows:
        running[row["second"]] += row["running"]
    for step in told:  # Locust follows the steps where they were moved to
        seconds = range(int(step.begin_s), int(step.end_s))
        assert max(running[second] for second in seconds) == pytest.approx(step.users, abs=0.5)
    assert max(running) <= told[-1].end_s + 10
