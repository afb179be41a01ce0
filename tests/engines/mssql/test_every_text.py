"""Every T-SQL text of the product parses, and the two parsers, and the finding of the texts, are not blind."""

import re

import pytest
from support.tsql import parsers, texts

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
# T-SQL that sqlfluff 4.5 does not know. Microsoft's parser takes all of it.
UNKNOWN_TO_SQLFLUFF = {
    r"\bCHECKPOINT\b": "no CHECKPOINT",
    r"\b(BACKUP|RESTORE) ": "no BACKUP to a file, no RESTORE",
    r"\b(CREATE|DROP) EVENT SESSION\b": "no event sessions",
    r"\b(RESOURCE (GOVERNOR|POOL)|WORKLOAD GROUP)\b": "no Resource Governor",
    r"\bSCOPED CONFIGURATION SET x = x\b": "no name that is put in",
    r"\bSET LOCK_TIMEOUT x\b": "no number that is put in",
}


@pytest.fixture(scope="module")
def found() -> dict[str, str]:
    return texts.all_texts()


@pytest.fixture(scope="module")
def statements(found: dict[str, str]) -> dict[str, str]:
    return {name: text for name, text in found.items() if name not in NO_STATEMENTS}


def test_sqlfluff_parses(statements):
    known = [text for text in statements.values() if not any(re.search(one, text) for one in UNKNOWN_TO_SQLFLUFF)]
    assert parsers.wrong(known) == {}


@pytest.mark.microsoft_parser
def test_microsoft_s_parser_parses(statements):
    assert [name for name, text in statements.items() if parsers.microsoft(text)] == []


def test_what_the_lists_of_exceptions_name_is_there_and_does_not_parse(found, statements):
    assert [name for name in NO_STATEMENTS if not parsers.sqlfluff(found[name])] == [], "take the entries out"
    for pattern in UNKNOWN_TO_SQLFLUFF:
        matching = [text for text in statements.values() if re.search(pattern, text)]
        assert any(map(parsers.sqlfluff, matching)), f"take {pattern} out"


# What is no T-SQL, and whether sqlfluff sees it. Those it does not see are why there is a second parser.
BROKEN = {
    "SELECT a FROM t WHERE": True,
    "SELEC a FROM t": True,
    "CREATE PROCEDURE p AS BEGIN SELECT 1;": True,
    "BEGIN TRY SELECT 1; END TRY": False,
    "SELECT a FROM t LIMIT 1": False,
    "SELECT a FROM t; CREATE PROCEDURE p AS SELECT 1": False,
    "INSERT INTO t (a) VALUES (1) ON CONFLICT DO NOTHING": True,
    "CREATE TABLE t (a integer": True,
    "UPDATE t SET a = '": True,
}


def test_sqlfluff_refuses():
    assert [text for text, seen in BROKEN.items() if seen and not parsers.sqlfluff(text)] == []


@pytest.mark.microsoft_parser
def test_microsoft_s_parser_refuses():
    assert all(map(parsers.microsoft, BROKEN))


def test_parameters_as_the_driver_sends_them():
    text = "EXEC p ?, ?; -- why?\nSELECT '?''?', [a?]]?], \"?\" /* ? */ WHERE a = ?"
    assert parsers.with_parameters(text) == (
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
