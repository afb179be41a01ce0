"""A server's clock that jumps while a step is measured."""

import numpy as np
import pytest
from support.comparisons import template

from stallmark.analysis.read import clocks
from stallmark.analysis.read.interval import Interval

STEP = Interval(0, 5, 95, 90.0, False)


def found(server: np.ndarray, t: np.ndarray, monkeypatch) -> float | None:
    monkeypatch.setattr(clocks, "_clocks", lambda record: (t, server))
    jumped = clocks.clock_findings(None, [STEP]).get(0)
    return jumped and jumped.facts["jump_s"]


@pytest.mark.parametrize(("jump", "told"), [(3600.0, 3600.0), (-2.5, -2.5), (0.5, None)])
def test_a_jump_of_more_than_a_second_is_told(jump, told, monkeypatch):
    t = np.arange(100) + 0.3
    server = 1.7e9 + t + np.where(t > 50, jump, 0.0)
    assert found(server, t, monkeypatch) == (told and pytest.approx(told))


def test_a_late_sample_and_a_clock_that_drifts_are_no_jump(monkeypatch):
    t = np.arange(100) + 0.3
    server = 1.7e9 + t * (1 + 5e-4)
    server[50] += 4.0
    assert found(server, t, monkeypatch) is None


def test_a_jump_outside_the_measured_interval_changes_no_figure(monkeypatch):
    t = np.arange(100) + 0.3
    assert found(1.7e9 + t + np.where(t > 97, 60.0, 0.0), t, monkeypatch) is None


def test_a_sound_record_has_none(tmp_path):
    assert template(tmp_path).steps[0].invalid == []
