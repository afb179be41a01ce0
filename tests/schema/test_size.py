"""The disk estimate is what tables really take."""

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import given, settings
from hypothesis import strategies as st
from support.mssql_server import answering, engine_at, says_it_is
from support.tds.answers import Rows
from support.tds.datatypes import INT, nvarchar
from support.tds.script import Script
from support.tds.tokens import Column

from stallmark.engines.postgres.embedded_engine import EmbeddedEngine
from stallmark.loaders import Batch, LoadPlan
from stallmark.loaders.brokerage import LOADER as BROKERAGE
from stallmark.loaders.mail import LOADER as MAIL
from stallmark.schema import deploy, size, version_of, versions_in
from stallmark.schema.bank import tables as bank
from stallmark.schema.brokerage import tables as brokerage
from stallmark.schema.ddl import ddl_of, defects, name_of, table_of
from stallmark.schema.mail import tables as mail

ROWS = 20_000
# A type and a value of it that takes the declared space.
KINDS: dict[str, tuple[Any, str]] = {
    "small": (sa.SmallInteger(), "7::int2"), "integer": (sa.Integer(), "7"), "big": (sa.BigInteger(), "7"),
    "flag": (sa.Boolean(), "true"), "day": (sa.Date(), "DATE '2005-01-03'"),
    "time": (sa.DateTime(), "TIMESTAMP '2005-01-03'"), "money": (sa.Numeric(12, 2), "1234567890.12"),
    "short": (sa.CHAR(10), "'x'"), "long": (sa.String(300), "repeat('x', 300)"),
}  # fmt: skip


@settings(max_examples=12)
@given(kinds=st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=8))
def test_postgres_tables_and_keys(database: EmbeddedEngine, kinds: list[str]) -> None:
    metadata = sa.MetaData(schema="sized")
    columns: list[sa.Column] = [sa.Column(f"c{k}", KINDS[kind][0]) for k, kind in enumerate(kinds)]
    table = sa.Table("t", metadata, sa.Column("id", sa.Integer, primary_key=True, autoincrement=False), *columns)
    database.execute("DROP SCHEMA IF EXISTS sized CASCADE")
    deploy.create_tables(database, metadata)
    values = ", ".join(["n", *(KINDS[kind][1] for kind in kinds)])
    database.execute(f"INSERT INTO sized.t SELECT {values} FROM generate_series(1, {ROWS}) n")
    database.execute("REINDEX TABLE sized.t")
    [(heap, keys)] = database.query("SELECT pg_relation_size('sized.t'), pg_indexes_size('sized.t')")
    assert size.table_bytes(table, ROWS, "postgresql") == pytest.approx(heap, rel=0.02)
    assert size.index_bytes(table, ROWS, "postgresql") == pytest.approx(keys, rel=0.02)


def test_brokerage(database: EmbeddedEngine) -> None:
    """Of its largest kinds of rows only the first: what is compared is bytes per row."""
    parts = ddl_of(brokerage.METADATA)
    deploy.create_tables(database, parts.tables)
    rows: Counter[str] = Counter()
    scale = BROKERAGE.scale({"customers": 1_000, "days": 0.3})
    with database.bulk_writer() as writer:
        for group in BROKERAGE.groups(scale):
            for table, piece in BROKERAGE.batch(1, scale, Batch(group.name, 0)):
                if rows[table] < 40_000:
                    writer.write(table, piece)
                    rows[table] += len(piece)
        writer.commit()
    deploy.finish(database, replace(parts, foreign_keys=()), "", rows=rows, workers=2, step=lambda *_: None)
    maps = "pg_relation_size(%(table)s, 'fsm') - pg_relation_size(%(table)s, 'vm')"
    sizes = f"SELECT pg_table_size(%(table)s) - {maps}, pg_indexes_size(%(table)s)"
    taken, expected = Counter[str](), Counter[str]()
    articles = LoadPlan(BROKERAGE.groups(scale)).article_bytes
    for table in size.with_article_bytes(brokerage.METADATA, articles):
        [(heap, keys)] = database.query(sizes, {"table": table.fullname})
        found = Counter(heap=heap, keys=keys)
        said = Counter(
            heap=size.table_bytes(table, rows[table.fullname], "postgresql"),
            keys=size.index_bytes(table, rows[table.fullname], "postgresql"),
        )
        for part in ("heap", "keys"):
            if found[part] > 100 * size.PAGE:  # smaller ones are mostly upper levels and maps of free space
                assert said[part] == pytest.approx(found[part], rel=0.1), (table.name, part)
        taken += found
        expected += said
    assert expected["heap"] == pytest.approx(taken["heap"], rel=0.05)
    assert expected["keys"] == pytest.approx(taken["keys"], rel=0.05)


def test_mail(database: EmbeddedEngine) -> None:
    """Bodies lie outside their rows, and are almost all there is."""
    parts = ddl_of(mail.METADATA)
    deploy.create_tables(database, parts.tables)
    scale = MAIL.scale({"mailboxes": 4})
    rows, sent = Counter[str](), 0
    with database.bulk_writer() as writer:
        for table, piece in MAIL.batch(1, scale, Batch("mailboxes", 0)):
            writer.write(table, piece)
            rows[table] += len(piece)
            sent += piece.nbytes
        writer.commit()
    [(taken,)] = database.query(
        "SELECT SUM(pg_table_size(oid)) FROM pg_class WHERE relnamespace = 'mail'::regnamespace"
    )
    expected = size.estimate(mail.METADATA.tables.values(), rows, "postgresql").heap_bytes
    of_mean = sent / (scale["mailboxes"] * scale["messages"] * 75_000)  # few bodies scatter
    assert expected * of_mean == pytest.approx(int(taken), rel=0.1)


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


