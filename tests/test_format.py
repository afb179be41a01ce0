import math
import re
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stallmark import format
from stallmark.sizing.wording import in_times, span
from stallmark.transactions import WORKLOADS, find_workload


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (math.nan, "–"),
        (0, "0"),
        (0.0000079, "<0.0001"),
        (0.0001, "0.000100"),
        (0.0912, "0.0912"),
        (9.104, "9.10"),
        (99.96, "100"),
        (412.3, "412"),
        (999.6, "1,000"),
        (4312.4, "4,312"),
        (1234567.8, "1,234,568"),
        (-3.14159, "−3.14"),
    ],
)
def test_numbers_have_three_significant_digits_and_thousands_separators(value, text):
    assert format.number(value) == text


WRITERS = (
    format.number,
    format.share,
    format.portion,
    format.seconds,
    format.per_transaction,
    format.per_second,
    format.percent,
    format.factor,
    format.signed,
    format.short,
    format.exact,
    lambda value: format.short(value, 2),
    lambda value: format.short(value, 4),
    in_times,
    lambda value: span(value, 2 * value),
)


@given(st.floats(1e-9, 1e15) | st.integers(-9, 15).map(lambda power: 10.0**power * 1.2), st.sampled_from(WRITERS))
def test_no_figure_has_an_exponent(value, write):
    assert not re.search(r"\de[-+]?\d", write(value))


def test_figures_are_written_by_these_functions_alone():
    """Python's own "g" with a precision writes 110 with two digits as "1.1e+02"."""
    source = Path(format.__file__).parent
    found = [
        f"{path.relative_to(source)}: {line.strip()}"
        for path in source.rglob("*.py")
        for line in path.read_text().splitlines()
        if re.search(r":[+,]*(\.\d|,)g\}", line) and not re.search(r'float\(f"\{.*g\}"\)', line)
    ]
    assert found == [], "use format.short or format.exact"


@pytest.mark.parametrize(
    ("value", "text"),
    [(1500, "1,500"), (12, "12"), (120, "120"), (0.5, "0.5"), (1.234, "1.23"), (0.000123, "0.000123")],
)
def test_short_figures_have_no_zeros_at_their_end(value, text):
    assert format.short(value) == text


@pytest.mark.parametrize(("value", "text"), [(1e6, "1,000,000"), (20, "20"), (0.25, "0.25"), (1234.5, "1,234.5")])
def test_what_was_chosen_keeps_every_digit(value, text):
    assert format.exact(value) == text


@given(st.floats(0.001, 1e9))
def test_what_is_written_lies_within_half_a_percent_of_the_value(value):
    assert math.isclose(float(format.number(value).replace(",", "")), value, rel_tol=0.005)


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.871, "87.1 %"), (1.0, "100 %"), (0.99991, ">99.9 %"), (0.0001, "<0.1 %"), (0.0, "0 %"), (None, "–")],
)
def test_a_share_that_is_not_all_is_never_a_hundred(value, text):
    assert format.share(value) == text.replace(" ", format.NBSP)


@pytest.mark.parametrize(
    ("value", "text"),
    [(16 << 20, "16 MiB"), (1000 << 20, "1,000 MiB"), (3 << 29, "1.5 GiB"), (8192, "8 KiB"), (None, "–")],
)
def test_memory_is_in_binary_units(value, text):
    assert format.size(value) == text.replace(" ", format.NBSP)


@pytest.mark.parametrize(
    ("value", "text"), [(45, "45 s"), (60, "60 s"), (600, "10 min"), (86400, "24 h"), (0.1, "0.1 s")]
)
def test_durations_are_in_the_unit_people_say(value, text):
    assert format.seconds(value) == text.replace(" ", format.NBSP)


def test_a_difference_from_nothing_is_not_a_number():
    assert format.difference(0, 5) is None
    assert format.difference(None, 5) is None
    assert format.signed(format.difference(100, 98)) == "−2.0" + format.NBSP + "%"


def test_a_correlation_has_its_sign_and_two_digits():
    assert [format.coefficient(r) for r in (0.617, -0.05, 0)] == ["+0.62", "−0.05", "+0.00"]


ZONES = st.sampled_from(["UTC", "Europe/Berlin", "Asia/Kathmandu", "America/St_Johns", "Australia/Lord_Howe"])
MINUTES = st.integers(1_577_836_800 // 60, 1_893_456_000 // 60)


@given(MINUTES, ZONES)
def test_a_time_means_one_moment_even_if_clocks_showed_it_twice(minutes, name):
    zone = ZoneInfo(name)
    with format.times_in(zone):
        text = format.minute(minutes * 60.0)
        assert format.minute(datetime.fromtimestamp(minutes * 60, UTC).isoformat()) == text
        assert format.second(minutes * 60.0) == f"{text[:16]}:00{text[16:]}"
        assert format.moment(minutes * 60.0) == f"{text} {name}"
    read = datetime.fromisoformat(text)
    assert (read if read.tzinfo else read.replace(tzinfo=zone)).timestamp() == minutes * 60


def test_an_hour_that_was_twice_has_its_offset():
    with format.times_in(ZoneInfo("Europe/Berlin")):
        assert format.minute("2026-10-25T00:30:00+00:00") == "2026-10-25 02:30+02:00"
        assert format.minute("2026-10-25T01:30:00+00:00") == "2026-10-25 02:30+01:00"
        assert format.moment("2026-10-25T02:30:00.250+00:00") == "2026-10-25 03:30 Europe/Berlin"
        assert format.second("2026-03-29T01:00:00+00:00") == "2026-03-29 03:00:00"


def test_times_are_in_utc_unless_a_zone_is_asked_for():
    with pytest.raises(ValueError), format.times_in(timezone(timedelta(hours=1))):
        assert (format.zone(), format.minute("2026-11-22T10:11:12")) == ("UTC+01:00", "2026-11-22 11:11")
        raise ValueError
    assert format.moment("2026-11-22T10:11:12.345+00:00") == "2026-11-22 10:11 UTC"
    assert format.moment("2026-11-22T10:11:12+02:00") == "2026-11-22 08:11 UTC"


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.031, "+3.1\u00a0%"),
        (-0.18, "−18\u00a0%"),
        (-0.0001, "0.0\u00a0%"),
        (0.0996, "+10\u00a0%"),
        (14.423, "+1,442\u00a0%"),
        (None, "–"),
        (-12.5, "−1,250\u00a0%"),
    ],
)
def test_a_change_is_written_with_its_sign(share, text):
    assert format.signed(share) == text


def test_transactions_of_ours_have_hyphens_and_those_of_a_user_are_as_they_were_written():
    ours = {kind.name for name in WORKLOADS for kind in find_workload(name).transactions if "_" in kind.name}
    assert ours == format.WRITTEN_WITH_HYPHENS
    assert format.display_name("trade_order") == "Trade-Order"
    assert format.display_name("place_order") == "place_order"
