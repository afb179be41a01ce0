"""Tables of several workloads in one database: each in a place of its own, on SQL Server and on PostgreSQL."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from support.designs import FILE_COLUMNS, SETTINGS_COLUMNS, TABLE_COLUMNS, ddl
from support.tds.answers import Rows
from support.tsql import parsers

from stallmark.engines.postgres.embedded.engine import EmbeddedEngine
from stallmark.engines.postgres.engine import PostgresEngine
from stallmark.errors import StallmarkError
from stallmark.schema import deploy
from stallmark.schema.bank import tables as bank
from stallmark.schema.brokerage import tables as brokerage
from stallmark.schema.ddl import ddl_of, together
from stallmark.schema.mail import tables as mail
from stallmark.schema.placement import mssql_existing
from stallmark.schema.placement import postgres as postgres_placement
from stallmark.schema.placement.design import GIB, Design, File, Filegroup, TableGroup, sized
from stallmark.schema.warehouse import tables as warehouse

BOTH = together([bank.METADATA, mail.METADATA])
ALL = together([bank.METADATA, brokerage.METADATA, mail.METADATA, warehouse.METADATA])


def designed(*tables: TableGroup) -> Design:
    groups = tuple(Filegroup(name, (File(f"/{name}/1.ndf", name),)) for name in ("accounting", "post", "log_like"))
    return Design(files=(File("/data/all.mdf", "all"),), filegroups=groups, tables=tables)


APART = designed(
    TableGroup(("bank.*",), "accounting"),
    TableGroup(("mail.*",), "post", compression="page"),
    TableGroup(("bank.growing", "mail.message"), "log_like"),
)
PLACES = {
    "bank.accounts": "accounting", "bank.branches": "accounting", "bank.tellers": "accounting",
    "bank.history": "log_like", "mail.message": "log_like", "mail.body": "post", "mail.folder": "post",
    "mail.mailbox": "post",
}  # fmt: skip


def test_each_workload_has_filegroups_of_its_own():
    APART.check_tables(BOTH)
    assert {table.fullname: APART.group_of(table).filegroup for table in BOTH.sorted_tables} == PLACES
    texts = ddl(BOTH, APART)
    for table, place in PLACES.items():
        [created] = [text for text in texts if text.startswith(f"CREATE TABLE {table} ")]
        assert f" ON [{place}]" in created
        assert ("DATA_COMPRESSION = PAGE" in created) == (place == "post")
        for key in (text for text in texts if text.startswith(f"ALTER TABLE {table} ") and "PRIMARY KEY" in text):
            assert key.endswith(f" ON [{place}]")
    assert not parsers.wrong(texts)


@pytest.mark.microsoft_parser
def test_microsoft_s_parser_takes_the_tables_of_all():
    assert not [text for text in ddl(ALL, designed(TableGroup(("*",), "post"))) if parsers.microsoft(text)]


def test_the_name_of_a_table_goes_before_those_of_several():
    design = designed(
        TableGroup(("*",), "post"), TableGroup(("growing",), "log_like"), TableGroup(("history",), "accounting")
    )
    design.check_tables(BOTH)
    found = {table.fullname: design.group_of(table).filegroup for table in BOTH.sorted_tables}
    assert found["bank.history"] == "accounting" and found["mail.message"] == found["mail.body"] == "log_like"
    assert found["bank.accounts"] == found["mail.folder"] == "post"


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (("customer",), "several tables customer: write brokerage.customer or warehouse.customer"),
        (("bank.customer",), "bank and brokerage and mail and warehouse have no table bank.customer"),
        (("shop.*",), r"have no table shop\.\*"),
        (("accounts", "bank.accounts"), "bank.accounts is there twice"),
    ],
)
def test_a_name_that_says_no_one_table_is_refused(names, said):
    with pytest.raises(StallmarkError, match=said):
        Design(tables=(TableGroup(names),)).check_tables(ALL)


def test_tables_of_one_name_each_have_a_place():
    design = designed(TableGroup(("warehouse.customer",), "post"), TableGroup(("brokerage.customer",), "accounting"))
    design.check_tables(ALL)
    assert design.group_of(ALL.tables["warehouse.customer"]).filegroup == "post"
    assert design.group_of(ALL.tables["brokerage.customer"]).filegroup == "accounting"


def test_a_file_is_as_large_as_the_tables_of_its_workload_need():
    rows = {"bank.accounts": 100_000_000, "mail.body": 10}
    whole = sized(APART, BOTH.tables.values(), rows)
    accounting, post, _ = (group.files[0].size_bytes for group in whole.filegroups)
    assert accounting > 10 * GIB > post


def test_partitions_have_names_of_their_own():
    """They are the database's, without a schema."""
    dated = [(table.name, column.name) for table in ALL.sorted_tables for column in table.columns if column.info]
    assert dated and len(set(dated)) == len(dated)


