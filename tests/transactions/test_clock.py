"""Time of a workload goes on, whatever is done to the clock on the wall."""

from datetime import UTC, datetime, timedelta, timezone, tzinfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stallmark.schema.brokerage.population import price_second
from stallmark.transactions import workload


def test_it_begins_with_the_wall_in_utc(monkeypatch: pytest.MonkeyPatch) -> None:
    class Wall(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:
            return datetime(2026, 1, 2, 3, tzinfo=UTC).astimezone(tz or timezone(timedelta(hours=5)))

    monkeypatch.setattr(workload, "datetime", Wall)
    monkeypatch.setattr(workload.time, "monotonic_ns", lambda: 7)
    assert workload.RunClock().now() == datetime(2026, 1, 2, 3)


def test_a_wall_clock_set_back_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monotonic_ns = 5_000_000_000
    monkeypatch.setattr(workload.time, "monotonic_ns", lambda: monotonic_ns)
    run = workload.RunClock()
    began = run.now()
    monkeypatch.setattr(workload, "datetime", None)  # the wall is not looked at again
    monotonic_ns += 1_500_000_999
    assert run.now() == began + timedelta(microseconds=1_500_000)


def test_texts_have_milliseconds() -> None:
    assert workload.as_text(datetime(2026, 1, 2, 3, 4, 5)) == "2026-01-02T03:04:05.000"
    assert workload.as_text(datetime(2026, 1, 2, 3, 4, 5, 6_999)) == "2026-01-02T03:04:05.006"


@given(st.datetimes(datetime(2005, 1, 3), datetime(2100, 1, 1)), st.integers(0, 10**9), st.sampled_from([1, 1_000]))
def test_texts_and_seconds_are_in_the_order_of_the_moments(moment: datetime, later: int, unit: int) -> None:
    after = moment + timedelta(microseconds=later * unit)
    assert workload.as_text(moment) <= workload.as_text(after)
    assert price_second(after) - price_second(moment) == pytest.approx(later * unit / 1e6, abs=1e-5)


def test_prices_begin_with_the_first_day() -> None:
    assert price_second(datetime(2005, 1, 3)) == 0
    assert price_second(datetime(2005, 1, 4, 0, 0, 1, 500_000)) == 86_401.5