def test_mean_of_a_number() -> None:
    """PostgreSQL stores the digits that are there, SQL Server those that may be."""

    def table(**info) -> sa.Table:
        return sa.Table("t", sa.MetaData(), *(sa.Column(name, sa.Numeric(15, 2), **info) for name in "abcd"))

    mean = table(info={"mean_bytes": 5})
    assert size.table_bytes(mean, 10_000, "postgresql") < 0.8 * size.table_bytes(table(), 10_000, "postgresql")
    assert size.table_bytes(mean, 10_000, "mssql") == size.table_bytes(table(), 10_000, "mssql")


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
    found = size.estimate(bank.METADATA.tables.values(), rows, "postgresql")
    # Tables, keys and the log of the load; as much again to sort the keys.
    assert found == size.Estimate(tables, tables + keys, tables + keys + tables, tables + 2 * keys + tables)
    two = size.estimate(bank.METADATA.tables.values(), rows | {"bank.tellers": 100_000}, "postgresql", workers=2)
    one = size.estimate(bank.METADATA.tables.values(), rows | {"bank.tellers": 100_000}, "postgresql")
    assert two.build_bytes - one.build_bytes == size.index_bytes(bank.TELLERS, 100_000, "postgresql")
    large = size.estimate(bank.METADATA.tables.values(), {"bank.accounts": 10_000_000_000}, "postgresql")
    assert large.loaded_bytes < 1.3 * large.heap_bytes, "the log has its limit"


def test_only_tables_with_articles_are_copied():
    tables = brokerage.METADATA.tables
    found = size.with_article_bytes(brokerage.METADATA, {"brokerage.news_item": 100})
    assert [one.fullname for one in found if one is not tables[one.fullname]] == ["brokerage.news_item"]
    assert len(found) == len(tables)


# The name and the version of several workloads on one server


@given(st.lists(st.integers(0, 99), min_size=1, max_size=4))
def test_the_one_version_of_several_tells_that_of_each(versions):
    assert versions_in(version_of(versions), len(versions)) == versions


# The keys of a schema that are there and trusted, on every engine


BABELFISH = "Babelfish for PostgreSQL with SQL Server Compatibility - 12.0.2000.8"


def items(metadata: sa.MetaData) -> list:
    parts = ddl_of(metadata)
    return [*parts.keys, *parts.foreign_keys]


def made(database: EmbeddedEngine, metadata: sa.MetaData) -> str:
    parts = ddl_of(metadata)
    deploy.create_tables(database, parts.tables)
    deploy.finish(database, parts, "", rows={}, step=lambda *_: None)
    return str(metadata.schema)


def test_a_schema_that_was_built_has_no_defect(database: EmbeddedEngine) -> None:
    assert defects(database, made(database, bank.METADATA), items(bank.METADATA)) == []


def test_what_is_not_as_it_should_be_is_named(database: EmbeddedEngine) -> None:
    schema = made(database, brokerage.METADATA)
    assert defects(database, schema, items(brokerage.METADATA)) == []
    for wrong in (
        "DROP INDEX brokerage.trade_t_ca_id_t_dts_idx",
        "ALTER TABLE brokerage.holding DROP CONSTRAINT holding_h_ca_id_fkey",
        "ALTER TABLE brokerage.security ADD CONSTRAINT more CHECK (s_pe > 1) NOT VALID",
        "ALTER TABLE brokerage.settlement DROP CONSTRAINT settlement_se_t_id_fkey; "
        "ALTER TABLE brokerage.settlement ADD CONSTRAINT settlement_se_t_id_fkey FOREIGN KEY (se_t_id) "
        "REFERENCES brokerage.trade NOT VALID",
    ):
        database.execute(wrong)
    assert defects(database, schema, items(brokerage.METADATA)) == [
        "brokerage.holding: holding_h_ca_id_fkey is missing",
        "brokerage.trade: trade_t_ca_id_t_dts_idx is missing",
        "brokerage.security: more is disabled or was never checked",
        "brokerage.settlement: settlement_se_t_id_fkey is disabled or was never checked",
    ]


def on_sql_server(*rows: tuple[str, str, int], banner: str = "Microsoft SQL Server") -> list[str]:
    script = Script()
    says_it_is(script, banner=banner)
    columns = [Column("table_name", nvarchar(128)), Column("item_name", nvarchar(128)), Column("k", INT)]
    script.sql("sys.check_constraints", Rows(columns, list(rows)))
    with answering(script) as server:
        return defects(engine_at(server), "bank", items(bank.METADATA))


def of_bank(trusted: int = 1) -> list[tuple[str, str, int]]:
    return [(table_of(item).name, name_of(item, "mssql"), trusted) for item in items(bank.METADATA)]


def test_sql_server_s_answer_is_read_in_the_same_way() -> None:
    assert on_sql_server(*of_bank()) == []
    [first, *others] = of_bank()
    assert on_sql_server(*others) == [f"bank.{first[0]}: {first[1]} is missing"]
    assert on_sql_server(*of_bank(0)) == [
        f"bank.{table}: {name} is disabled or was never checked" for table, name, _ in sorted(of_bank())
    ]


def test_babelfish_s_own_names_of_indexes_are_known() -> None:
    """As Babelfish 4.4 lists them; on SQL Server they would be others."""
    there = [(table, f"{name}{table}85151f3656bb73f5aa39e5b47fcd3b28", 1) for table, name, _ in of_bank()]
    assert on_sql_server(*there, banner=BABELFISH) == []
    assert len(on_sql_server(*there)) == len(there)