def test_all_schemas_are_compared_with_what_is_there(script, engine):
    there = {
        "bank": [("history", 0, None, "log_like", "none", "rowstore", None, None, None, 0)],
        "mail": [("folder", 0, None, "accounting", "page", "rowstore", None, None, None, 0)],
    }
    settings = ("simple", True, "OFF", 160, 60, "disabled", "checksum", False, "on")
    script.sql("sys.database_files", Rows(FILE_COLUMNS, []))
    script.sql("sys.databases", Rows(SETTINGS_COLUMNS, [settings]))
    script.sql("sys.tables", lambda request: [Rows(TABLE_COLUMNS, there[request.values[-1]])])
    found = mssql_existing.read(engine, deploy.schemas_of(BOTH))
    design = designed(TableGroup(("bank.*",), "log_like"), TableGroup(("mail.*",), "post", compression="page"))
    phrases = mssql_existing.differences(design, found, BOTH)
    assert [one for one in phrases if "table" in one] == ["the table mail.folder lies in accounting, not in post"]


@pytest.fixture
def by_url(database: EmbeddedEngine, tmp_path: Path) -> Iterator[PostgresEngine]:
    """A database by URL, on a server with a tablespace for each of two workloads."""
    engine = PostgresEngine(database.spec())
    for name in ("of_bank", "of_mail"):
        (tmp_path / name).mkdir()
        engine.execute(f"CREATE TABLESPACE {name} LOCATION '{tmp_path / name}'")
    yield engine
    engine.execute("DROP SCHEMA IF EXISTS bank CASCADE; DROP SCHEMA IF EXISTS mail CASCADE")
    for name in ("of_bank", "of_mail"):
        engine.execute(f"DROP TABLESPACE {name}")


def make(engine: PostgresEngine, metadata: sa.MetaData, design: Design) -> None:
    parts = postgres_placement.place_tables(ddl_of(metadata), design)
    deploy.create_tables(engine, parts.tables)
    deploy.finish(engine, parts, "", rows={}, step=lambda *_: None)


def test_each_workload_has_a_tablespace_of_its_own(by_url):
    design = Design(
        tables=(
            TableGroup(("bank.*",), tablespace="of_bank"),
            TableGroup(("mail.*",), tablespace="of_mail", index_tablespace="of_bank"),
        )
    )
    postgres_placement.refuse_impossible(by_url, design)
    make(by_url, BOTH, design)
    lies = by_url.query(
        "SELECT relnamespace::regnamespace::text, relkind::text, array_agg(DISTINCT spcname::text) FROM pg_class c"
        " JOIN pg_tablespace s ON s.oid = c.reltablespace WHERE relkind IN ('r', 'i')"
        " AND relnamespace::regnamespace::text IN ('bank', 'mail') GROUP BY 1, 2 ORDER BY 1, 2"
    )
    assert lies == [
        ("bank", "i", ["of_bank"]), ("bank", "r", ["of_bank"]), ("mail", "i", ["of_bank"]), ("mail", "r", ["of_mail"])
    ]  # fmt: skip
    postgres_placement.refuse_other(by_url, design, BOTH)
    elsewhere = Design(tables=(TableGroup(("mail.message",), tablespace="of_bank"),))
    with pytest.raises(StallmarkError, match=r"designs it: the table mail\.message lies in of_mail, not in of_bank"):
        postgres_placement.refuse_other(by_url, elsewhere, BOTH)
