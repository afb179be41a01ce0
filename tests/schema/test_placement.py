"""A physical design as T-SQL: quoted, parsed by two parsers, sized, and compared with a database that is there."""

import os
import re
from collections.abc import Iterator
from dataclasses import replace

import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy.dialects import mssql, postgresql
from sqlalchemy.schema import AddConstraint, CreateIndex, CreateTable
from tds import odbc
from tds.answers import Count, Error, Rows
from tds.datatypes import BIGINT, BIT, INT, nvarchar
from tds.responder import Responder
from tds.script import Script
from tds.tokens import Column
from tsql import parsers

from stallmark.driver.engines.errors import StallmarkError
from stallmark.driver.engines.mssql.engine import MssqlEngine
from stallmark.schema import bank, deploy, mssql_existing, mssql_placement
from stallmark.schema.mssql_existing import FoundFile
from stallmark.schema.placement import (
    GIB,
    MIB,
    TIB,
    Design,
    File,
    Filegroup,
    Settings,
    TableGroup,
    TempDb,
    default_name,
    sized,
)

ROWS = {"bank.accounts": 10_000_000, "bank.tellers": 1_000, "bank.branches": 100}
DESIGN = Design(
    files=(File("/data/bank.mdf", "bank", 2 * GIB), File("/data/bank_2.ndf", "bank_2", 2 * GIB)),
    filegroups=(
        Filegroup("growing", (File("/fast/growing.ndf", "growing", GIB, 0),)),
        Filegroup("indexes", (File("/fast/indexes.ndf", "indexes", GIB),)),
    ),
    log=(File("/log/bank.ldf", "bank_log", GIB, 512 * MIB),),
    tables=(TableGroup(("history", "sale"), "growing", "indexes", "page"),),
    settings=Settings("simple", True, False, 160, 60, "disabled", "checksum"),
)

# Names that would end a quotation, or a statement.
NASTY = st.text(st.sampled_from("][';\"-/* \\aZ0ß字()"), min_size=1, max_size=20).map("g{}g".format)


def read_back(statement: str) -> list[str]:
    """Names and texts of a statement as T-SQL has them: a doubled quote inside is one."""
    tokens = re.findall(r"\[((?:[^]]|\]\])*)\]|N'((?:[^']|'')*)'", statement)
    return [name.replace("]]", "]") if name else text.replace("''", "'") for name, text in tokens]


def without_quoted(statement: str) -> str:
    return re.sub(r"\[(?:[^]]|\]\])*\]|N'(?:[^']|'')*'", "x", statement)


def nasty(database: str, group: str, name: str, path: str) -> tuple[str, list[str]]:
    files = (File(f"/{path}.mdf", "first"), File(f"/{path}.ndf", f"{name}2"))
    design = Design(files=files, filegroups=(Filegroup(group, (File("/g.ndf", name),)),))
    [statement] = mssql_placement.create_database(database, design)
    return statement, [
        database,
        "first",
        f"/{path}.mdf",
        f"{name}2",
        f"/{path}.ndf",
        group,
        name,
        "/g.ndf",
    ]


@given(NASTY, NASTY, NASTY, NASTY)
def test_names_and_paths_are_read_back_as_they_were(database, group, name, path):
    statement, expected = nasty(database, group, name, path)
    assert read_back(statement) == expected
    # Nothing of them is left outside the quotation.
    assert without_quoted(statement) == without_quoted(nasty("d", "g", "n", "p")[0])


@given(NASTY, NASTY, NASTY, NASTY)
def test_microsoft_s_parser_takes_any_name(database, group, name, path):
    assert not parsers.microsoft(nasty(database, group, name, path)[0])
    table = sa.Table("t", sa.MetaData(schema="s"), sa.Column("a", sa.Integer))
    design = Design(
        files=(File("/a", "a"),),
        filegroups=(Filegroup(group, (File("/b", "b"),)),),
        tables=(TableGroup(("t",), group, None, "row"),),
    )
    [created] = ddl(table.metadata, design)
    assert not parsers.microsoft(created)
    assert read_back(created)[-1] == group


