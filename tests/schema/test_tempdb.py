"""tempdb's files where a scenario wants them: rehearsed, changed, and how they are given back."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from support.designs import FILE_COLUMNS
from support.mssql_server import says_it_is
from support.tds.answers import Count, Error, Rows
from support.tds.datatypes import nvarchar
from support.tds.responder import Responder
from support.tds.script import Script
from support.tds.tokens import Column
from support.tsql import parser

from stallmark.engines.mssql import settings, variant_settings
from stallmark.engines.mssql.engine import MssqlEngine
from stallmark.engines.mssql.examine import examine
from stallmark.errors import StallmarkError
from stallmark.schema.placement import GIB, MIB, Design, File, TempDb, mssql_existing
from stallmark.schema.placement import mssql as mssql_placement
from stallmark.schema.placement.mssql_existing import FoundFile

TEMPDB = TempDb((File("/t/a.mdf", "tempdev", GIB), File("/t/b.ndf", "b", GIB)), File("/t/l.ldf", "l", GIB, 0))
TEMPDB_FOUND = [  # as Setup makes it: "tempdb database", physical properties
    FoundFile("ROWS", "PRIMARY", "tempdev", "/var/opt/mssql/data/tempdb.mdf", 8 * MIB, 64 * MIB),
    FoundFile("LOG", None, "templog", "/var/opt/mssql/data/templog.ldf", 8 * MIB, None, 10),
]


REHEARSAL = mssql_existing.rehearsal(TEMPDB, TEMPDB_FOUND)
assert REHEARSAL
STATEMENTS = [
    *mssql_existing.change(TEMPDB, TEMPDB_FOUND, change_server=True),
    *mssql_existing.give_back(TEMPDB, TEMPDB_FOUND),
    *mssql_placement.create_database(mssql_existing.REHEARSAL, REHEARSAL),
]


@pytest.mark.microsoft_parser
def test_microsoft_s_parser_parses():
    assert not any(map(parser.errors, STATEMENTS))


def test_tempdb_is_changed_only_when_told():
    with pytest.raises(StallmarkError, match="changes the server for all its databases: write `change_server: true`"):
        mssql_existing.change(TEMPDB, TEMPDB_FOUND, change_server=False)


def test_tempdb_changes_one_property_at_a_time():
    assert mssql_existing.change(TEMPDB, TEMPDB_FOUND, change_server=True) == [
        "ALTER DATABASE [tempdb] MODIFY FILE (NAME = N'tempdev', FILENAME = N'/t/a.mdf')",
        "ALTER DATABASE [tempdb] MODIFY FILE (NAME = N'tempdev', SIZE = 1024MB)",
        "ALTER DATABASE [tempdb] MODIFY FILE (NAME = N'templog', FILENAME = N'/t/l.ldf')",
        "ALTER DATABASE [tempdb] MODIFY FILE (NAME = N'templog', SIZE = 1024MB)",
        "ALTER DATABASE [tempdb] MODIFY FILE (NAME = N'templog', FILEGROWTH = 0)",
        "ALTER DATABASE [tempdb] ADD FILE (NAME = N'b', FILENAME = N'/t/b.ndf', SIZE = 1024MB, FILEGROWTH = 64MB)",
    ]


def test_tempdb_as_wanted_is_left_alone_and_never_shrunk():
    there = [
        FoundFile("ROWS", "PRIMARY", "tempdev", "/t/a.mdf", 2 * GIB, 64 * MIB),
        FoundFile("ROWS", "PRIMARY", "temp2", "/t/b.ndf", GIB, 64 * MIB),
        FoundFile("LOG", None, "templog", "/t/l.ldf", GIB, 0),
    ]
    assert mssql_existing.change(TEMPDB, there, change_server=True) == []
    assert mssql_existing.tempdb_differences(TEMPDB, there) == []
    extra = FoundFile("ROWS", "PRIMARY", "temp3", "/t/c.ndf", GIB, 64 * MIB)
    assert mssql_existing.tempdb_differences(TEMPDB, [*there, extra]) == ["tempdb: there is one file more, temp3"]
    assert mssql_existing.tempdb_differences(TEMPDB, TEMPDB_FOUND) == [
        "tempdb: the file tempdev lies at /var/opt/mssql/data/tempdb.mdf, not at /t/a.mdf",
        "tempdb: the file tempdev has 8 MiB, not 1,024 MiB",
        "tempdb: the file templog lies at /var/opt/mssql/data/templog.ldf, not at /t/l.ldf",
        "tempdb: the file templog has 8 MiB, not 1,024 MiB",
        "tempdb: the file templog grows by a share of its size, not by 0 KiB",
        "tempdb: the file b is not there",
    ]


# What would keep the server from starting


def test_a_database_of_all_that_is_to_be_made_is_the_rehearsal():
    assert Design(files=TEMPDB.files, log=(TEMPDB.log,)) == REHEARSAL
    in_place = [replace(TEMPDB_FOUND[0], path="/t/a.mdf"), replace(TEMPDB_FOUND[1], path="/t/l.ldf")]
    assert mssql_existing.rehearsal(TempDb(TEMPDB.files[:1], TEMPDB.log), in_place) is None


def test_what_a_database_needs_beside_it_is_small():
    data_alone = mssql_existing.rehearsal(TempDb(TEMPDB.files[:1]), TEMPDB_FOUND)
    assert data_alone and data_alone.files == TEMPDB.files[:1]
    assert [(file.path, file.size_bytes) for file in data_alone.log] == [("/t/a.mdf.rehearsal", 8 * MIB)]
    log_alone = mssql_existing.rehearsal(TempDb((), TEMPDB.log), TEMPDB_FOUND)
    assert log_alone and log_alone.log == (TEMPDB.log,)
    assert [(file.path, file.size_bytes) for file in log_alone.files] == [("/t/l.ldf.rehearsal", None)]


# How it is given back


def test_what_gives_it_back_undoes_every_change():
    assert mssql_existing.give_back(TEMPDB, TEMPDB_FOUND) == [
        "ALTER DATABASE [tempdb] REMOVE FILE [b]",
        "ALTER DATABASE [tempdb] MODIFY FILE (NAME = N'tempdev', FILENAME = N'/var/opt/mssql/data/tempdb.mdf')",
        "USE [tempdb]; DBCC SHRINKFILE (N'tempdev', 8)",
        "ALTER DATABASE [tempdb] MODIFY FILE (NAME = N'templog', FILENAME = N'/var/opt/mssql/data/templog.ldf')",
        "USE [tempdb]; DBCC SHRINKFILE (N'templog', 8)",
        "ALTER DATABASE [tempdb] MODIFY FILE (NAME = N'templog', FILEGROWTH = 10%)",
    ]


# Over the wire

AFTER = [
    FoundFile("ROWS", "PRIMARY", "tempdev", "/var/opt/mssql/data/tempdb.mdf", GIB, 64 * MIB),
    FoundFile("LOG", None, "templog", "/t/l.ldf", GIB, 0),
    FoundFile("ROWS", "PRIMARY", "b", "/t/b.ndf", GIB, 64 * MIB),
]
AS_WANTED = [replace(AFTER[0], path="/t/a.mdf"), *AFTER[1:]]


def files(found: list[FoundFile]) -> Rows:
    return Rows(FILE_COLUMNS, [tuple(vars(file).values()) for file in found])


@pytest.fixture
def placed(script: Script, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Script:
    """A server whose tempdb is first as Setup made it, and on whose `master` our login may not write."""
    monkeypatch.setenv("STALLMARK_STATE", str(tmp_path))
    says_it_is(script)
    script.sql("'ServerName'", Rows([Column("name", nvarchar(128))], [("DB\\PROD",)]))
    script.sql("'Recovery'", Rows([Column("model", nvarchar(60))], [("SIMPLE",)]))
    script.sql("sys.extended_properties", Rows([Column("value", nvarchar(3750))], []))
    script.sql("sp_addextendedproperty", Error(15135, "Object is invalid. Extended properties are not permitted."))
    script.sql("sys.filegroups", files(TEMPDB_FOUND), times=1)
    return script


def changes(server: Responder) -> list[str]:
    return [it.text for it in server.requests if re.match("(ALTER|CREATE|DROP) DATABASE", it.text or "")]


def test_tempdb_is_read_in_tempdb(placed, server, engine):
    assert mssql_existing.read_tempdb(engine) == TEMPDB_FOUND
    assert server.logins[-1].database == "tempdb"


def test_it_is_rehearsed_then_changed_and_what_a_restart_must_do_is_said(placed, server, engine):
    placed.sql("sys.filegroups", files(AFTER), times=1)
    placed.sql("sys.filegroups", files(AS_WANTED))
    placed.sql("DATABASE", Count(0))
    with pytest.raises(StallmarkError) as refused:
        mssql_existing.place(engine, TEMPDB, change_server=True)
    said = str(refused.value)
    assert "tempdb: the file tempdev lies at /var/opt/mssql/data/tempdb.mdf, not at /t/a.mdf. A new path" in said
    assert "restart it, and run again" in said
    assert all(statement in said for statement in mssql_existing.give_back(TEMPDB, TEMPDB_FOUND))
    rehearsed = mssql_existing.REHEARSAL
    assert changes(server) == [
        f"DROP DATABASE IF EXISTS [{rehearsed}]",
        *mssql_placement.create_database(rehearsed, REHEARSAL),
        f"DROP DATABASE [{rehearsed}]",
        *mssql_existing.change(TEMPDB, TEMPDB_FOUND, change_server=True),
    ]
    server.forget()
    mssql_existing.place(engine, TEMPDB, change_server=True)  # after the restart
    assert changes(server) == []


@pytest.mark.parametrize(
    "reason",
    [
        'Directory lookup for the file "/t/a.mdf" failed with the operating system error 2(The system cannot find '
        "the file specified.)",
        "Cannot create file '/t/a.mdf' because it already exists. Change the file path or the file name, and retry",
    ],
)
def test_where_the_server_cannot_make_it_nothing_is_changed(placed, server, engine, reason):
    placed.sql("CREATE DATABASE", Error(5133, f"{reason}."))
    placed.sql("DATABASE", Count(0))
    with pytest.raises(StallmarkError, match="would not start again, so nothing was changed") as refused:
        mssql_existing.place(engine, TEMPDB, change_server=True)
    assert reason in str(refused.value)
    assert not any("[tempdb]" in statement for statement in changes(server))
    assert variant_settings.noted_tempdb(engine) == []


@pytest.mark.thorough
def test_what_was_first_there_is_what_is_given_back(placed, server, engine: MssqlEngine, tmp_path):
    placed.sql("sys.filegroups", files(AFTER))
    placed.sql("DATABASE", Count(0))
    for wanted in (TEMPDB, replace(TEMPDB, log=replace(TEMPDB.log, path="/u/l.ldf"))):
        with pytest.raises(StallmarkError):
            mssql_existing.place(engine, wanted, change_server=True)
    first = mssql_existing.give_back(TEMPDB, TEMPDB_FOUND)
    assert variant_settings.noted_tempdb(engine) == first
    assert settings.read(engine).configuration["tempdb, what gives back its files"] == "; ".join(first)
    [said] = [one.sentence for one in examine(engine) if one.subject == "tempdb"]
    [journal] = tmp_path.rglob("*.json")
    assert first[0] in said and str(journal) in said


def test_a_file_too_many_is_not_ours_to_remove(placed, server, engine):
    extra = FoundFile("ROWS", "PRIMARY", "temp3", "/t/c.ndf", GIB, 64 * MIB)
    ordered = [AS_WANTED[0], AS_WANTED[2], extra, AS_WANTED[1]]
    mssql_existing.read_tempdb(engine)  # as Setup made it
    placed.sql("sys.filegroups", files(ordered))
    with pytest.raises(StallmarkError, match=r"one file more, temp3\. .* its administrator's to remove\.$"):
        mssql_existing.place(engine, TEMPDB, change_server=True)
    assert changes(server) == []
