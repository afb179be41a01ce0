"""The caution on timers that missed times: only if they ended less often than they were due."""

from dataclasses import replace

import pytest
from support.report_summaries import manifest, run, step

from stallmark.analysis.cautions import CautionKind, cautions
from stallmark.record.manifest.workload import Transaction


def missed(ended: int, measured_s: float, every_s: float | None = 10.0, users: int = 30) -> list[tuple[int, int]]:
    """Return (done, due) of the caution for a timer that ended so often."""
    one = step(users=users)
    timer = replace(one.transactions[0], name="data_maintenance", committed=ended, rolled_back=0, failed=0)
    one = replace(one, interval=replace(one.interval, measured_s=measured_s), transactions=[*one.transactions, timer])
    made = manifest([one])
    kinds = (*made.workload.transactions, Transaction(name="data_maintenance", source="timer", every_s=every_s))
    made = made.changed(workload=made.workload.changed(transactions=kinds))
    seen = cautions([run([one], manifest=made)])
    return [(one.facts["done"], one.facts["due"]) for one in seen if one.kind is CautionKind.TIMER_MISSED]


@pytest.mark.parametrize("ended", [0, 1, 4])
def test_a_timer_that_ended_less_often_than_it_was_due_is_named(ended):
    assert missed(ended, 60.0) == [(ended, 6)]


@pytest.mark.parametrize("ended", [5, 6, 7])
def test_one_under_way_at_an_end_is_none_that_was_missed(ended):
    assert missed(ended, 60.0) == []


def test_an_interval_shorter_than_its_period_misses_nothing():
    assert missed(0, 14.0) == missed(0, 9.0) == []


def test_what_comes_by_itself_has_no_times_to_miss():
    assert missed(0, 600.0, every_s=None) == []


def test_a_load_that_rests_has_no_timers():
    assert missed(0, 60.0, users=0) == []