def shop() -> sa.MetaData:
    metadata = sa.MetaData(schema="bank", naming_convention=bank.METADATA.naming_convention)
    sa.Table(
        "sale",
        metadata,
        sa.Column("id", sa.BigInteger, primary_key=True),
        sa.Column("number", sa.Integer),
        sa.UniqueConstraint("number", name="sale_number_key"),
        sa.Index("sale_number_ix", "number"),
    )
    sa.Table("history", metadata, sa.Column("sale_id", sa.ForeignKey("bank.sale.id")))
    sa.Table("other", metadata, sa.Column("id", sa.Integer))
    return metadata


def ddl(metadata: sa.MetaData, design: Design, dialect: sa.Dialect | None = None) -> list[str]:
    parts = mssql_placement.place_tables(deploy.take_apart(metadata), design)
    statements: list = [CreateTable(table) for table in parts.tables.sorted_tables]
    for item in (*parts.keys, *parts.foreign_keys):
        statements.append(CreateIndex(item) if isinstance(item, sa.Index) else AddConstraint(item))
    texts = [str(statement.compile(dialect=dialect or mssql.dialect())) for statement in statements]
    return [re.sub(r"\s*\n\s*", " ", text).strip() for text in texts]


TEMPDB = TempDb((File("/t/a.mdf", "tempdev", GIB), File("/t/b.ndf", "b", GIB)), File("/t/l.ldf", "l", GIB, 0))
TEMPDB_FOUND = [  # as Setup makes it: "tempdb database", physical properties
    FoundFile("ROWS", "PRIMARY", "tempdev", "/var/opt/mssql/data/tempdb.mdf", 8 * MIB, 64 * MIB),
    FoundFile("LOG", None, "templog", "/var/opt/mssql/data/templog.ldf", 8 * MIB, 64 * MIB),
]
STATEMENTS = [
    *mssql_placement.create_database("bank", DESIGN),
    *mssql_placement.create_database("bank", Design()),
    *mssql_placement.create_database("bank", Design(files=(File("D:\\a b\\c.mdf", "c"),))),
    *mssql_placement.settings(
        "bank", Settings("bulk_logged", False, True, 170, 0, "forced", "torn_page_detection")
    ),
    *mssql_placement.settings("bank", Settings("full", delayed_durability="allowed", page_verify="none")),
    *mssql_placement.change_tempdb(TEMPDB, TEMPDB_FOUND, change_server=True),
    *ddl(shop(), DESIGN),
    *ddl(shop(), replace(DESIGN, tables=(TableGroup(("sale",), compression="row"),))),
]


@pytest.mark.parametrize("statement", dict.fromkeys(STATEMENTS))
def test_microsoft_s_parser_parses(statement):
    assert not parsers.microsoft(statement)


def unknown_to_sqlfluff(statement: str) -> bool:
    """sqlfluff 4.5 knows of files only FILENAME, and no ADD FILE without what is optional."""
    return bool(
        re.match(r"ALTER DATABASE \[tempdb\] (MODIFY FILE \(NAME = N'\w+', (SIZE|FILEG)|ADD FILE)", statement)
    )


@pytest.mark.parametrize("statement", [it for it in dict.fromkeys(STATEMENTS) if not unknown_to_sqlfluff(it)])
def test_sqlfluff_parses(statement):
    assert not parsers.sqlfluff(statement)


