"""The nine tables of the warehouse, as both engines get them."""

import pytest
import sqlalchemy as sa
from sqlalchemy.dialects import mssql, postgresql
from support.designs import ddl

from stallmark.engines.postgres.embedded_engine import EmbeddedEngine
from stallmark.errors import StallmarkError
from stallmark.schema import deploy, warehouse
from stallmark.schema.ddl import Ddl, ddl_of
from stallmark.schema.placement import Design
from stallmark.schema.warehouse.tables import METADATA

DIALECTS = {"postgresql": postgresql.dialect(), "mssql": mssql.dialect()}

# Columns of each of the eight, and primary keys: TPC-H specification 2.17.3, 1.4.1.
COLUMNS = {
    "region": 3, "nation": 4, "supplier": 7, "part": 9, "partsupp": 5, "customer": 8, "orders": 9, "lineitem": 16,
}  # fmt: skip
KEYS = {"partsupp": ["ps_partkey", "ps_suppkey"], "lineitem": ["l_orderkey", "l_linenumber"]}


def statements(dialect: sa.Dialect) -> list[str]:
    return ddl(METADATA, Design(), dialect)


def test_tables_and_keys() -> None:
    tables = {table.name: table for table in METADATA.tables.values()}
    assert tables.keys() == {*COLUMNS, "refresh"} == warehouse.rows(1).keys()
    for name, count in COLUMNS.items():
        table = tables[name]
        assert len(table.columns) == count
        key = [column.name for column in table.primary_key]
        assert key == KEYS.get(name, [next(iter(table.columns)).name]), name
        assert not any(column.nullable for column in table.columns)


def test_foreign_keys_refer_to_whole_keys_of_the_same_types() -> None:
    keys = [key for table in METADATA.tables.values() for key in table.foreign_key_constraints]
    assert len(keys) == 8
    for key in keys:
        assert [element.column for element in key.elements] == list(key.referred_table.primary_key.columns)
        for element in key.elements:
            assert str(element.parent.type) == str(element.column.type), key.name


def test_the_largest_keys_fit() -> None:
    """Orders have four keys for each of theirs; the others have `integer`."""
    sizes = warehouse.rows(max(warehouse.FACTORS))
    assert max(sizes["part"], sizes["customer"], sizes["supplier"]) < 2**31 < 4 * sizes["orders"] < 2**63
    assert isinstance(METADATA.tables["warehouse.lineitem"].c.l_orderkey.type, sa.BigInteger)


def test_sizes_of_the_specification() -> None:
    assert warehouse.rows(1) == {
        "region": 5, "nation": 25, "supplier": 10_000, "part": 200_000, "partsupp": 800_000, "customer": 150_000,
        "orders": 1_500_000, "lineitem": 6_001_215, "refresh": 1,
    }  # fmt: skip
    for factor in warehouse.FACTORS:
        assert warehouse.rows(factor)["lineitem"] == pytest.approx(6e6 * factor, rel=0.01)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_statements_of_both_engines(dialect: str) -> None:
    texts = statements(DIALECTS[dialect])
    assert len(texts) == 9 + 9 + 2 + 8
    assert sum("numeric(15, 2)" in text.lower() for text in texts) == 6


def test_orphans_of_a_key_of_two_columns_are_named(database: EmbeddedEngine) -> None:
    parts = ddl_of(METADATA)
    deploy.create_tables(database, parts.tables)
    database.execute("""
        INSERT INTO warehouse.part
        SELECT 1, 'a', 'a', 'a', 'a', 1, 'a', 1, 'a';
        INSERT INTO warehouse.partsupp SELECT 1, supplier, 1, 1, 'a' FROM generate_series(1, 2) AS supplier;
        INSERT INTO warehouse.lineitem
        SELECT 8, 1, supplier, supplier, 1, 1, 0, 0, 'N', 'O', d, d, d, 'a', 'a', 'a'
        FROM generate_series(1, 3) AS supplier, (VALUES (DATE '1996-01-01')) AS v (d)
    """)
    with pytest.raises(StallmarkError) as error:
        deploy.finish(
            database,
            Ddl(parts.tables, parts.keys, [k for k in parts.foreign_keys if "partkey" in str(k.name)]),
            "",
            rows={},
            step=lambda *_: None,
        )
    assert "warehouse.lineitem has rows whose l_partkey, l_suppkey are not in warehouse.partsupp" in str(error.value)
    assert "l_orderkey 8, l_linenumber 3, l_partkey 1, l_suppkey 3" in str(error.value)
