"""The 33 tables of the brokerage database, as both engines get them."""

import re

import pytest
import sqlalchemy as sa
from sqlalchemy.dialects import mssql, postgresql
from sqlalchemy.schema import CreateIndex, CreateTable
from support.designs import ddl
from support.tsql import parsers

from stallmark.engines.postgres.embedded.engine import EmbeddedEngine
from stallmark.schema import deploy
from stallmark.schema.brokerage.tables import METADATA
from stallmark.schema.ddl import ddl_of
from stallmark.schema.placement.design import Design, File, Filegroup, TableGroup
from stallmark.schema.placement.mssql import place_tables

# Lookups by time, and by what a customer or a trader knows: shared/reference/brokerage.md.
COMPOSITES = {
    "trade": [("t_ca_id", "t_dts"), ("t_s_symb", "t_dts")], "holding": [("h_ca_id", "h_s_symb", "h_dts")],
    "customer": [("c_tax_id",)], "customer_account": [("ca_c_id",)],
    "watch_list": [("wl_c_id",)], "trade_request": [("tr_s_symb",)],
    "company": [("co_name",)], "security": [("s_co_id", "s_issue")], "holding_history": [("hh_t_id",)],
}  # fmt: skip


def statements(dialect: sa.Dialect) -> list[str]:
    return ddl(METADATA, Design(), dialect)


def test_tables_and_keys() -> None:
    tables = METADATA.tables.values()
    assert len(tables) == 33
    assert all(table.primary_key.columns for table in tables)
    assert sum(len(table.foreign_key_constraints) for table in tables) == 50
    assert {
        table.name: sorted(tuple(map(str, index.columns.keys())) for index in table.indexes)
        for table in tables
        if table.indexes
    } == COMPOSITES


def test_foreign_keys_refer_to_whole_keys_of_the_same_type() -> None:
    for table in METADATA.tables.values():
        for key in table.foreign_keys:
            assert list(key.column.table.primary_key.columns) == [key.column]
            assert str(key.parent.type) == str(key.column.type), key.parent
            assert not key.parent.nullable, key.parent


def test_only_what_may_be_unknown_may_be_missing() -> None:
    assert {column.name for table in METADATA.tables.values() for column in table.columns if column.nullable} == {
        "t_trade_price",
        "ni_author",
        "ad_line1",
        "ad_line2",
        "ad_ctry",
    }


@pytest.mark.parametrize("dialect", [postgresql.dialect(), mssql.dialect()], ids=["postgresql", "mssql"])
def test_statements_of_both_engines(dialect: sa.Dialect) -> None:
    names = [name for text in statements(dialect) for name in re.findall(r"(?:CONSTRAINT|INDEX) (\w+)", text)]
    assert len(names) == len(set(names)) and max(map(len, names)) <= 63
    assert not any(re.search("IDENTITY|SERIAL", text) for text in statements(dialect))


def test_large_tables_that_grow_are_rarely_vacuumed_and_small_ones_often() -> None:
    made = {name: next(text for text in statements(postgresql.dialect()) if f"TABLE brokerage.{name} " in text)
            for name in (table.name for table in METADATA.tables.values())}  # fmt: skip
    rarely = {name for name, text in made.items() if "autovacuum_vacuum_insert_threshold = 1000000" in text}
    assert rarely == {"trade", "trade_history", "settlement", "cash_transaction", "holding", "holding_history"}
    assert {name for name, text in made.items() if "fillfactor = 95" in text} == {
        "trade",
        "settlement",
        "cash_transaction",
    }
    assert not any("autovacuum" in text or "fillfactor" in text for text in statements(mssql.dialect()))


def test_news_are_never_compressed() -> None:
    def news(dialect: sa.Dialect) -> str:
        copy = ddl_of(METADATA).tables.tables["brokerage.news_item"]
        return str(CreateTable(copy).compile(dialect=dialect))

    assert "ni_item VARCHAR(max) NOT NULL" in news(mssql.dialect())
    assert "ni_item TEXT STORAGE EXTERNAL NOT NULL" in news(postgresql.dialect())