def test_a_database_with_its_files():
    create, *settings = mssql_placement.create_database("bank", DESIGN)
    assert create == (
        "CREATE DATABASE [bank]\n"
        "ON PRIMARY\n"
        "    (NAME = N'bank', FILENAME = N'/data/bank.mdf', SIZE = 2048MB, FILEGROWTH = 64MB),\n"
        "    (NAME = N'bank_2', FILENAME = N'/data/bank_2.ndf', SIZE = 2048MB, FILEGROWTH = 64MB),\n"
        "FILEGROUP [growing]\n"
        "    (NAME = N'growing', FILENAME = N'/fast/growing.ndf', SIZE = 1024MB, FILEGROWTH = 0),\n"
        "FILEGROUP [indexes]\n"
        "    (NAME = N'indexes', FILENAME = N'/fast/indexes.ndf', SIZE = 1024MB, FILEGROWTH = 64MB)\n"
        "LOG ON\n"
        "    (NAME = N'bank_log', FILENAME = N'/log/bank.ldf', SIZE = 1024MB, FILEGROWTH = 512MB)"
    )
    assert settings == [
        "ALTER DATABASE [bank] SET RECOVERY SIMPLE",
        "ALTER DATABASE [bank] SET READ_COMMITTED_SNAPSHOT ON WITH NO_WAIT",
        "ALTER DATABASE [bank] SET ALLOW_SNAPSHOT_ISOLATION OFF",
        "ALTER DATABASE [bank] SET COMPATIBILITY_LEVEL = 160",
        "ALTER DATABASE [bank] SET TARGET_RECOVERY_TIME = 60 SECONDS",
        "ALTER DATABASE [bank] SET DELAYED_DURABILITY = DISABLED",
        "ALTER DATABASE [bank] SET PAGE_VERIFY CHECKSUM",
    ]
    assert mssql_placement.create_database("bank", Design()) == ["CREATE DATABASE [bank]"]


def test_where_tables_keys_and_indexes_lie():
    texts = ddl(shop(), DESIGN)
    assert "CREATE TABLE bank.other ( id INTEGER NULL )" in texts
    [sale] = [text for text in texts if text.startswith("CREATE TABLE bank.sale")]
    assert sale.endswith(") ON [growing] WITH (DATA_COMPRESSION = PAGE)")
    for name, place in (
        ("sale_pkey", "growing"),
        ("sale_number_key", "indexes"),
        ("sale_number_ix", "indexes"),
    ):
        [text] = [text for text in texts if f" {name} " in text]
        assert text.endswith(f" WITH (DATA_COMPRESSION = PAGE) ON [{place}]")
    [foreign] = [text for text in texts if "FOREIGN KEY" in text]
    assert foreign.endswith("REFERENCES bank.sale (id)")


def test_elsewhere_the_statements_stay_as_they_were():
    plain = [
        " ".join(str(CreateTable(table).compile(dialect=postgresql.dialect())).split())
        for table in deploy.take_apart(shop()).tables.sorted_tables
    ]
    assert ddl(shop(), DESIGN, postgresql.dialect())[: len(plain)] == plain
    bare = ddl(shop(), Design())
    assert not any("ON [" in text or "COMPRESSION" in text for text in bare)


def test_a_table_that_is_not_there_is_refused():
    with pytest.raises(StallmarkError, match="bank has no table sale: there are accounts, branches"):
        mssql_placement.place_tables(deploy.take_apart(bank.METADATA), DESIGN)


# Sizes


def test_sizes_hold_the_data_and_a_run():
    open_design = Design(
        files=(File("/a", "a"), File("/b", "b")),
        filegroups=(Filegroup("growing", (File("/c", "c"),)),),
        log=(File("/l", "l"),),
        tables=(TableGroup(("history",), "growing"),),
    )
    found = sized(open_design, bank.METADATA, ROWS)
    a, b = (file.size_bytes for file in found.files)
    # The heap of accounts, its clustered copy, and its upper levels: 10 million rows, 77 in a page of 8 KiB.
    heap = 10_000_000 / 77 * 8192
    assert a == b and a % MIB == 0
    assert 2 * heap < a + b < 2.2 * heap
    [growing] = found.filegroups[0].files
    assert growing.size_bytes == GIB, "the history begins empty and has room"
    [log] = found.log
    assert log.size_bytes and heap <= log.size_bytes < 1.1 * heap + GIB
    full = sized(replace(open_design, settings=Settings("full")), bank.METADATA, ROWS)
    assert full.log[0].size_bytes and full.log[0].size_bytes > log.size_bytes + heap


