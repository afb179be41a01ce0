"""The same answer, and answers that are not the same."""

from datetime import date
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stallmark.transactions.warehouse.oracle import COLUMNS, ORDERED_BY, VALIDATION_ROWS, differences
from stallmark.transactions.warehouse.queries import QUERIES

MONEY = st.decimals(-(10**12), 10**12, places=4)
Q1 = ("A", "F", 10, 100.0, 100.0, 100.0, 25.58, 100.0, 0.05, 4)


def with_(row: tuple, column: int, value: object) -> tuple:
    return (*row[:column], value, *row[column + 1 :])


def test_every_query_has_its_rule():
    assert tuple(COLUMNS) == tuple(VALIDATION_ROWS) == QUERIES
    assert set(ORDERED_BY) == {query for query, kinds in COLUMNS.items() if len(kinds) > 1}
    assert all(column < len(COLUMNS[query]) for query, column in ORDERED_BY.items())


def test_the_same():
    assert differences(1, [Q1], [list(Q1)]) == []
    assert differences(20, [], []) == []


def test_what_engines_write_differently_is_the_same():
    ours = [("ALGERIA        ", Decimal("1995"), Decimal("10.00"))]
    assert differences(9, ours, [("ALGERIA", 1995, 10.0)]) == []
    assert differences(18, [("C", 1, 2, date(1995, 1, 2), Decimal("1.10"), 300)], [
        ("C", 1, 2, date(1995, 1, 2), 1.1, Decimal("300.00"))
    ]) == []  # fmt: skip


@pytest.mark.parametrize(
    ("column", "value", "same"),
    [
        (0, "R", False),
        (2, 10.01, False),  # a sum of quantities
        (3, 200.0, True),
        (3, 200.01, False),
        (5, 0.0, True),
        (6, 25.83, True),
        (6, 25.85, False),
        (8, 0.0549, True),  # 0.05 with two decimals
        (8, 0.056, False),
        (9, 5, False),
    ],
)
def test_tolerances(column, value, same):
    assert (differences(1, [with_(Q1, column, value)], [Q1]) == []) is same


@given(wanted=MONEY, off=MONEY)
def test_sums_of_money_are_within_a_hundred(wanted, off):
    assert (differences(6, [(wanted + off,)], [(wanted,)]) == []) == (abs(off) <= 100)


@given(wanted=MONEY, share=st.decimals("-0.0099", "0.0099", places=6))
def test_ratios_within_a_percent_are_the_same(wanted, share):
    assert differences(14, [(wanted * (1 + share),)], [(wanted,)]) == []


@given(wanted=st.decimals(1, 10**6, places=2), share=st.decimals("0.03", 10, places=3))
def test_ratios_further_off_are_not(wanted, share):
    for value in (wanted * (1 + share), wanted * (1 - share)):
        assert differences(17, [(value,)], [(wanted,)])


def test_nothing_is_nothing_alone():
    assert differences(17, [(None,)], [(None,)]) == []
    assert differences(17, [(None,)], [(0.0,)]) == ["column 1 of (None) is None, and not 0.0"]
    assert differences(6, [(Decimal(0),)], [(None,)])


def test_rows_too_many_or_missing():
    urgent, high, low = ("1-URGENT", 93), ("2-HIGH", 103), ("5-LOW", 128)
    assert differences(4, [urgent, high], [urgent]) == ["there are 2 rows, and not 1", "(2-HIGH, 103) is too much"]
    assert differences(4, [urgent], [urgent, low]) == ["there are 1 rows, and not 2", "(5-LOW, 128) is missing"]
    assert differences(4, [urgent, high], [urgent, low]) == ["(2-HIGH, 103) is too much", "(5-LOW, 128) is missing"]
    assert differences(4, [urgent, urgent], [urgent, high]) == [
        "(1-URGENT, 93) is too much",
        "(2-HIGH, 103) is missing",
    ]


def test_another_number_of_columns():
    assert differences(4, [("1-URGENT",)], [("1-URGENT", 1)]) == ["rows have 1 columns, and not 2"]


def test_another_order():
    first, second = ("1-URGENT", 93), ("2-HIGH", 103)
    assert differences(4, [second, first], [first, second]) == [
        "the rows are in another order, which is first by column 1"
    ]
    # Behind the first column it is a matter of collation.
    tied = [("Brand#11", "A B", 1, 4), ("Brand#11", "AA", 1, 4)]
    assert differences(16, tied, tied[::-1]) == []


def test_revenue_orders_as_exactly_as_it_is_compared():
    ours = [("PERU", 1000), ("CHINA", 950)]
    assert differences(5, ours, [("CHINA", 1000), ("PERU", 950)]) == []
    assert differences(5, ours, [("CHINA", 950), ("PERU", 1000)]) == []
    assert differences(5, ours[::-1], [("PERU", 1000), ("CHINA", 850)])
