"""Every T-SQL text of the product parses, and the parser, and the finding of the texts, are not blind."""

import re

import pytest
from support.tsql import parser, texts

pytestmark = pytest.mark.thorough

CHOSEN = "src/stallmark/engines/mssql/chosen_settings.py: ALTER DATABASE 1"
# Strings that look like a statement and are none, by the name `texts` gives them.
NO_STATEMENTS = {
    "src/stallmark/collectors/mssql/io_latency.py: ALTER ANY EVENT SESSION": "a permission",
    "src/stallmark/engines/mssql/settings.py: ALTER ANY DATABASE": "a permission",
    "src/stallmark/engines/mssql/settings.py: CREATE ANY DATABASE": "a permission",
    # tests/schema/test_tempdb.py and test_placement.py parse what these become.
    "schema/placement/mssql.py: WITH (x)": "the end of a statement",
    # tests/engines/mssql/test_chosen_settings.py parses what these become.
    f"{CHOSEN} SET x x WITH NO_WAIT": "an option and its value are put in",
    f"{CHOSEN} SET x = x WITH NO_WAIT": "an option and its value are put in",
    f"{CHOSEN} SET TARGET_RECOVERY_TIME = x SECONDS WITH N": "a number is put in",
}


@pytest.fixture(scope="module")
def found() -> dict[str, str]:
    return texts.all_texts()


@pytest.mark.microsoft_parser
def test_all_parse_but_what_is_no_statement(found):
    """A name in the list that is not there or parses is to be taken out."""
    assert {name for name, text in found.items() if parser.errors(text)} == {*NO_STATEMENTS}


BROKEN = (
    "SELECT a FROM t WHERE",
    "SELEC a FROM t",
    "CREATE PROCEDURE p AS BEGIN SELECT 1;",
    "BEGIN TRY SELECT 1; END TRY",
    "SELECT a FROM t LIMIT 1",
    "SELECT a FROM t; CREATE PROCEDURE p AS SELECT 1",
    "INSERT INTO t (a) VALUES (1) ON CONFLICT DO NOTHING",
    "CREATE TABLE t (a integer",
    "UPDATE t SET a = '",
)


@pytest.mark.microsoft_parser
def test_what_is_broken_is_refused():
    assert all(map(parser.errors, BROKEN))


def test_parameters_as_the_driver_sends_them():
    text = "EXEC p ?, ?; -- why?\nSELECT '?''?', [a?]]?], \"?\" /* ? */ WHERE a = ?"
    assert parser.with_parameters(text) == (
        "EXEC p @P1, @P2; -- why?\nSELECT '?''?', [a?]]?], \"?\" /* ? */ WHERE a = @P3"
    )


def test_texts_are_found_in_every_place(found):
    for name in (
        "transactions/bank/transfer.mssql.sql",
        "transactions/bank/conditions.sql: rows",
        "transactions/warehouse/rf2_orders.sql",
        "src/stallmark/engines/mssql/settings.sql: settings",
        "schema/placement/existing_files.mssql.sql",
        "schema, bank, statement 0",
        "schema, stallmark, statement 0",
        "src/stallmark/engines/mssql/engine.py: SELECT @@MAX_CONNECTIONS",
        "schema/build_lock.mssql.sql",
    ):
        assert name in found
    assert not any("postgresql" in name for name in found)


MODULE = '''
"""SELECT this is the docstring"""
NAME = "max"
QUERY = "SELECT 1"
def f(engine, n):
    """EXEC is another"""
    engine.execute(f"EXEC p '{NAME}', {n + 1}")
    engine.execute("UPDATE STATISTICS {table} " "WITH FULLSCAN")
    raise Error("The server does not SELECT.")
STEPS = {"postgresql": "VACUUM", "mssql": "DBCC HELP"}
'''


def test_strings_of_a_module():
    found = ["SELECT 1", "EXEC p 'max', x", "UPDATE STATISTICS x WITH FULLSCAN", "DBCC HELP"]
    assert list(texts.strings(MODULE, "src/stallmark/engines/mssql/a.py")) == found
    assert list(texts.strings(MODULE, "schema/a.py")) == ["DBCC HELP"]


def test_no_name_is_given_bare_to_a_function_that_parses_it(found: dict[str, str]) -> None:
    """HAS_PERMS_BY_NAME takes its securable as an identifier: of a database `Acme.Orders` it is NULL, to its owner too
    (MemberJunction #4756). DB_ID, HAS_DBACCESS and DATABASEPROPERTYEX take the plain name."""
    asking = {name: text for name, text in found.items() if "HAS_PERMS_BY_NAME" in text}
    assert len(asking) > 5
    assert [name for name, text in asking.items() if re.search(r"HAS_PERMS_BY_NAME\(\s*DB_NAME\(", text)] == []