def test_a_given_size_stays_and_the_others_take_the_rest():
    files = (File("/a", "a", 100 * GIB), File("/b", "b"))
    found = sized(Design(files=files), bank.METADATA, ROWS)
    assert [file.size_bytes for file in found.files] == [100 * GIB, 8 * MIB]
    assert sized(DESIGN, bank.METADATA, ROWS) == DESIGN


def test_more_than_a_file_holds_is_refused():
    rows = {"bank.accounts": 200_000_000_000}
    with pytest.raises(
        StallmarkError, match=r"/a would need [\d.]+ TiB, and a file holds 16 TiB: name more files\."
    ):
        sized(Design(files=(File("/a", "a"),)), bank.METADATA, rows)
    more = tuple(File(f"/{number}", f"f{number}") for number in range(8))
    assert (
        sum(file.size_bytes or 0 for file in sized(Design(files=more), bank.METADATA, rows).files) > 16 * TIB
    )


@pytest.mark.parametrize(
    ("path", "name"), [("/data/a b.mdf", "a b"), (r"D:\x\bank.v2.mdf", "bank.v2"), ("/data/bank", "bank")]
)
def test_a_file_is_named_after_its_path(path, name):
    assert default_name(path) == name


@pytest.mark.parametrize(
    "path",
    [
        "",
        "bank.mdf",
        "D:bank.mdf",
        "/data/",
        "D:\\",
        r"\\nas\share\a.mdf",
        "/a\nb",
        "/" + "x" * 260,
        "//nas/a",
    ],
)
def test_what_is_no_file_on_a_server_is_refused(path):
    with pytest.raises(StallmarkError):
        File(path, "a")


@pytest.mark.parametrize("group", ["default", "DEFAULT", "Primary", "", " a", "a ", "x" * 129, "a\tb"])
def test_a_filegroup_s_name_that_means_another(group):
    with pytest.raises(StallmarkError):
        Design(files=(File("/a", "a"),), filegroups=(Filegroup(group, (File("/b", "b"),)),))


# tempdb


def test_tempdb_is_changed_only_when_told():
    with pytest.raises(
        StallmarkError, match="changes the server for all its databases: write `change_server: true`"
    ):
        mssql_placement.change_tempdb(TEMPDB, TEMPDB_FOUND, change_server=False)


def test_tempdb_changes_one_property_at_a_time():
    assert mssql_placement.change_tempdb(TEMPDB, TEMPDB_FOUND, change_server=True) == [
        "ALTER DATABASE [tempdb] MODIFY FILE (NAME = N'tempdev', FILENAME = N'/t/a.mdf')",
        "ALTER DATABASE [tempdb] MODIFY FILE (NAME = N'tempdev', SIZE = 1024MB)",
        "ALTER DATABASE [tempdb] ADD FILE (NAME = N'b', FILENAME = N'/t/b.ndf', SIZE = 1024MB, FILEGROWTH = 64MB)",
        "ALTER DATABASE [tempdb] MODIFY FILE (NAME = N'templog', FILENAME = N'/t/l.ldf')",
        "ALTER DATABASE [tempdb] MODIFY FILE (NAME = N'templog', SIZE = 1024MB)",
        "ALTER DATABASE [tempdb] MODIFY FILE (NAME = N'templog', FILEGROWTH = 0)",
    ]


