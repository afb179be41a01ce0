"""A database that is there, over the wire, compared with a design; and one that is made."""

from dataclasses import replace

import pytest
import sqlalchemy as sa
from support import sql_server
from support.designs import DESIGN, FILE_COLUMNS, SETTINGS_COLUMNS, TABLE_COLUMNS, shop
from support.mssql_server import says_it_is
from support.tds.answers import Count, Error, Rows
from support.tds.script import Script

from stallmark.engines.mssql import odbc
from stallmark.engines.mssql.engine import MssqlEngine
from stallmark.errors import StallmarkError
from stallmark.schema import deploy
from stallmark.schema.ddl import ddl_of
from stallmark.schema.placement import GIB, MIB, Design, Settings, mssql_existing
from stallmark.schema.placement import mssql as mssql_placement
from stallmark.schema.placement.mssql_existing import FoundFile

FILE_ROWS = [
    ("ROWS", "PRIMARY", "bank", "/data/bank.mdf", 2 * GIB, 64 * MIB, None),
    ("LOG", None, "bank_log", "/log/bank.ldf", GIB, 512 * MIB, None),
    ("ROWS", "PRIMARY", "bank_2", "/data/bank_2.ndf", 2 * GIB, 64 * MIB, None),
    ("ROWS", "growing", "growing", "/fast/growing.ndf", GIB, 0, None),
    ("ROWS", "indexes", "indexes", "/fast/indexes.ndf", GIB, 64 * MIB, None),
]
SETTINGS_ROW = ("simple", True, "OFF", 160, 60, "disabled", "checksum", False, "on")
TABLE_ROWS = [
    ("history", 0, None, "growing", "page", "rowstore", None, None, None, 0),
    ("other", 0, None, "PRIMARY", "none", "rowstore", None, None, None, 0),
    ("sale", 1, "sale_pkey", "growing", "page", "rowstore", "id", None, None, 0),
    ("sale", 2, "sale_number_key", "indexes", "page", "rowstore", "number", None, None, 0),
]


def answer(script: Script, files=FILE_ROWS, settings=SETTINGS_ROW, tables=TABLE_ROWS) -> None:
    script.sql("sys.database_files", Rows(FILE_COLUMNS, files))
    script.sql("sys.databases", Rows(SETTINGS_COLUMNS, [settings]))
    script.sql("sys.tables", Rows(TABLE_COLUMNS, tables))


def test_a_database_as_designed(script, engine):
    answer(script)
    mssql_existing.refuse_other(engine, DESIGN, shop())


def test_another_fill_factor_is_a_difference(script, engine):
    answer(script, tables=changed(TABLE_ROWS, 2, 9, 1))
    wanted = replace(DESIGN, tables=tuple(replace(group, fill_factor=1) for group in DESIGN.tables))
    found = mssql_existing.differences(wanted, mssql_existing.read(engine, ["bank"]), shop())
    assert found == ["the fill factor of the index sale_number_key of bank.sale is 100, not 1"]


def changed(rows: list[tuple], number: int, position: int, value: object) -> list[tuple]:
    row = list(rows[number])
    row[position] = value
    return [*rows[:number], tuple(row), *rows[number + 1 :]]


@pytest.mark.parametrize(
    ("there", "phrase"),
    [
        ({"files": FILE_ROWS[:1] + FILE_ROWS[2:]}, "the file bank_log is not there"),
        ({"files": [*FILE_ROWS, ("ROWS", "PRIMARY", "x", "/x", 1, 0, None)]}, "there is one file more, x in PRIMARY"),
        (
            {"files": changed(FILE_ROWS, 1, 3, "/data/bank.ldf")},
            "bank_log lies at /data/bank.ldf, not at /log/bank.ldf",
        ),
        ({"files": changed(FILE_ROWS, 0, 4, GIB)}, "the file bank has 1,024 MiB, not 2,048 MiB"),
        ({"files": changed(FILE_ROWS, 0, 5, None)}, "bank grows by a share of its size, not by 65,536 KiB"),
        ({"files": changed(FILE_ROWS, 3, 1, "PRIMARY")}, "the file growing is in PRIMARY, not in growing"),
        ({"settings": ("full", *SETTINGS_ROW[1:])}, "recovery is full, not simple"),
        ({"settings": ("simple", False, *SETTINGS_ROW[2:])}, "read_committed_snapshot is off, not on"),
        ({"settings": ("simple", True, "ON", *SETTINGS_ROW[3:])}, "snapshot_isolation is on, not off"),
        ({"settings": (*SETTINGS_ROW[:4], 0, *SETTINGS_ROW[5:])}, "target_recovery_time_s is 0, not 60"),
        ({"tables": changed(TABLE_ROWS, 2, 3, "PRIMARY")}, "the table bank.sale lies in PRIMARY, not in growing"),
        (
            {"tables": changed(TABLE_ROWS, 3, 3, "growing")},
            "sale_number_key of bank.sale lies in growing, not in indexes",
        ),
        ({"tables": changed(TABLE_ROWS, 1, 3, "growing")}, "the table bank.other lies in growing, not in PRIMARY"),
        ({"tables": changed(TABLE_ROWS, 0, 4, "none")}, "the compression of the table bank.history is none, not page"),
        ({"tables": changed(TABLE_ROWS, 2, 5, "columnstore")}, "the table bank.sale is a columnstore, not a rowstore"),
        ({"tables": changed(TABLE_ROWS, 2, 6, "number")}, "the rows of bank.sale lie by number, not by id"),
    ],
)
def test_every_difference_is_named(script, engine, there, phrase):
    answer(script, **there)
    found = mssql_existing.differences(DESIGN, mssql_existing.read(engine, ["bank"]), shop())
    assert len(found) == 1 and found[0].endswith(phrase)
    with pytest.raises(StallmarkError, match=r"exists, but not as the scenario designs it: .*Drop it to have it made"):
        mssql_existing.refuse_other(engine, DESIGN, shop())


