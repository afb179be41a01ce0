"""The time that a load still takes, as far as it can be known."""

import io

import pytest
from rich.console import Console
from support.simulated_time import Clock

from stallmark.experiment import build_progress as module
from stallmark.experiment.build_progress import FEWEST, LATELY_S, LEAST_S, LoadPace, show_build
from stallmark.experiment.progress import Show
from stallmark.loaders.load import BuildProgress

ROWS = 100_000


def pace_of(*seconds: float) -> LoadPace:
    """Return what is known after batches of so many rows that took so long."""
    pace, now = LoadPace(), 1_000.0
    pace.note(now, 0)
    for number, took in enumerate(seconds, 1):
        now += took
        pace.note(now, number * ROWS)
    return pace


def test_a_steady_load_says_one_time():
    pace = pace_of(*[2.0] * 10)
    assert pace.rate == pytest.approx(ROWS / 2)
    assert pace.left_s(30 * ROWS) == pytest.approx((60, 60))


@pytest.mark.parametrize("seconds", [[2.0] * (FEWEST - 1), [LEAST_S / 20] * 12], ids=["batches", "seconds"])
def test_nothing_is_said_after_too_few(seconds: list[float]):
    assert pace_of(*seconds).rate is None
    assert pace_of(*seconds).left_s(ROWS) is None


def test_two_times_where_the_rate_was_not_steady():
    least, most = pace_of(*[2.0] * 6, *[3.0] * 6).left_s(10 * ROWS)
    assert (least, most) == pytest.approx((20, 30))


def test_no_time_where_rates_have_nothing_to_do_with_each_other():
    pace = pace_of(*[1.0] * 6, *[9.0] * 6)
    assert pace.rate and pace.left_s(ROWS) is None


def test_a_load_that_has_become_slower_goes_by_what_it_did_lately():
    slower = int(LATELY_S / 4) + 1
    assert pace_of(*[0.5] * 100, *[4.0] * slower).left_s(10 * ROWS) == pytest.approx((40, 40))


def test_large_batches_are_older_than_a_minute_and_still_known():
    assert pace_of(*[300.0] * (FEWEST + 3)).left_s(2 * ROWS) == pytest.approx((600, 600))


def test_waiting_for_another_build_is_no_load():
    pace = pace_of(*[2.0] * 10)
    pace.note(5_000.0, 10 * ROWS)  # the same rows: nothing was loaded
    assert pace.rate == pytest.approx(ROWS / 2)


def test_a_build_says_the_time_of_its_load_and_then_what_share_of_a_phase_is_done(monkeypatch):
    clock = Clock(0.0)
    monkeypatch.setattr(module, "time", clock)
    show = Show(Console(file=io.StringIO(), force_terminal=False))
    notes = []
    with show_build(show, "Building") as report:
        for number in range(41):
            report(BuildProgress("load", number * ROWS, 40 * ROWS, number))
            notes.append(show.doing.note)
            clock.sleep(3)
        assert (show.doing.done, show.doing.total) == (40 * ROWS, 40 * ROWS)
        report(BuildProgress("keys and indexes", 40 * ROWS, 40 * ROWS, 1, 0.25))
        assert (show.doing.done, show.doing.total) == (0.25, 1.0)
        assert "25 %" in show.doing.note and "left" not in show.doing.note
    told = [" left, " in note for note in notes]
    assert told == [False] * FEWEST + [True] * (40 - FEWEST) + [False]
    assert "about 60 seconds left, " in notes[20] and "keys" in notes[20]


def test_the_next_of_several_databases_is_another_load(monkeypatch):
    clock = Clock(0.0)
    monkeypatch.setattr(module, "time", clock)
    show = Show(Console(file=io.StringIO(), force_terminal=False))
    with show_build(show, "Building") as report:
        for number in range(20):
            report(BuildProgress("load", number * ROWS, 40 * ROWS, 0))
            clock.sleep(3)
        report(BuildProgress("statistics", 20 * ROWS, 40 * ROWS, 0))
        clock.sleep(600)
        report(BuildProgress("load", 20 * ROWS, 40 * ROWS, 0))
        assert "left" not in show.doing.note