def test_tempdb_as_wanted_is_left_alone_and_never_shrunk():
    there = [
        FoundFile("ROWS", "PRIMARY", "tempdev", "/t/a.mdf", 2 * GIB, 64 * MIB),
        FoundFile("ROWS", "PRIMARY", "temp2", "/t/b.ndf", GIB, 64 * MIB),
        FoundFile("LOG", None, "templog", "/t/l.ldf", GIB, 0),
    ]
    assert mssql_placement.change_tempdb(TEMPDB, there, change_server=True) == []
    assert mssql_existing.tempdb_differences(TEMPDB, there) == []
    extra = FoundFile("ROWS", "PRIMARY", "temp3", "/t/c.ndf", GIB, 64 * MIB)
    assert mssql_existing.tempdb_differences(TEMPDB, [*there, extra]) == [
        "tempdb: there is one file more, temp3"
    ]
    assert mssql_existing.tempdb_differences(TEMPDB, TEMPDB_FOUND) == [
        "tempdb: the file tempdev lies at /var/opt/mssql/data/tempdb.mdf, not at /t/a.mdf",
        "tempdb: the file tempdev has 8 MiB, not 1,024 MiB",
        "tempdb: the file templog lies at /var/opt/mssql/data/templog.ldf, not at /t/l.ldf",
        "tempdb: the file templog has 8 MiB, not 1,024 MiB",
        "tempdb: the file templog grows by 65,536 KiB, not by 0 KiB",
        "tempdb: the file b is not there",
    ]


def test_capitals_are_another_file_on_linux_alone():
    def lies_at(path: str) -> bool:
        return FoundFile("ROWS", "PRIMARY", "bank", path, GIB, 0).lies_at(path.lower())

    assert lies_at(r"D:\Data\Bank.mdf") and not lies_at("/Data/Bank.mdf")


# A database that is there, over the wire

FILE_ROWS = [
    ("ROWS", "PRIMARY", "bank", "/data/bank.mdf", 2 * GIB, 64 * MIB),
    ("LOG", None, "bank_log", "/log/bank.ldf", GIB, 512 * MIB),
    ("ROWS", "PRIMARY", "bank_2", "/data/bank_2.ndf", 2 * GIB, 64 * MIB),
    ("ROWS", "growing", "growing", "/fast/growing.ndf", GIB, 0),
    ("ROWS", "indexes", "indexes", "/fast/indexes.ndf", GIB, 64 * MIB),
]
SETTINGS_ROW = ("simple", True, "OFF", 160, 60, "disabled", "checksum")
TABLE_ROWS = [
    ("history", 0, None, "growing", "page"),
    ("other", 0, None, "PRIMARY", "none"),
    ("sale", 1, "sale_pkey", "growing", "page"),
    ("sale", 2, "sale_number_key", "indexes", "page"),
]
_TEXT = nvarchar(300)
FILE_COLUMNS = [
    *(Column(name, _TEXT) for name in ("type_desc", "filegroup", "name", "physical_name")),
    Column("size_bytes", BIGINT),
    Column("growth_bytes", BIGINT),
]
SETTINGS_COLUMNS = [
    Column("recovery", _TEXT),
    Column("read_committed_snapshot", BIT),
    Column("snapshot_isolation", _TEXT),
    Column("compatibility_level", INT),
    Column("target_recovery_time_s", INT),
    Column("delayed_durability", _TEXT),
    Column("page_verify", _TEXT),
]
TABLE_COLUMNS = [
    Column("table_name", _TEXT),
    Column("index_id", INT),
    *(Column(name, _TEXT) for name in ("index_name", "filegroup", "compression")),
]


@pytest.fixture
def script() -> Script:
    return Script(databases=["bank", "master", "tempdb"])


@pytest.fixture
def server(script: Script) -> Iterator[Responder]:
    if reason := odbc.missing():
        pytest.skip(reason)
    with Responder(script, encryption="required") as server:
        yield server
    assert not server.faults


@pytest.fixture
def engine(server: Responder) -> MssqlEngine:
    return MssqlEngine(f"mssql://tester:secret@127.0.0.1:{server.port}/bank?TrustServerCertificate=yes")


def answer(script: Script, files=FILE_ROWS, settings=SETTINGS_ROW, tables=TABLE_ROWS) -> None:
    script.sql("sys.database_files", Rows(FILE_COLUMNS, files))
    script.sql("sys.databases", Rows(SETTINGS_COLUMNS, [settings]))
    script.sql("sys.tables", Rows(TABLE_COLUMNS, tables))