def test_growing_tables_apart() -> None:
    growing = TableGroup(("growing",), "FAST", "INDEXES", "page")
    design = Design(
        (File("/data/b.mdf", "b"),),
        tuple(Filegroup(name, (File(f"/data/{name}.ndf", name),)) for name in ("FAST", "INDEXES", "SLOW")),
        tables=(growing, TableGroup(("settlement",), "SLOW")),
    )
    parts = place_tables(ddl_of(METADATA), design)
    places = {
        table.name: re.findall(r"\) ON \[(\w+)\]", str(CreateTable(table).compile(dialect=mssql.dialect())))
        for table in parts.tables.sorted_tables
    }
    assert {name for name, place in places.items() if place == ["FAST"]} == {
        "cash_transaction",
        "holding",
        "holding_history",
        "holding_summary",
        "trade",
        "trade_history",
        "trade_request",
    }
    assert [name for name, place in places.items() if place == ["SLOW"]] == ["settlement"]
    assert places["security"] == []
    index = next(item for item in parts.keys if item.name == "trade_t_ca_id_t_dts_idx")
    assert "WITH (DATA_COMPRESSION = PAGE) ON [INDEXES]" in str(CreateIndex(index).compile(dialect=mssql.dialect()))  # type: ignore[arg-type]


def test_news_are_placed_with_their_table() -> None:
    design = Design(
        (File("/data/b.mdf", "b"),),
        (Filegroup("NEWS", (File("/data/news.ndf", "news"),)),),
        tables=(TableGroup(("news_item", "news_xref"), "NEWS", compression="page"),),
    )
    tables = place_tables(ddl_of(METADATA), design).tables.tables
    news, others = (
        str(CreateTable(tables[f"brokerage.{name}"]).compile(dialect=mssql.dialect()))
        for name in ("news_item", "news_xref")
    )
    assert news.endswith(") ON [NEWS] TEXTIMAGE_ON [NEWS] WITH (DATA_COMPRESSION = PAGE)")
    assert others.endswith(") ON [NEWS] WITH (DATA_COMPRESSION = PAGE)")


@pytest.mark.microsoft_parser
def test_microsofts_own_parser_takes_every_statement() -> None:
    script = ";\n".join(statements(mssql.dialect()))
    assert not parsers.microsoft(script)


NEWS = """
INSERT INTO brokerage.news_item
SELECT n, 'Headline', 'Summary', repeat('All the same. ', 5000), TIMESTAMP '2005-01-03', 'Source', NULL
  FROM generate_series(1, 20) n"""


def test_on_the_embedded_engine(database: EmbeddedEngine) -> None:
    parts = ddl_of(METADATA)
    deploy.create_tables(database, parts.tables)
    database.execute(NEWS)
    deploy.finish(database, parts, "", rows={}, workers=2, step=lambda *_: None)
    [(bytes_used,)] = database.query("SELECT pg_table_size('brokerage.news_item')")
    assert bytes_used > 20 * 5000 * len("All the same. ")
    kinds = """
        SELECT contype::text, count(*), bool_and(convalidated) FROM pg_constraint c
          JOIN pg_namespace n ON n.oid = connamespace
         WHERE nspname = 'brokerage' AND contype IN ('p', 'f') GROUP BY 1 ORDER BY 1"""
    assert database.query(kinds) == [("f", 50, True), ("p", 33, True)]


IMPOSSIBLE = [
    "trade_type VALUES ('TXX', 'No such type', NULL, false)",
    "taxrate VALUES ('XX1', 'More than there is', 1.5)",
    "commission_rate VALUES (1, 'TMB', 'NYSE', 100, 100, 0.5)",
    "holding VALUES (1, 1, 'A', TIMESTAMP '2005-01-03', 25, 0)",
    "holding_summary VALUES (1, 'A', 0)",
    "daily_market VALUES (DATE '2005-01-03', 'A', 25, 24, 23, 100)",
    "company_competitor VALUES (1, 1, 'AA')",
    "trade VALUES (1, TIMESTAMP '2005-01-03', 'CMPT', 'TMB', true, 'A', 0, 25, 1, 'X', 25, 0, 0, 0, true)",
]


def test_rows_that_cannot_be_and_debts_which_can(database: EmbeddedEngine) -> None:
    deploy.create_tables(database, ddl_of(METADATA).tables)
    for row in IMPOSSIBLE:
        with pytest.raises(Exception, match=r"violates (check|not-null)|null value"):
            database.execute(f"INSERT INTO brokerage.{row}")
    database.execute(
        "INSERT INTO brokerage.holding VALUES (1, 1, 'A', TIMESTAMP '2005-01-03', 25, -100);"
        "INSERT INTO brokerage.holding_summary VALUES (1, 'A', -100);"
        "INSERT INTO brokerage.settlement VALUES (1, 'Margin', DATE '2005-01-05', -2500)"
    )
