"""A physical design as T-SQL: quoted, and parsed."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy.dialects import postgresql
from sqlalchemy.schema import CreateTable
from support.designs import DESIGN, FILE_COLUMNS, ROWS, SETTINGS_COLUMNS, TABLE_COLUMNS, ddl, shop
from support.tds.answers import Rows
from support.tsql import parser

from stallmark.engines.postgres.embedded_engine import EmbeddedEngine
from stallmark.engines.postgres.engine import PostgresEngine
from stallmark.errors import StallmarkError
from stallmark.schema import deploy
from stallmark.schema.bank import tables as bank
from stallmark.schema.brokerage import tables as brokerage
from stallmark.schema.ddl import combined_metadata, ddl_of
from stallmark.schema.mail import tables as mail
from stallmark.schema.placement import (
    GIB,
    MIB,
    TIB,
    Design,
    File,
    Filegroup,
    Settings,
    TableGroup,
    default_name,
    mssql_existing,
    sized,
)
from stallmark.schema.placement import mssql as mssql_placement
from stallmark.schema.placement import postgres as postgres_placement
from stallmark.schema.warehouse import tables as warehouse

pytestmark = pytest.mark.thorough

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
    return statement, [database, "first", f"/{path}.mdf", f"{name}2", f"/{path}.ndf", group, name, "/g.ndf"]


@given(NASTY, NASTY, NASTY, NASTY)
def test_names_and_paths_are_read_back_as_they_were(database, group, name, path):
    statement, expected = nasty(database, group, name, path)
    assert read_back(statement) == expected
    # Nothing of them is left outside the quotation.
    assert without_quoted(statement) == without_quoted(nasty("d", "g", "n", "p")[0])


@pytest.mark.microsoft_parser
@given(NASTY, NASTY, NASTY, NASTY)
def test_microsoft_s_parser_takes_any_name(database, group, name, path):
    assert not parser.errors(nasty(database, group, name, path)[0])
    table = sa.Table("t", sa.MetaData(schema="s"), sa.Column("a", sa.Integer))
    design = Design(
        files=(File("/a", "a"),),
        filegroups=(Filegroup(group, (File("/b", "b"),)),),
        tables=(TableGroup(("t",), group, None, "row"),),
    )
    [created] = ddl(table.metadata, design)
    assert not parser.errors(created)
    assert read_back(created)[-1] == group


HOT = Design(tables=(TableGroup(("sale",), fill_factor=1, sequential_key=True), TableGroup(("other",), fill_factor=80)))
STATEMENTS = [
    *mssql_placement.create_database("bank", DESIGN),
    *mssql_placement.create_database("bank", Design()),
    *mssql_placement.create_database("bank", Design(files=(File("D:\\a b\\c.mdf", "c"),))),
    *mssql_placement.settings("bank", Settings("bulk_logged", False, True, 170, 0, "forced", "torn_page_detection")),
    *mssql_placement.settings("bank", Settings(legacy_cardinality_estimation=True, auto_update_statistics="async")),
    *mssql_placement.settings("bank", Settings("full", delayed_durability="allowed", page_verify="none")),
    *ddl(shop(), DESIGN),
    *ddl(shop(), replace(DESIGN, tables=(TableGroup(("sale",), compression="row"),))),
    # The parser does not know the option of 2019; another on and off in its place has the same grammar.
    *(text.replace("OPTIMIZE_FOR_SEQUENTIAL_KEY", "ALLOW_PAGE_LOCKS") for text in ddl(shop(), HOT)),
]


@pytest.mark.microsoft_parser
def test_microsoft_s_parser_parses():
    assert not any(map(parser.errors, STATEMENTS))


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
    for name, place in (("sale_pkey", "growing"), ("sale_number_key", "indexes"), ("sale_number_ix", "indexes")):
        [text] = [text for text in texts if f" {name} " in text]
        assert text.endswith(f" WITH (DATA_COMPRESSION = PAGE) ON [{place}]")
    [foreign] = [text for text in texts if "FOREIGN KEY" in text]
    assert foreign.endswith("REFERENCES bank.sale (id)")


def test_hot_pages_are_spread_and_convoys_at_a_keys_end_avoided_where_asked_for():
    texts = [
        text for text in ddl(shop(), HOT) if " sale_" in text and "CREATE TABLE" not in text and "FOREIGN" not in text
    ]
    assert len(texts) == 3 and all(
        text.endswith(" WITH (FILLFACTOR = 1, OPTIMIZE_FOR_SEQUENTIAL_KEY = ON)") for text in texts
    )
    assert not any("FILLFACTOR" in text for text in ddl(shop(), HOT) if text.startswith("CREATE TABLE"))
    with pytest.raises(StallmarkError, match="columnstore with a fill factor"):
        TableGroup(("sale",), storage="columnstore", fill_factor=80)


def test_elsewhere_the_statements_stay_as_they_were():
    plain = [
        " ".join(str(CreateTable(table).compile(dialect=postgresql.dialect())).split())
        for table in ddl_of(shop()).tables.sorted_tables
    ]
    assert ddl(shop(), DESIGN, postgresql.dialect())[: len(plain)] == plain
    bare = ddl(shop(), Design())
    assert not any("ON [" in text or "COMPRESSION" in text for text in bare)


def test_a_table_that_is_not_there_is_refused():
    with pytest.raises(StallmarkError, match="bank has no table sale: there are accounts, branches"):
        mssql_placement.place_tables(ddl_of(bank.METADATA), DESIGN)


# How large the files of a design are, and what is refused as a file or a name


def test_sizes_hold_the_data_and_a_run():
    open_design = Design(
        files=(File("/a", "a"), File("/b", "b")),
        filegroups=(Filegroup("growing", (File("/c", "c"),)),),
        log=(File("/l", "l"),),
        tables=(TableGroup(("history",), "growing"),),
    )
    found = sized(open_design, bank.METADATA.tables.values(), ROWS)
    a, b = (file.size_bytes for file in found.files)
    # The heap of accounts, its clustered copy, and its upper levels: 10 million rows, 77 in a page of 8 KiB.
    heap = 10_000_000 / 77 * 8192
    assert a == b and a % MIB == 0
    assert 2 * heap < a + b < 2.2 * heap
    [growing] = found.filegroups[0].files
    assert growing.size_bytes == GIB, "the history begins empty and has room"
    [log] = found.log
    assert log.size_bytes and heap <= log.size_bytes < 1.1 * heap + GIB
    full = sized(replace(open_design, settings=Settings("full")), bank.METADATA.tables.values(), ROWS)
    assert full.log[0].size_bytes and full.log[0].size_bytes > log.size_bytes + heap


def test_a_given_size_stays_and_the_others_take_the_rest():
    files = (File("/a", "a", 100 * GIB), File("/b", "b"))
    found = sized(Design(files=files), bank.METADATA.tables.values(), ROWS)
    assert [file.size_bytes for file in found.files] == [100 * GIB, 8 * MIB]
    assert sized(DESIGN, bank.METADATA.tables.values(), ROWS) == DESIGN


def test_more_than_a_file_holds_is_refused():
    rows = {"bank.accounts": 200_000_000_000}
    with pytest.raises(StallmarkError, match=r"/a would need [\d.]+ TiB, and a file holds 16 TiB: name more files\."):
        sized(Design(files=(File("/a", "a"),)), bank.METADATA.tables.values(), rows)
    more = tuple(File(f"/{number}", f"f{number}") for number in range(8))
    assert (
        sum(file.size_bytes or 0 for file in sized(Design(files=more), bank.METADATA.tables.values(), rows).files)
        > 16 * TIB
    )


@pytest.mark.parametrize(
    ("path", "name"), [("/data/a b.mdf", "a b"), (r"D:\x\bank.v2.mdf", "bank.v2"), ("/data/bank", "bank")]
)
def test_a_file_is_named_after_its_path(path, name):
    assert default_name(path) == name


@pytest.mark.parametrize(
    "path", ["", "bank.mdf", "D:bank.mdf", "/data/", "D:\\", r"\\nas\share\a.mdf", "/a\nb", "/" + "x" * 260, "//nas/a"]
)
def test_what_is_no_file_on_a_server_is_refused(path):
    with pytest.raises(StallmarkError):
        File(path, "a")


@pytest.mark.parametrize("group", ["default", "DEFAULT", "Primary", "", " a", "a ", "x" * 129, "a\tb"])
def test_a_filegroup_s_name_that_means_another(group):
    with pytest.raises(StallmarkError):
        Design(files=(File("/a", "a"),), filegroups=(Filegroup(group, (File("/b", "b"),)),))


# Tables of several workloads in one database: each in a place of its own, on SQL Server and on PostgreSQL


BOTH = combined_metadata([bank.METADATA, mail.METADATA])
ALL = combined_metadata([bank.METADATA, brokerage.METADATA, mail.METADATA, warehouse.METADATA])


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


@pytest.mark.microsoft_parser
def test_microsoft_s_parser_takes_the_tables_of_all():
    texts = [*ddl(BOTH, APART), *ddl(ALL, designed(TableGroup(("*",), "post")))]
    assert not [text for text in texts if parser.errors(text)]


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
