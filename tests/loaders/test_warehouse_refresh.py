"""Refresh sets fulfil the rules that the loaded rows fulfil, and fit beside them.

The rules are checked on what the generator makes first: what holds there is a rule.
"""

import datetime
import re
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stallmark.errors import StallmarkError
from stallmark.loaders import LoadPlan
from stallmark.loaders.warehouse import LOADER
from stallmark.schema.warehouse import deletes, inserts, most_sets
from stallmark.schema.warehouse.tables import LINEITEM, ORDERS

pytestmark = pytest.mark.thorough

FACTOR = 0.01
FACTORS = st.sampled_from([0.01, 0.1, 1])
NUMBERS = st.integers(1, 3_000)

FIRST, LAST = datetime.date(1992, 1, 1), datetime.date(1998, 8, 2)
CURRENT = np.datetime64("1995-06-17")


@cache
def loaded() -> dict[str, pa.Table]:
    scale = LOADER.scale({"factor": FACTOR})
    batches = [batch for batch in LoadPlan(LOADER.groups(scale)).batches() if batch.group in ("orders", "lineitem")]
    pieces: dict[str, list[pa.Table]] = {}
    with LOADER.supply(scale, batches, 1) as supply:
        for batch in supply.batches:
            for table, piece in LOADER.supplied(supply.folders, 1, scale, batch):
                pieces.setdefault(table.removeprefix("warehouse."), []).append(piece)
    return {table: pa.concat_tables(of_table) for table, of_table in pieces.items()}


def cents(column: pa.ChunkedArray) -> np.ndarray:
    return pc.cast(pc.multiply(column, 100), pa.int64(), safe=False).to_numpy()


