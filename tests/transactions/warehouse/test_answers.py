"""The same answer, and answers that are not the same."""

from datetime import date
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.injected import Injected, check, condition_keys

from stallmark.engines.base import Engine
from stallmark.engines.postgres.embedded_engine import EmbeddedEngine
from stallmark.transactions import checks
from stallmark.transactions.warehouse import QUERIES, WORKLOAD
from stallmark.transactions.warehouse.oracle import COLUMNS, ORDERED_BY, VALIDATION_ROWS, differences

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


# The conditions of the warehouse hold for what is loaded, and each finds what is wrong


FILES = condition_keys(WORKLOAD)

# The condition that must find it, and what is wrong. No foreign key is in force.
INJECTIONS = [
    ("rows", "DELETE FROM warehouse.orders WHERE o_orderkey = 3"),
    ("rows", "DELETE FROM warehouse.region WHERE r_regionkey = 3"),
    ("rows", "DELETE FROM warehouse.nation WHERE n_nationkey = 3"),
    ("rows", "DELETE FROM warehouse.supplier WHERE s_suppkey = 3"),
    ("rows", "DELETE FROM warehouse.part WHERE p_partkey = 3"),
    ("rows", "DELETE FROM warehouse.partsupp WHERE ps_partkey = 3"),
    ("rows", "DELETE FROM warehouse.customer WHERE c_custkey = 3"),
    ("rows", "DELETE FROM warehouse.refresh"),
    ("rows", "UPDATE warehouse.refresh SET refresh_set = 1, deleted = FALSE"),
    ("loaded_lines", "DELETE FROM warehouse.lineitem WHERE l_orderkey = 3 AND l_linenumber = 2"),
    ("loaded_keys", "UPDATE warehouse.orders SET o_orderkey = 8 WHERE o_orderkey = 3"),
    ("loaded_keys", "UPDATE warehouse.orders SET o_orderkey = 64000 WHERE o_orderkey = 3"),
    ("refresh", "UPDATE warehouse.refresh SET deleted = FALSE"),
    ("refresh", "UPDATE warehouse.refresh SET inserted = FALSE"),
    ("order_lines", "DELETE FROM warehouse.lineitem WHERE l_orderkey = 3"),
    ("order_lines", "DELETE FROM warehouse.orders WHERE o_orderkey = 3"),
    ("order_lines", "DELETE FROM warehouse.lineitem WHERE l_orderkey = 3 AND l_linenumber = 2"),
    ("order_lines", "UPDATE warehouse.lineitem SET l_linenumber = l_linenumber + 1 WHERE l_orderkey = 2"),
    ("order_totals", "UPDATE warehouse.orders SET o_totalprice = o_totalprice + 0.01 WHERE o_orderkey = 3"),
    ("order_totals", "UPDATE warehouse.orders SET o_orderstatus = 'P' WHERE o_orderkey = 3"),
    ("order_totals", "UPDATE warehouse.lineitem SET l_tax = l_tax + 0.01 WHERE l_orderkey = 3"),
    ("line_dates", "UPDATE warehouse.orders SET o_orderdate = o_orderdate + 200 WHERE o_orderkey = 3"),
    ("line_dates", "UPDATE warehouse.orders SET o_orderdate = '1991-12-31' WHERE o_orderkey = 3"),
    ("line_dates", "UPDATE warehouse.lineitem SET l_receiptdate = l_shipdate WHERE l_orderkey = 3"),
    ("line_dates", "UPDATE warehouse.lineitem SET l_commitdate = '1992-01-01' WHERE l_orderkey = 3"),
    ("line_prices", "UPDATE warehouse.lineitem SET l_extendedprice = l_extendedprice + 0.01 WHERE l_orderkey = 3"),
    ("line_prices", "UPDATE warehouse.lineitem SET l_discount = 0.11 WHERE l_orderkey = 3"),
    ("line_prices", "UPDATE warehouse.lineitem SET l_linestatus = 'O' WHERE l_orderkey = 3"),
    ("line_prices", "UPDATE warehouse.lineitem SET l_returnflag = 'N' WHERE l_orderkey = 3"),
    ("parts", "UPDATE warehouse.part SET p_retailprice = p_retailprice + 0.01 WHERE p_partkey = 3"),
    ("parts", "DELETE FROM warehouse.partsupp WHERE ps_partkey = 3"),
    ("parts", "INSERT INTO warehouse.partsupp SELECT 3, 90, ps_availqty, ps_supplycost, ps_comment "
     "FROM warehouse.partsupp WHERE ps_partkey = 4 LIMIT 1"),
    ("buyers", "UPDATE warehouse.orders SET o_custkey = 3 WHERE o_orderkey = 3"),
    ("phones", "UPDATE warehouse.customer SET c_nationkey = (c_nationkey + 1) % 25 WHERE c_custkey = 3"),
    ("phones", "UPDATE warehouse.supplier SET s_phone = '1-2' WHERE s_suppkey = 3"),
    ("regions", "UPDATE warehouse.nation SET n_regionkey = 4 WHERE n_nationkey = 0"),
    ("regions", "DELETE FROM warehouse.nation WHERE n_regionkey = 4"),
]  # fmt: skip


def test_a_loaded_database_holds(engine: Engine, factor):
    findings = check(engine, WORKLOAD, {"factor": factor})
    assert len(findings) == len(WORKLOAD.conditions)
    assert [finding for finding in findings.values() if not finding.holds] == []
    assert checks.keys(engine, WORKLOAD).holds


@pytest.mark.parametrize(("finds", "wrong"), INJECTIONS)
def test_what_is_wrong_is_found(engine: Engine, factor, finds, wrong):
    if not isinstance(engine, EmbeddedEngine):
        pytest.skip("what is wrong is put into the embedded server alone: the conditions are the same texts")
    database = Injected(engine, "kept", f"SET session_replication_role = replica; {wrong}")
    finding = check(database, WORKLOAD, {"factor": factor}, finds)[finds]
    assert finding.holds is False
    assert finding.offending and finding.detail


def test_each_condition_has_something_to_find():
    assert {finds for finds, _ in INJECTIONS} == set(FILES.values())


def test_only_what_was_loaded_is_left_out_later(engine: Engine, factor):
    left_out = {
        file
        for file, finding in check(engine, WORKLOAD, {"factor": factor}, driven=True).items()
        if finding.holds is None
    }
    assert left_out == {"loaded_lines", "loaded_keys"}
