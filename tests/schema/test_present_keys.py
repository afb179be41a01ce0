"""The keys of a schema that are there and trusted, on every engine."""

import sqlalchemy as sa
from support.mssql_server import answering, engine_at, says_it_is
from support.tds.answers import Rows
from support.tds.datatypes import INT, nvarchar
from support.tds.script import Script
from support.tds.tokens import Column

from stallmark.engines.postgres.embedded.engine import EmbeddedEngine
from stallmark.schema import deploy
from stallmark.schema.bank import tables as bank
from stallmark.schema.brokerage import tables as brokerage
from stallmark.schema.ddl import ddl_of, defects, name_of, table_of

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
