"""A physical design as T-SQL: quoted, and parsed by two parsers."""

import re
from dataclasses import replace

import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy.dialects import postgresql
from sqlalchemy.schema import CreateTable
from support.designs import DESIGN, ddl, shop
from support.tsql import parsers

from stallmark.errors import StallmarkError
from stallmark.schema.bank import tables as bank
from stallmark.schema.ddl import ddl_of
from stallmark.schema.placement import mssql as mssql_placement
from stallmark.schema.placement.design import Design, File, Filegroup, Settings, TableGroup

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


STATEMENTS = [
    *mssql_placement.create_database("bank", DESIGN),
    *mssql_placement.create_database("bank", Design()),
    *mssql_placement.create_database("bank", Design(files=(File("D:\\a b\\c.mdf", "c"),))),
    *mssql_placement.settings("bank", Settings("bulk_logged", False, True, 170, 0, "forced", "torn_page_detection")),
    *mssql_placement.settings("bank", Settings(legacy_cardinality_estimation=True, auto_update_statistics="async")),
    *mssql_placement.settings("bank", Settings("full", delayed_durability="allowed", page_verify="none")),
    *ddl(shop(), DESIGN),
    *ddl(shop(), replace(DESIGN, tables=(TableGroup(("sale",), compression="row"),))),
]


@pytest.mark.microsoft_parser
def test_microsoft_s_parser_parses():
    assert not any(map(parsers.microsoft, STATEMENTS))


def test_sqlfluff_parses():
    assert parsers.wrong(STATEMENTS) == {}


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


HOT = Design(tables=(TableGroup(("sale",), fill_factor=1, sequential_key=True), TableGroup(("other",), fill_factor=80)))


def test_hot_pages_are_spread_and_convoys_at_a_keys_end_avoided_where_asked_for():
    texts = [
        text for text in ddl(shop(), HOT) if " sale_" in text and "CREATE TABLE" not in text and "FOREIGN" not in text
    ]
    assert len(texts) == 3 and all(
        text.endswith(" WITH (FILLFACTOR = 1, OPTIMIZE_FOR_SEQUENTIAL_KEY = ON)") for text in texts
    )
    assert not parsers.wrong(texts)
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