def test_a_database_as_designed(script, engine):
    answer(script)
    mssql_existing.refuse_other(engine, DESIGN, shop())


def changed(rows: list[tuple], number: int, position: int, value: object) -> list[tuple]:
    row = list(rows[number])
    row[position] = value
    return [*rows[:number], tuple(row), *rows[number + 1 :]]


@pytest.mark.parametrize(
    ("there", "phrase"),
    [
        ({"files": FILE_ROWS[:1] + FILE_ROWS[2:]}, "the file bank_log is not there"),
        (
            {"files": [*FILE_ROWS, ("ROWS", "PRIMARY", "x", "/x", 1, 0)]},
            "there is one file more, x in PRIMARY",
        ),
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
        ({"tables": changed(TABLE_ROWS, 2, 3, "PRIMARY")}, "the table sale lies in PRIMARY, not in growing"),
        (
            {"tables": changed(TABLE_ROWS, 3, 3, "growing")},
            "sale_number_key of sale lies in growing, not in indexes",
        ),
        ({"tables": changed(TABLE_ROWS, 1, 3, "growing")}, "the table other lies in growing, not in PRIMARY"),
        (
            {"tables": changed(TABLE_ROWS, 0, 4, "none")},
            "the compression of the table history is none, not page",
        ),
    ],
)
def test_every_difference_is_named(script, engine, there, phrase):
    answer(script, **there)
    found = mssql_existing.differences(DESIGN, mssql_existing.read(engine, "bank"), shop())
    assert len(found) == 1 and found[0].endswith(phrase)
    with pytest.raises(
        StallmarkError, match=r"is there, but not as the scenario designs it: .*Drop it to have it made"
    ):
        mssql_existing.refuse_other(engine, DESIGN, shop())


def test_what_the_design_leaves_open_is_right(script, engine):
    answer(script, files=changed(FILE_ROWS, 0, 4, 50 * GIB))
    found = mssql_existing.read(engine, "bank")
    assert mssql_existing.differences(DESIGN, found, shop()) == [], "a file that has grown is right"
    assert (
        mssql_existing.differences(
            replace(DESIGN, tables=(), settings=Settings(), files=(), filegroups=(), log=()),
            found,
            sa.MetaData(),
        )
        == []
    )
    assert mssql_existing.differences(Design(), replace(found, indexes=found.indexes[1:2]), shop()) == []


def test_tempdb_is_read_in_tempdb(script, server, engine):
    answer(script, files=[tuple(vars(file).values()) for file in TEMPDB_FOUND])
    assert mssql_existing.read_tempdb(engine) == TEMPDB_FOUND
    assert server.logins[-1].database == "tempdb"


def test_tempdb_is_placed_and_what_a_restart_must_do_is_said(script, server, engine):
    before = [tuple(vars(file).values()) for file in TEMPDB_FOUND]
    after = [
        ("ROWS", "PRIMARY", "tempdev", "/var/opt/mssql/data/tempdb.mdf", GIB, 64 * MIB),
        ("LOG", None, "templog", "/t/l.ldf", GIB, 0),
        ("ROWS", "PRIMARY", "b", "/t/b.ndf", GIB, 64 * MIB),
    ]
    script.sql("sys.database_files", Rows(FILE_COLUMNS, before), times=1)
    script.sql("sys.database_files", Rows(FILE_COLUMNS, after))
    script.sql("ALTER DATABASE", Count(0))
    assert mssql_placement.place_tempdb(engine, TEMPDB, change_server=True) == [
        "tempdb: the file tempdev lies at /var/opt/mssql/data/tempdb.mdf, not at /t/a.mdf"
    ]
    sent = [request.text for request in server.requests if request.text.startswith("ALTER")]
    assert sent == mssql_placement.change_tempdb(TEMPDB, TEMPDB_FOUND, change_server=True)


