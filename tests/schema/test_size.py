"""The disk estimate is what tables really take."""

from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stallmark.driver.engines.embedded import EmbeddedEngine
from stallmark.schema import bank, deploy, size

ROWS = 20_000
# A type and a value of it that takes the declared space.
KINDS: dict[str, tuple[Any, str]] = {
    "small": (sa.SmallInteger(), "7::int2"),
    "integer": (sa.Integer(), "7"),
    "big": (sa.BigInteger(), "7"),
    "flag": (sa.Boolean(), "true"),
    "day": (sa.Date(), "DATE '2005-01-03'"),
    "time": (sa.DateTime(), "TIMESTAMP '2005-01-03'"),
    "money": (sa.Numeric(12, 2), "1234567890.12"),
    "short": (sa.CHAR(10), "'x'"),
    "long": (sa.String(300), "repeat('x', 300)"),
}


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(kinds=st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=8))
def test_postgres_tables_and_keys(database: EmbeddedEngine, kinds: list[str]) -> None:
    metadata = sa.MetaData(schema="sized")
    columns: list[sa.Column] = [sa.Column(f"c{k}", KINDS[kind][0]) for k, kind in enumerate(kinds)]
    table = sa.Table(
        "t", metadata, sa.Column("id", sa.Integer, primary_key=True, autoincrement=False), *columns
    )
    database.execute("DROP SCHEMA IF EXISTS sized CASCADE")
    deploy.create_tables(database, metadata)
    values = ", ".join(["n", *(KINDS[kind][1] for kind in kinds)])
    database.execute(f"INSERT INTO sized.t SELECT {values} FROM generate_series(1, {ROWS}) n")
    database.execute("REINDEX TABLE sized.t")
    [(heap, keys)] = database.query("SELECT pg_relation_size('sized.t'), pg_indexes_size('sized.t')")
    assert size.table_bytes(table, ROWS, "postgresql") == pytest.approx(heap, rel=0.02)
    assert size.index_bytes(table, ROWS, "postgresql") == pytest.approx(keys, rel=0.02)


def test_sql_server_by_hand() -> None:
    # 4 header + 96 fixed + 3 null bitmap + 2 slot = 105 bytes; 77 such rows in a page of 8,096.
    assert size.table_bytes(bank.ACCOUNTS, 7_700, "mssql") == 100 * 8192
    # A text of 5 bytes: 4 header + 8 fixed + (2 + 2 + 5) variable + 3 null bitmap + 2 slot = 26; 311 in a page.
    table = sa.Table("t", sa.MetaData(), sa.Column("a", sa.BigInteger), sa.Column("b", sa.String(5)))
    assert size.table_bytes(table, 311, "mssql") == 8192
    assert size.table_bytes(table, 312, "mssql") == 2 * 8192


def test_mean_of_a_varying_text() -> None:
    def pages(**info) -> int:
        column = sa.Column("a", sa.String(100), **info)
        return size.table_bytes(sa.Table("t", sa.MetaData(), column), 10_000, "postgresql")

    assert pages(info={"mean_bytes": 7}) < pages() / 2


def test_a_text_larger_than_a_page(database: EmbeddedEngine) -> None:
    metadata = sa.MetaData(schema="sized")
    table = sa.Table("news", metadata, sa.Column("article", sa.Text, info={"mean_bytes": 50_000}))
    deploy.create_tables(database, metadata)
    database.execute("ALTER TABLE sized.news ALTER article SET STORAGE EXTERNAL")
    database.execute("INSERT INTO sized.news SELECT repeat('x', 50000) FROM generate_series(1, 200)")
    [(taken,)] = database.query("SELECT pg_table_size('sized.news')")
    assert size.table_bytes(table, 200, "postgresql") == pytest.approx(taken, rel=0.05)


def test_a_build_takes_more_than_its_tables() -> None:
    rows = {"bank.accounts": 10_000_000}
    tables = size.table_bytes(bank.ACCOUNTS, 10_000_000, "postgresql")
    keys = size.index_bytes(bank.ACCOUNTS, 10_000_000, "postgresql")
    found = size.estimate(bank.METADATA, rows, "postgresql")
    # Tables, keys and the log of the load; as much again to sort the keys.
    assert found == size.Estimate(tables, tables + keys + tables, tables + 2 * keys + tables)
    large = size.estimate(bank.METADATA, {"bank.accounts": 10_000_000_000}, "postgresql")
    assert large.loaded_bytes < 1.3 * large.heap_bytes, "the log has its limit"
