"""Times as tools write them: read back as they were, and refused where they do not say when they were."""

from datetime import UTC, datetime, timedelta, timezone, tzinfo
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stallmark.errors import StallmarkError
from stallmark.record.formats.dates import (
    DAY_FIRST,
    MONTH_FIRST,
    YEAR_FIRST,
    Clock,
    find_zone,
    is_epoch,
    is_time,
    moment_of,
    possible_orders,
)

LOCAL = st.datetimes(datetime(2000, 1, 1), datetime(2099, 12, 31)).map(
    lambda moment: moment.replace(microsecond=moment.microsecond // 1000 * 1000)
)
ZONES = st.sampled_from(["Europe/Berlin", "America/New_York", "Asia/Kolkata", "Pacific/Auckland", "UTC"])


def orders(*stamps: str) -> list[str]:
    return possible_orders(Path("file"), stamps)[0]


def moments(stamp: str) -> list[datetime | None]:
    return [moment_of(stamp, order) for order in orders(stamp)]


def occurrences(stamp: str, zone: tzinfo | None) -> tuple[float, float]:
    return Clock(Path("file"), YEAR_FIRST, zone).occurrences(stamp)


def perfmon(moment: datetime) -> str:
    return f"{moment:%m/%d/%Y %H:%M:%S}.{moment.microsecond // 1000:03d}"


@given(LOCAL)
def test_perfmon_s_local_times_are_read_as_they_were(moment):
    assert moment in moments(perfmon(moment))


@given(LOCAL, st.integers(-14 * 60, 14 * 60))
def test_a_time_with_its_offset_is_that_instant(moment, minutes):
    there = moment.replace(tzinfo=timezone(timedelta(minutes=minutes)))
    stamp = there.isoformat(sep=" ", timespec="milliseconds")
    assert orders(stamp) == [YEAR_FIRST]
    assert occurrences(stamp, None) == pytest.approx((there.timestamp(), there.timestamp()), abs=1e-6)


@given(st.integers(10**9, 4 * 10**9), st.sampled_from([1, 10**3, 10**6, 10**9]))
def test_seconds_since_1970_in_any_unit(seconds, factor):
    text = str(seconds * factor)
    assert is_epoch(text)
    assert occurrences(text, None) == (seconds, seconds)


@given(LOCAL, ZONES)
def test_local_times_become_the_instant_they_were(moment, zone):
    """There and back, in every zone and at every time that was once."""
    there = moment.replace(tzinfo=ZoneInfo(zone))
    if there.astimezone(UTC).astimezone(ZoneInfo(zone)).replace(tzinfo=None) != moment:
        with pytest.raises(StallmarkError, match="never was in"):
            occurrences(str(moment), ZoneInfo(zone))
        return
    assert occurrences(str(moment), ZoneInfo(zone)) == (there.timestamp(), there.replace(fold=1).timestamp())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("03/23/2020 04:54:35 PM", datetime(2020, 3, 23, 16, 54, 35)),  # iostat -t, sysstat issue 253
        ("03/23/2020 12:00:00 AM", datetime(2020, 3, 23)),
        ("2014:10:26T06:10:07.000000", datetime(2014, 10, 26, 6, 10, 7)),  # IBM's volume statistics
        ("2019-04-18 13:20:19", datetime(2019, 4, 18, 13, 20, 19)),  # sadf -j
        ("23.03.2020 16:54:35", datetime(2020, 3, 23, 16, 54, 35)),
        ("06/01/20 10:00:00", datetime(2020, 6, 1, 10)),  # sysstat in the C locale
    ],
)
def test_published_times(text, expected):
    assert is_time(text)
    assert expected in moments(text)


def test_a_time_with_a_short_offset():
    """As Pure Storage's `purearray monitor` writes it."""
    assert moments("2023-01-21 22:20:02 +03") == [datetime(2023, 1, 21, 19, 20, 2, tzinfo=UTC)]


def test_day_and_month_are_told_apart_where_one_is_above_twelve():
    assert orders("03/04/2025 10:00:00", "03/13/2025 10:00:00") == [MONTH_FIRST]
    assert orders("03/04/2025 10:00:00", "13/04/2025 10:00:00") == [DAY_FIRST]
    assert orders("03/04/2025 10:00:00") == [MONTH_FIRST, DAY_FIRST]
    assert orders("04/04/2025 10:00:00") == [MONTH_FIRST]  # the same either way
    assert orders("03.04.2025 10:00:00") == [DAY_FIRST]


@pytest.mark.parametrize("text", ["noon", "13/13/2025 10:00:00", "2025-02-30 10:00:00", "03/23/2020 13:00:00 PM", ""])
def test_what_is_no_time_is_refused_and_named(text):
    with pytest.raises(StallmarkError, match="cannot be read") as refused:
        orders(text)
    assert repr(text) in str(refused.value)


def test_the_time_that_cannot_be_read_is_named_not_the_first():
    with pytest.raises(StallmarkError, match="'midnight'"):
        orders("03/04/2025 10:00:00", "midnight")
    clock = Clock(Path("file"), YEAR_FIRST, UTC)
    assert clock.instant("2025-01-01 10:00:00") == 1735725600
    with pytest.raises(StallmarkError, match="'midnight'"):
        clock.instant("midnight")


def test_zones():
    noon = datetime(2025, 7, 1, 12)
    assert find_zone("Europe/Berlin").utcoffset(noon) == timedelta(hours=2)
    assert find_zone("UTC").utcoffset(noon) == find_zone("Z").utcoffset(noon) == timedelta(0)
    assert find_zone("-03:30").utcoffset(noon) == -timedelta(hours=3, minutes=30)


@pytest.mark.parametrize(("name", "near"), [("Europe/Belin", "Europe/Berlin"), ("europe/berlin", "Europe/Berlin")])
def test_a_zone_that_is_none_is_refused_with_one_that_is(name, near):
    with pytest.raises(StallmarkError, match=f"{name} is not a time zone: .*did you mean {near}"):
        find_zone(name)


@pytest.mark.parametrize("name", ["", "/etc/passwd", "../UTC", "CEST!", "+1"])
def test_no_zone_at_all(name):
    with pytest.raises(StallmarkError, match="is not a time zone"):
        find_zone(name)
