"""Every T-SQL text of the product parses, and the two parsers, and the finding of the texts, are not blind."""

import pytest

from tsql import parsers, texts

TEXTS = texts.all_texts()

# A text that is no whole statement, by its beginning as `texts` names it.
FRAGMENTS = {
    "driver/engines/mssql/bulk.py: INSERT INTO x (a, b) VALUES": "the rows follow it",
}
# T-SQL that sqlfluff 4.5 does not know; Microsoft's parser takes each of them.
UNKNOWN_TO_SQLFLUFF = {
    "driver/engines/mssql/engine.py: CHECKPOINT": "it knows no CHECKPOINT",
}
WHOLE = [name for name in TEXTS if name not in FRAGMENTS]


@pytest.mark.parametrize("name", [name for name in WHOLE if name not in UNKNOWN_TO_SQLFLUFF])
def test_sqlfluff_parses(name):
    assert not parsers.sqlfluff(TEXTS[name])


@pytest.mark.parametrize("name", WHOLE)
def test_microsoft_s_parser_parses(name):
    assert not parsers.microsoft(TEXTS[name])


def test_what_is_let_pass_is_there_and_needs_it():
    """An entry that is not needed any more is to be taken out."""
    for name in (*FRAGMENTS, *UNKNOWN_TO_SQLFLUFF):
        assert parsers.sqlfluff(TEXTS[name]), name


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
    "ALTER DATABASE d SET RECOVERY QUICK": False,
}


@pytest.mark.parametrize("text", [text for text, seen in BROKEN.items() if seen])
def test_sqlfluff_refuses(text):
    assert parsers.sqlfluff(text)


@pytest.mark.parametrize("text", BROKEN)
def test_microsoft_s_parser_refuses(text):
    assert parsers.microsoft(text)


def test_parameters_as_the_driver_sends_them():
    text = "EXEC p ?, ?; -- why?\nSELECT '?''?', [a?]]?], \"?\" /* ? */ WHERE a = ?"
    assert parsers.with_parameters(text) == (
        "EXEC p @P1, @P2; -- why?\nSELECT '?''?', [a?]]?], \"?\" /* ? */ WHERE a = @P3"
    )


def test_texts_are_found_in_every_place():
    for name in (
        "transactions/bank/transfer.mssql.sql",
        "transactions/bank/conditions/rows.sql",
        "driver/engines/mssql/settings.sql",
        "schema/files.mssql.sql",
        "schema/bank.py, statement 0",
        "schema/ledger.py, statement 0",
        "driver/engines/mssql/engine.py: SELECT @@MAX_CONNECTIONS",
        "schema/deploy.py: UPDATE STATISTICS x WITH FULLSCAN",
    ):
        assert name in TEXTS
    assert not any("postgresql" in name for name in TEXTS)


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
    assert list(texts.strings(MODULE, "driver/engines/mssql/a.py")) == found
    assert list(texts.strings(MODULE, "schema/a.py")) == ["DBCC HELP"]