def test_what_the_design_leaves_open_is_right(script, engine):
    answer(script, files=changed(FILE_ROWS, 0, 4, 50 * GIB))
    found = mssql_existing.read(engine, ["bank"])
    assert mssql_existing.differences(DESIGN, found, shop()) == [], "a file that has grown is right"
    assert (
        mssql_existing.differences(
            replace(DESIGN, tables=(), settings=Settings(), files=(), filegroups=(), log=()), found, sa.MetaData()
        )
        == []
    )
    assert mssql_existing.differences(Design(), replace(found, indexes=found.indexes[1:2]), shop()) == []


def test_capitals_are_another_file_on_linux_alone():
    def lies_at(path: str) -> bool:
        return FoundFile("ROWS", "PRIMARY", "bank", path, GIB, 0).lies_at(path.lower())

    assert lies_at(r"D:\Data\Bank.mdf") and not lies_at("/Data/Bank.mdf")


def test_a_view_that_may_not_be_read_is_a_sentence(script, engine):
    script.sql("sys.databases", Error(229, "The SELECT permission was denied on the object 'databases'"))
    with pytest.raises(StallmarkError, match=r"cannot be read: The SELECT permission was denied .*'databases'\.$"):
        mssql_existing.read(engine, ["bank"])


def test_a_database_is_made_in_master_and_one_statement_at_a_time(script, server, engine):
    says_it_is(script)
    script.sql("DATABASE", Count(0))
    mssql_placement.make_database(engine, DESIGN)
    create, *settings = mssql_placement.create_database("bank", DESIGN)
    assert [request.text for request in server.requests if "DATABASE" in request.text] == (
        [create, "ALTER DATABASE [bank] SET AUTO_CLOSE OFF", *settings]
    )
    assert {login.database for login in server.logins} == {"master"}


def test_a_half_made_database_is_dropped(script, server, engine):
    says_it_is(script)
    script.sql("COMPATIBILITY", Error(15048, "Valid values of the database compatibility level are 100 to 150."))
    script.sql("DATABASE", Count(0))
    with pytest.raises(
        StallmarkError, match=r"as designed: Valid values .* to 150\. The statement was: ALTER DATABASE"
    ):
        mssql_placement.make_database(engine, DESIGN)
    assert server.requests[-1].text == "DROP DATABASE [bank]"


def test_a_database_that_could_not_be_made_is_not_dropped(script, server, engine):
    says_it_is(script)
    script.sql("CREATE DATABASE", Error(1801, "Database 'bank' already exists. Choose a different database name."))
    with pytest.raises(StallmarkError, match="already exists"):
        mssql_placement.make_database(engine, DESIGN)
    assert not any("DROP" in request.text for request in server.requests)


# A real server


@pytest.mark.server
@pytest.mark.sqlserver
def test_on_a_server():
    engine = MssqlEngine(sql_server.URL)
    name = "stallmark ]placed' -- [x"
    assert engine.query(f"SELECT {odbc.text(name)}") == [(name,)]
    if engine.is_babelfish:  # it ignores places, so that no design is compared with it
        assert engine.placement.refusal()
        return
    engine.address = replace(engine.address, database=name)
    mssql_placement.make_database(engine, Design())
    try:
        deploy.create_tables(engine, mssql_placement.place_tables(ddl_of(shop()), Design()).tables)
        found = mssql_existing.read(engine, ["bank"])
        assert [index.table for index in found.indexes] == ["history", "other", "sale"]
        mssql_existing.refuse_other(engine, Design(settings=replace(found.settings, page_verify=None)), shop())
        with pytest.raises(StallmarkError, match="the file bank is not there"):
            mssql_existing.refuse_other(engine, DESIGN, shop())
    finally:
        connection = engine.on_database("master").connect()
        connection.execute(f"DROP DATABASE {odbc.name(name)}")
        connection.close()