def check_rules(factor: float, orders: pa.Table, lineitem: pa.Table) -> None:
    key, of_order = orders["o_orderkey"].to_numpy(), lineitem["l_orderkey"].to_numpy()
    found, starts, counts = np.unique(of_order, return_index=True, return_counts=True)
    assert (found == key).all() and counts.max() <= 7
    line_number = np.arange(len(of_order)) - np.repeat(starts, counts) + 1
    assert (lineitem["l_linenumber"].to_numpy() == line_number).all()

    part, supplier = lineitem["l_partkey"].to_numpy().astype(int), lineitem["l_suppkey"].to_numpy()
    assert part.min() >= 1 and part.max() <= 200_000 * factor
    suppliers = int(10_000 * factor)
    four = [(part + i * (suppliers // 4 + (part - 1) // suppliers)) % suppliers + 1 for i in range(4)]
    assert (np.stack(four) == supplier).any(axis=0).all()

    quantity, price = cents(lineitem["l_quantity"]) // 100, cents(lineitem["l_extendedprice"])
    discount, tax = cents(lineitem["l_discount"]), cents(lineitem["l_tax"])
    assert quantity.min() >= 1 and quantity.max() <= 50
    assert (price == quantity * (90_000 + part // 10 % 20_001 + 100 * (part % 1_000))).all()
    assert discount.min() >= 0 and discount.max() <= 10 and tax.min() >= 0 and tax.max() <= 8
    charged = price * (100 - discount) // 100 * (100 + tax) // 100
    assert (np.add.reduceat(charged, starts) == cents(orders["o_totalprice"])).all()

    assert pc.min(orders["o_orderdate"]).as_py() >= FIRST and pc.max(orders["o_orderdate"]).as_py() <= LAST
    ordered = np.repeat(orders["o_orderdate"].to_numpy(), counts)
    shipped, received = lineitem["l_shipdate"].to_numpy(), lineitem["l_receiptdate"].to_numpy()
    for later, earlier, least, most in [
        (shipped, ordered, 1, 121),
        (lineitem["l_commitdate"].to_numpy(), ordered, 30, 90),
        (received, shipped, 1, 30),
    ]:
        days = (later - earlier).astype(int)
        assert least <= days.min() and days.max() <= most
    is_open = shipped > CURRENT
    assert (np.array(lineitem["l_linestatus"]) == np.where(is_open, "O", "F")).all()
    assert ((np.array(lineitem["l_returnflag"]) == "N") == (received > CURRENT)).all()
    open_lines = np.add.reduceat(is_open.astype(int), starts)
    status = np.where(open_lines == 0, "F", np.where(open_lines == counts, "O", "P"))
    assert (np.array(orders["o_orderstatus"]) == status).all()

    customer = orders["o_custkey"].to_numpy()
    assert (customer % 3 != 0).all() and customer.min() >= 1 and customer.max() <= 150_000 * factor
    clerk = pc.cast(pc.replace_substring(orders["o_clerk"], "Clerk#", ""), pa.int64()).to_numpy()
    assert clerk.min() >= 1 and clerk.max() <= max(1_000, 1_000 * factor)
    assert pc.unique(pc.binary_length(orders["o_clerk"])).to_pylist() == [15]
    for column, shortest, longest in [(orders["o_comment"], 19, 78), (lineitem["l_comment"], 10, 43)]:
        lengths = pc.binary_length(column)
        assert shortest <= pc.min(lengths).as_py() and pc.max(lengths).as_py() <= longest


def test_the_rules_are_those_of_the_load() -> None:
    check_rules(FACTOR, loaded()["orders"], loaded()["lineitem"])


@settings(max_examples=15)
@given(factor=FACTORS, number=NUMBERS)
def test_every_set_follows_them(factor: float, number: int) -> None:
    orders, lineitem = inserts(factor, number)
    assert orders.num_rows == len(deletes(factor, number)) == round(1_500 * factor)
    check_rules(factor, orders, lineitem)
    again = inserts(factor, number)
    assert orders.equals(again[0]) and lineitem.equals(again[1])


def test_columns_are_the_table_s_and_of_the_loaded_types() -> None:
    for table, rows in zip((ORDERS, LINEITEM), inserts(FACTOR, 1), strict=True):
        assert rows.schema.equals(loaded()[table.name].schema)
        assert rows.column_names == [column.name for column in table.columns]


def test_words_are_those_of_the_load() -> None:
    many = [inserts(1, number) for number in range(1, 9)]
    for place, (name, columns) in enumerate(
        {
            "orders": ["o_orderpriority", "o_orderstatus"],
            "lineitem": ["l_shipmode", "l_shipinstruct", "l_returnflag"],
        }.items()
    ):
        made = pa.concat_tables(one[place] for one in many)
        for column in columns:
            assert set(made[column].to_pylist()) == set(loaded()[name][column].to_pylist())
    # What query 13 leaves out.
    special = re.compile("special.*requests")
    shares = [
        np.mean([bool(special.search(text)) for text in table["o_comment"].to_pylist()])
        for table in (loaded()["orders"], pa.concat_tables(one[0] for one in many))
    ]
    assert shares[1] == pytest.approx(shares[0], rel=0.5)


def test_what_goes_is_what_came_first() -> None:
    """1,000 sets delete all that was loaded, in the order of keys; the others what was inserted 1,000 sets before."""
    gone = [deletes(FACTOR, number).tolist() for number in range(1, most_sets(FACTOR) + 1)]
    loaded_keys = loaded()["orders"]["o_orderkey"].to_pylist()
    assert [key for of_set in gone[:1_000] for key in of_set] == loaded_keys
    assert len({key for of_set in gone for key in of_set}) == 3 * len(loaded_keys)
    for number in (1, 2, 999, 1_000, 1_001, 2_000):
        assert inserts(FACTOR, number)[0]["o_orderkey"].to_pylist() == gone[number + 1_000 - 1]
    last = inserts(FACTOR, 3_000)[0]["o_orderkey"].to_pylist()
    assert not set(last) & {key for of_set in gone for key in of_set}


def test_no_set_beyond_the_last() -> None:
    assert most_sets(1) == 3_000
    for function in (inserts, deletes):
        with pytest.raises(StallmarkError, match="The refresh sets are exhausted: there are 3,000"):
            function(1, 3_001)
