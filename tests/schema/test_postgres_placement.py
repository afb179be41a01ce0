"""Tables and indexes in tablespaces of a real server, reached by URL; the directories are the test's own."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from psycopg import sql

from stallmark.engines.postgres.embedded_engine import EmbeddedEngine
from stallmark.engines.postgres.engine import PostgresEngine
from stallmark.errors import StallmarkError
from stallmark.loaders.load import build
from stallmark.schema import deploy
from stallmark.schema.bank import tables as bank
from stallmark.schema.ddl import ddl_of
from stallmark.schema.placement import GROWING, Design, File, Filegroup, Settings, TableGroup, TempDb
from stallmark.schema.placement import postgres as postgres_placement
from stallmark.transactions.bank import WORKLOAD as BANK

FAST, NASTY = f"fast_{os.getpid()}", f'"we\'ird" 100%s {os.getpid()}'
WHERE = """
SELECT c.relname, coalesce(s.spcname, 'pg_default') FROM pg_class c LEFT JOIN pg_tablespace s ON s.oid = c.reltablespace
 WHERE c.relnamespace = 'bank'::regnamespace AND c.relkind IN ('r', 'i')"""


def run(engine: PostgresEngine, statement: str, *names: str) -> None:
    with engine.cursor() as cursor:
        cursor.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))


@pytest.fixture
def engine(database: EmbeddedEngine, tmp_path: Path) -> Iterator[PostgresEngine]:
    """A database by URL, on a server with two tablespaces."""
    engine = PostgresEngine(database.spec())
    for number, name in enumerate((FAST, NASTY)):
        (tmp_path / str(number)).mkdir()
        run(engine, f"CREATE TABLESPACE {{}} LOCATION '{tmp_path / str(number)}'", name)
    yield engine
    engine.execute("DROP SCHEMA IF EXISTS bank CASCADE; DROP SCHEMA IF EXISTS shop CASCADE")
    for name in (FAST, NASTY):
        run(engine, "DROP TABLESPACE {}", name)


def in_tablespaces(table: str, tablespace: str | None, index_tablespace: str | None = None) -> Design:
    group = TableGroup((table,), tablespace=tablespace, index_tablespace=index_tablespace)
    return Design(tables=(group,))


def make(engine: PostgresEngine, design: Design, metadata: sa.MetaData = bank.METADATA) -> None:
    parts = postgres_placement.place_tables(ddl_of(metadata), design)
    deploy.create_tables(engine, parts.tables)
    deploy.finish(engine, parts, "", rows={}, step=lambda *_: None)


@pytest.fixture
def refused(engine: PostgresEngine) -> Callable[[Design], str]:
    """The sentence with which a design is refused that the bank there does not have."""

    def sentence(design: Design) -> str:
        with pytest.raises(StallmarkError) as caught:
            postgres_placement.refuse_other(engine, design, bank.METADATA)
        return str(caught.value)

    return sentence


def shop() -> sa.MetaData:
    metadata = sa.MetaData(schema="shop", naming_convention=bank.METADATA.naming_convention)
    columns = (
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("number", sa.Integer),
        sa.Column("note", sa.Text),
    )
    key = sa.UniqueConstraint("number", name="sale_number_key")
    sa.Table("sale", metadata, *columns, key, sa.Index("sale_number_ix", "number"))
    sa.Table("line", metadata, sa.Column("sale_id", sa.ForeignKey("shop.sale.id")))
    return metadata


def lies(engine: PostgresEngine, schema: str) -> dict[str, str]:
    return dict(engine.query(WHERE.replace("'bank'", f"'{schema}'")))


def test_a_bank_is_built_where_it_is_wanted(engine, tmp_path):
    design = Design(
        tables=(
            TableGroup((GROWING,), tablespace=NASTY),
            TableGroup(("accounts",), tablespace=FAST, index_tablespace=NASTY),
            TableGroup(("tellers",), index_tablespace=FAST),
        )
    )
    postgres_placement.refuse_impossible(engine, design)
    build(
        engine, BANK, {"branches": 1}, 1, workers=1,
        arrange=lambda parts: postgres_placement.place_tables(parts, design),
    )  # fmt: skip
    assert lies(engine, "bank") == {
        "history": NASTY, "accounts": FAST, "accounts_pkey": NASTY, "tellers": "pg_default", "tellers_pkey": FAST,
        "branches": "pg_default", "branches_pkey": "pg_default",
    }  # fmt: skip
    postgres_placement.refuse_other(engine, design, bank.METADATA)
    assert any(path.stat().st_size > 10_000_000 for path in (tmp_path / "0").rglob("*")), "100,000 accounts"
    settings = engine.settings().placement
    assert settings[f"tablespace {FAST}"] == f"{tmp_path / '0'}: bank.accounts, bank.tellers_pkey"
    assert settings[f"tablespace {NASTY}"] == f"{tmp_path / '1'}: bank.history, bank.accounts_pkey"


def test_every_key_and_index_and_what_is_kept_outside_its_row(engine):
    make(engine, in_tablespaces("sale", FAST, NASTY), shop())
    assert lies(engine, "shop") == {
        "sale": FAST, "sale_pkey": NASTY, "sale_number_key": NASTY, "sale_number_ix": NASTY, "line": "pg_default",
    }  # fmt: skip
    toast = "SELECT t.reltablespace = c.reltablespace FROM pg_class c JOIN pg_class t ON t.oid = c.reltoastrelid"
    assert engine.query(f"{toast} WHERE c.oid = 'shop.sale'::regclass") == [(True,)]
    assert FAST in str(engine.settings()) and "pg_toast" not in str(engine.settings())


def test_indexes_lie_with_their_table(engine):
    make(engine, in_tablespaces("sale", FAST), shop())
    assert {place for name, place in lies(engine, "shop").items() if name.startswith("sale")} == {FAST}


def test_the_tablespace_of_the_database_is_one_like_others(engine, refused):
    make(engine, in_tablespaces("accounts", "pg_default"))
    postgres_placement.refuse_other(engine, in_tablespaces("accounts", "pg_default"), bank.METADATA)
    database = engine.query("SELECT current_database()::text")[0][0]
    moved = PostgresEngine(engine.spec().replace(f"/{database}", "/moved"))
    run(engine, "CREATE DATABASE moved TABLESPACE {}", FAST)
    try:
        make(moved, Design())
        postgres_placement.refuse_other(moved, in_tablespaces("accounts", FAST), bank.METADATA)
        with pytest.raises(StallmarkError, match=f"the table bank.accounts lies in {FAST}, not in pg_default"):
            postgres_placement.refuse_other(moved, in_tablespaces("accounts", "pg_default"), bank.METADATA)
        assert f"tablespace {FAST}" in moved.settings().placement
    finally:
        engine.execute("DROP DATABASE moved")


def test_what_lies_elsewhere_is_named(engine, refused):
    make(engine, in_tablespaces("accounts", FAST))
    said = refused(in_tablespaces("accounts", NASTY, "pg_default"))
    assert f"the table bank.accounts lies in {FAST}, not in {NASTY}; " in said
    assert f"the index accounts_pkey of bank.accounts lies in {FAST}, not in pg_default. Move" in said
    assert "history" not in said
    assert f"the table bank.history lies in pg_default, not in {FAST}" in refused(in_tablespaces(GROWING, FAST))
    # What is said of nothing may lie anywhere, and so may tables that are not the workload's.
    run(engine, "CREATE TABLE bank.foreigner (id int PRIMARY KEY) TABLESPACE {}", NASTY)
    postgres_placement.refuse_other(engine, in_tablespaces("accounts", None), bank.METADATA)


def test_a_missing_tablespace_is_refused_with_the_statement_that_makes_it(engine):
    for design in (in_tablespaces("accounts", 'no "such'), in_tablespaces("accounts", FAST, 'no "such')):
        with pytest.raises(StallmarkError) as caught:
            postgres_placement.refuse_impossible(engine, design)
        said = str(caught.value)
        assert 'has no tablespace no "such for tables, only ' in said
        assert f"{NASTY}, {FAST}, pg_default: name one" in said
        assert 'CREATE TABLESPACE "no ""such" LOCATION' in said
    with pytest.raises(StallmarkError, match="no tablespace pg_global for tables"):
        postgres_placement.refuse_impossible(engine, in_tablespaces("accounts", "pg_global"))


def test_a_missing_right_is_refused_with_the_statement_that_gives_it(engine):
    plain = PostgresEngine(engine.spec().replace("stallmark@", "plain@"))
    design = in_tablespaces("accounts", FAST, "pg_default")
    engine.execute(
        "CREATE ROLE plain LOGIN; GRANT CREATE ON DATABASE {} TO plain".format(
            engine.query("SELECT current_database()::text")[0][0]
        )
    )
    try:
        with pytest.raises(StallmarkError, match=f'GRANT CREATE ON TABLESPACE "{FAST}" TO it'):
            postgres_placement.refuse_impossible(plain, design)
        run(engine, "GRANT CREATE ON TABLESPACE {} TO plain", FAST)
        postgres_placement.refuse_impossible(plain, design)
        make(plain, design)
        assert lies(plain, "bank")["accounts"] == FAST
    finally:
        engine.execute("DROP OWNED BY plain; DROP SCHEMA IF EXISTS bank CASCADE")
        run(engine, "REVOKE CREATE ON TABLESPACE {} FROM plain", FAST)
        engine.execute("DROP ROLE plain")


@pytest.mark.parametrize(
    ("design", "sentence"),
    [
        (
            Design((File("/a", "a"),), (Filegroup("g", (File("/b", "b"),)),), (File("/c", "c"),)),
            "asks for files, filegroups, log, but PostgreSQL makes its files itself",
        ),
        (Design(tempdb=TempDb((File("/a", "a"),))), "asks for tempdb, but PostgreSQL has none: set temp_tablespaces"),
        (Design(tables=(TableGroup(("accounts",), "PRIMARY"),)), "has tablespaces: write `tablespace` and `index_t"),
        (Design(tables=(TableGroup(("accounts",), None, "PRIMARY"),)), "write `tablespace` and `index_tablespace`"),
        (
            Design(tables=(TableGroup(("accounts",), compression="page"),)),
            "asks for compression: page, but PostgreSQL compresses no tables: leave it out",
        ),
        (Design(settings=Settings(target_recovery_time_s=0)), "for target_recovery_time, but that is a setting of SQL"),
        (Design(settings=Settings(snapshot_isolation=False)), "for snapshot_isolation, but that is a setting of SQL"),
    ],
)  # fmt: skip
def test_what_only_sql_server_has_is_refused(database, design, sentence):
    with pytest.raises(StallmarkError) as caught:
        postgres_placement.refuse_impossible(database, design)
    assert sentence in str(caught.value)
