import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stallmark import format


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (math.nan, "–"),
        (0, "0"),
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
    assert format.signed_share(format.difference(100, 98)) == "−2.0" + format.NBSP + "%"


def test_a_correlation_has_its_sign_and_two_digits():
    assert [format.coefficient(r) for r in (0.617, -0.05, 0)] == ["+0.62", "−0.05", "+0.00"]
