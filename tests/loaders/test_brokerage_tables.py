"""The brokerage's tables that do not follow from trades: as many rows as there should be, of the types the schema
declares, with unique keys and with no reference into the void."""

from collections import defaultdict

import pyarrow as pa
import pyarrow.compute as pc
import pytest
import sqlalchemy as sa

from stallmark.loaders import Batch
from stallmark.loaders.brokerage import LOADER, market_group
from stallmark.loaders.brokerage.counts import rows
from stallmark.loaders.brokerage.customers import customers
from stallmark.loaders.brokerage.fixed import fixed
from stallmark.schema.brokerage import Population
from stallmark.schema.brokerage.tables import METADATA

pytestmark = pytest.mark.thorough

SEED = 11
ARROW = {
    sa.BigInteger: pa.int64(),
    sa.Integer: pa.int32(),
    sa.SmallInteger: pa.int16(),
    sa.Date: pa.date32(),
    sa.DateTime: pa.timestamp("ms"),
    sa.Boolean: pa.bool_(),
}
BY_CHANCE = {"account_permission": 0.01, "watch_item": 0.02}  # how far from what is expected
NOT_HERE = {"broker", "customer_account", "trade"}  # these are the trade group's


@pytest.fixture(scope="module", params=[1_000, 2_000])
def everything(request: pytest.FixtureRequest) -> tuple[Population, dict[str, pa.Table]]:
    population = Population(request.param, 0.5)
    pieces = defaultdict(list)
    batches = [fixed(SEED, population)]
    for unit in range(population.units):
        batches += [customers(SEED, population, unit), market_group(SEED, population, unit, 2.0)]
    for batch in batches:
        for name, piece in batch:
            check(METADATA.tables[name], piece)
            assert piece.num_rows <= 250_000
            assert piece.nbytes < 17e6
            if name == "brokerage.news_item":  # all bodies are too much to keep
                body = piece.schema.get_field_index("ni_item")
                piece = piece.set_column(body, "ni_item", pc.binary_length(piece["ni_item"]))
            pieces[name.removeprefix("brokerage.")].append(piece)
    return population, {name: pa.concat_tables(tables) for name, tables in pieces.items()}


def check(table: sa.Table, piece: pa.Table) -> None:
    assert piece.column_names == [column.name for column in table.columns]
    for column in table.columns:
        values = piece[column.name]
        assert column.nullable or not values.null_count, column
        match column.type:
            case sa.Numeric(precision=precision, scale=scale):
                assert values.type == pa.decimal128(precision, scale), column
                bound = 10 ** (precision - scale)
                extremes = pc.min_max(values).as_py()
                assert -bound < extremes["min"] <= extremes["max"] < bound, column
            case sa.String(length=longest):
                assert values.type == pa.string(), column
                assert pc.all(pc.string_is_ascii(values)).as_py(), column
                lengths = pc.min_max(pc.binary_length(values)).as_py()
                assert 1 <= lengths["min"] <= lengths["max"] <= (longest or 100_000), column
                assert not isinstance(column.type, sa.CHAR) or lengths["min"] == longest, column
            case other:
                expected = next(ARROW[kind] for kind in type(other).__mro__ if kind in ARROW)
                assert values.type == expected, column


def test_there_are_as_many_rows_as_announced(everything) -> None:
    population, tables = everything
    expected: dict[str, int] = defaultdict(int)
    for group, counts in rows(population).items():
        if group != "trade":
            for table, count in counts.items():
                expected[table] += count
    assert set(tables) == set(expected)
    for name, table in tables.items():
        assert table.num_rows == pytest.approx(expected[name], rel=BY_CHANCE.get(name, 0)), name


def test_keys_are_unique(everything) -> None:
    for name, table in everything[1].items():
        key = [column.name for column in METADATA.tables[f"brokerage.{name}"].primary_key]
        assert len(table.group_by(key).aggregate([])) == len(table), name
    for table, column in (("customer", "c_tax_id"), ("company", "co_name"), ("security", "s_name")):
        values = everything[1][table][column]
        assert len(values.unique()) == len(values), column


def test_every_reference_is_to_a_row(everything) -> None:
    tables = everything[1]
    checked = 0
    for name, table in tables.items():
        for key in METADATA.tables[f"brokerage.{name}"].foreign_keys:
            target = key.column.table.name
            if target in NOT_HERE:
                continue
            missing = pc.invert(pc.is_in(table[key.parent.name], tables[target][key.column.name]))
            assert not pc.any(missing).as_py(), key
            checked += 1
    assert checked == 27  # of 50; the others are of the trade group or point into it


def test_every_address_is_somebodys(everything) -> None:
    tables = everything[1]
    owned = [tables["exchange"]["ex_ad_id"], tables["company"]["co_ad_id"], tables["customer"]["c_ad_id"]]
    owners = pa.chunked_array([chunk for column in owned for chunk in column.chunks])
    assert sorted(owners.to_pylist()) == sorted(tables["address"]["ad_id"].to_pylist())


def test_exchanges_know_how_many_they_list(everything) -> None:
    tables = everything[1]
    listed = {each["values"]: each["counts"] for each in tables["security"]["s_ex_id"].value_counts().to_pylist()}
    said = dict(
        zip(tables["exchange"]["ex_id"].to_pylist(), tables["exchange"]["ex_num_symb"].to_pylist(), strict=True)
    )
    assert listed == said


# Tables that are the same for every seed: their rows follow from their keys.
SEEDLESS = {
    "customers": {"watch_list"},
    "market": {"last_trade", "news_xref"},
    "trade": set(),
}  # fmt: skip


@pytest.mark.parametrize("group", SEEDLESS)
def test_a_batch_follows_from_its_seed_and_number(group: str) -> None:
    scale = LOADER.scale({"customers": 3_000, "days": 0.05})

    def made(seed: int, unit: int) -> dict[str, pa.Table]:
        pieces = defaultdict(list)
        for name, piece in LOADER.batch(seed, scale, Batch(group, unit)):
            pieces[name.removeprefix("brokerage.")].append(piece)
        return {name: pa.concat_tables(tables) for name, tables in pieces.items()}

    first, other = made(SEED, 1), made(SEED + 1, 0)
    again, differently = made(SEED, 1), made(SEED + 1, 1)
    assert again == first and not any(other[name].equals(table) for name, table in first.items())
    assert {name for name, table in first.items() if differently[name].equals(table)} == SEEDLESS[group]