@pytest.mark.parametrize(
    ("edition", "banner", "permitted", "why"),
    [
        (3, "Microsoft SQL Server 2022", 1, None),
        (3, "Microsoft SQL Server 2022", 0, "may not create a database: GRANT CREATE ANY DATABASE"),
        (5, "Microsoft SQL Azure", 1, "Azure SQL puts a database's files where it wants them"),
        (8, "Microsoft SQL Azure", 1, "Azure SQL puts"),
        (2, "Babelfish for PostgreSQL with SQL Server Compatibility - 12.0.2000.8", 1, "Babelfish ignores"),
    ],
)
def test_where_nothing_can_be_placed(script, engine, edition, banner, permitted, why):
    columns = [*(Column(name, _TEXT) for name in "vle"), Column("engine", INT), Column("banner", _TEXT)]
    script.sql(
        r"SERVERPROPERTY\('ProductVersion'\)", Rows(columns, [("16.0.4085.2", "RTM", "x", edition, banner)])
    )
    script.sql("HAS_PERMS_BY_NAME", Rows([Column("permitted", INT)], [(permitted,)]))
    said = mssql_placement.cannot(engine)
    assert (said is None) if why is None else (said and why in said)


def test_a_view_that_may_not_be_read_is_a_sentence(script, engine):
    script.sql("sys.databases", Error(229, "The SELECT permission was denied on the object 'databases'"))
    with pytest.raises(
        StallmarkError, match=r"cannot be read: The SELECT permission was denied .*'databases'\.$"
    ):
        mssql_existing.read(engine, "bank")


def test_a_database_is_made_in_master_and_one_statement_at_a_time(script, server, engine):
    script.sql("DATABASE", Count(0))
    mssql_placement.make_database(engine, DESIGN)
    assert [request.text for request in server.requests if "DATABASE" in request.text] == (
        mssql_placement.create_database("bank", DESIGN)
    )
    assert {login.database for login in server.logins} == {"master"}


def test_a_half_made_database_is_dropped(script, server, engine):
    script.sql(
        "COMPATIBILITY", Error(15048, "Valid values of the database compatibility level are 100 to 150.")
    )
    script.sql("DATABASE", Count(0))
    with pytest.raises(
        StallmarkError, match=r"as designed: Valid values .* to 150\. The statement was: ALTER DATABASE"
    ):
        mssql_placement.make_database(engine, DESIGN)
    assert server.requests[-1].text == "DROP DATABASE [bank]"


def test_a_database_that_could_not_be_made_is_not_dropped(script, server, engine):
    script.sql(
        "CREATE DATABASE", Error(1801, "Database 'bank' already exists. Choose a different database name.")
    )
    with pytest.raises(StallmarkError, match="already exists"):
        mssql_placement.make_database(engine, DESIGN)
    assert not any("DROP" in request.text for request in server.requests)


# A real server

LIVE = os.environ.get("STALLMARK_TEST_SQLSERVER")


@pytest.mark.skipif(not LIVE, reason="STALLMARK_TEST_SQLSERVER holds no URL of a server.")
def test_on_a_server():
    assert LIVE
    engine = MssqlEngine(LIVE)
    nasty = "stallmark ]placed' -- [x"
    assert engine.query(f"SELECT {mssql_placement.text(nasty)}") == [(nasty,)]
    name = nasty if engine.identity().product == "SQL Server" else "stallmark_placed"  # Babelfish takes no ]]
    engine.address = replace(engine.address, database=name)
    mssql_placement.make_database(engine, Design())
    try:
        deploy.create_tables(engine, mssql_placement.place_tables(deploy.take_apart(shop()), Design()).tables)
        found = mssql_existing.read(engine, "bank")
        assert [index.table for index in found.indexes] == ["history", "other", "sale"]
        mssql_existing.refuse_other(
            engine, Design(settings=replace(found.settings, page_verify=None)), shop()
        )
        with pytest.raises(StallmarkError, match="the file bank is not there"):
            mssql_existing.refuse_other(engine, DESIGN, shop())
    finally:
        connection = engine.connect(database="master")
        connection.execute(f"DROP DATABASE {mssql_placement.name(name)}")
        connection.close()
