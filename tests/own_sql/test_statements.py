"""The lexer of a user's SQL: what is a parameter, and where a statement ends."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stallmark.errors import StallmarkError
from stallmark.own_sql.statements import DIALECTS, Kind, split

HIDDEN = {
    "postgresql": ["'a:b;c'", "'it''s :x;'", r"E'\':x;'", '"a:b;c"', "$$:x;$$", "$t$ $$ :x; $t$", "/* :x; /* ; */ */",
                   "-- :x;\n", "a::int", "ARRAY[1,2]", "a$1"],
    "mssql": ["'a:b;c'", "'it''s :x;'", '"a:b;c"', "[a:b;c]", "[a]]:x;]", "/* :x; /* ; */ */", "-- :x;\n", "a::b", "@v",
              "N'x:y'"],
}  # fmt: skip


@pytest.mark.parametrize("dialect", DIALECTS)
@given(data=st.data())
def test_only_bare_colons_are_parameters_and_only_bare_semicolons_end(dialect, data):
    parts = data.draw(st.lists(st.sampled_from([*HIDDEN[dialect], ":p", ":q"]), min_size=1, max_size=8))
    statements = data.draw(st.integers(1, 3))
    text = ";\n".join(["SELECT " + " + ".join(parts)] * statements) + ";"
    found = split(text, dialect)
    named = [part[1:] for part in parts if part in (":p", ":q")]
    assert len(found) == statements
    for statement in found:
        assert list(statement.names) == (named if dialect == "mssql" else list(dict.fromkeys(named)))
        for part in parts:
            assert part in (":p", ":q") or part.strip() in statement.sql


@pytest.mark.parametrize("dialect", DIALECTS)
@given(text=st.text(alphabet="ab1 :;'\"[]$/*-\\\n?@#(", max_size=40))
def test_any_text_is_split_or_refused_and_nothing_is_lost(dialect, text):
    try:
        found = split(text, dialect)
    except StallmarkError:
        return
    assert all(statement.words and all(word in text.upper() for word in statement.words) for statement in found)


def test_places_are_numbered_in_postgresql_and_counted_in_tsql():
    text = "UPDATE t SET a = :a, b = :b WHERE a = :a"
    [postgres], [mssql] = split(text, "postgresql"), split(text, "mssql")
    assert (postgres.sql, postgres.names) == ("UPDATE t SET a = $1, b = $2 WHERE a = $1", ("a", "b"))
    assert (mssql.sql, mssql.names) == ("UPDATE t SET a = ?, b = ? WHERE a = ?", ("a", "b", "a"))


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("SELECT 1;\nSELECT 2;\nGO\nSELECT 3", 3),
        ("DECLARE @x int = :a;\nSELECT @x;\ngo\nSELECT 1; SELECT 2", 3),
        ("IF EXISTS (SELECT 1) BEGIN SELECT 1; SELECT 2; END", 1),
        ("BEGIN TRY SELECT 1; END TRY BEGIN CATCH THROW; END CATCH", 1),
        ("SELECT 'GO'\nGO 5\nSELECT 2", 2),
        ("SELECT go FROM t", 1),
    ],
)
def test_tsql_is_cut_at_go_and_batches_with_blocks_stay_whole(text, count):
    assert len(split(text, "mssql")) == count


def test_statements_know_their_lines():
    text = "-- one\nSELECT 1;\n\n/* a\nb */ SELECT 2;\nSELECT\n3"
    assert [statement.line for statement in split(text, "postgresql")] == [2, 5, 6]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("SELECT 1", Kind.READ),
        ("WITH x AS (SELECT 1) SELECT * FROM x", Kind.READ),
        ("WITH x AS (DELETE FROM t RETURNING 1) SELECT * FROM x", Kind.WRITE),
        ("SELECT * FROM t FOR UPDATE", Kind.WRITE),
        ("SELECT nextval('s')", Kind.WRITE),
        ("INSERT INTO t VALUES (1)", Kind.WRITE),
        ("CALL p(:a)", Kind.WRITE),
        ("CREATE TABLE t (a int)", Kind.DDL),
        ("VACUUM", Kind.DDL),
        ("SELECT * INTO t FROM u", Kind.DDL),
        ("SELECT * INTO #t FROM u", Kind.READ),
        ("BEGIN", Kind.CONTROL),
        ("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE", Kind.CONTROL),
        ("SET LOCAL work_mem = '1MB'", Kind.WRITE),
        ("USE other", Kind.REFUSED),
        ("COPY t FROM STDIN", Kind.REFUSED),
    ],
)
def test_kinds(text, kind):
    [statement] = split(text, "mssql")
    assert statement.kind is kind


@pytest.mark.parametrize(
    ("text", "kind", "word"),
    [
        ("SELECT 1\nDROP TABLE orders", Kind.DDL, "DROP"),
        ("IF 1=1 DROP TABLE t", Kind.DDL, "DROP"),
        ("DECLARE @a int; TRUNCATE TABLE t", Kind.DDL, "TRUNCATE"),
        ("CREATE TABLE #t (a int) DROP TABLE IF EXISTS #t, dbo.t", Kind.DDL, "DROP"),
        ("SELECT * INTO dbo.c FROM #a", Kind.DDL, "SELECT … INTO"),
        ("SELECT * INTO #c FROM a\nSELECT * INTO d FROM #c", Kind.DDL, "SELECT … INTO"),
        ("INSERT INTO #c SELECT 1\nSELECT * INTO d FROM #c", Kind.DDL, "SELECT … INTO"),
        ("SELECT 1\nCOMMIT", Kind.CONTROL, "COMMIT"),
        ("UPDATE t SET a = 1\nCOMMIT", Kind.CONTROL, "COMMIT"),
        ("BEGIN TRY BEGIN TRAN UPDATE t SET a = 1 END TRY BEGIN CATCH THROW; END CATCH", Kind.CONTROL, "BEGIN TRAN"),
        ("SELECT 1\nSET IMPLICIT_TRANSACTIONS ON", Kind.CONTROL, "SET IMPLICIT_TRANSACTIONS"),
        ("SELECT 1\nUSE master", Kind.REFUSED, "USE"),
        ("SELECT 1\nUPDATE t SET a = 1", Kind.WRITE, "SELECT"),
        ("SELECT 1 WAITFOR (RECEIVE TOP (1) * FROM q)", Kind.WRITE, "SELECT"),
        ("SELECT 1 END CONVERSATION @h", Kind.WRITE, "SELECT"),
        ("SELECT NEXT VALUE FOR dbo.s", Kind.WRITE, "SELECT"),
        ("CREATE TABLE #t (a int) CREATE INDEX i ON #t (a) DROP TABLE [#t]", Kind.WRITE, "CREATE"),
        ("BEGIN UPDATE t SET a = 1; END", Kind.WRITE, "BEGIN"),
        ("BEGIN TRY UPDATE t SET a = 1 END TRY BEGIN CATCH THROW; END CATCH", Kind.WRITE, "BEGIN"),
        ("INSERT INTO t EXEC p", Kind.WRITE, "INSERT"),
        ("DELETE FROM t OUTPUT deleted.a INTO dbo.log", Kind.WRITE, "DELETE"),
        ("MERGE t USING s ON 1=1 WHEN MATCHED THEN UPDATE SET a = 1 OUTPUT inserted.a INTO l", Kind.WRITE, "MERGE"),
        ("DECLARE @drop int SET @drop = 1 SELECT @drop", Kind.WRITE, "DECLARE"),
        ("SELECT [drop], \"create\", 'COMMIT' FROM t WITH (NOLOCK) -- USE", Kind.READ, "SELECT"),
        ("SELECT a FROM t INNER MERGE JOIN u ON 1=1 OPTION (USE HINT('x'), RECOMPILE)", Kind.READ, "SELECT"),
    ],
)
def test_each_word_of_tsql_may_begin_a_statement(text, kind, word):
    [statement] = [one for one in split(text, "mssql") if one.kind is kind] if ";" in text else split(text, "mssql")
    assert (statement.kind, statement.word) == (kind, word)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ('SELECT drop_date, comment, load, "use" FROM save', Kind.READ),
        ("WITH x AS (INSERT INTO t VALUES (1) RETURNING a) SELECT * FROM x", Kind.WRITE),
        ("WITH x AS (INSERT INTO t VALUES (1) RETURNING a) SELECT * INTO u FROM x", Kind.DDL),
        ("DO $$ BEGIN DROP TABLE t; END $$", Kind.WRITE),
        ("SELECT set_config('default_transaction_read_only', 'off', false)", Kind.WRITE),
    ],
)
def test_kinds_of_postgresql(text, kind):
    [statement] = split(text, "postgresql")
    assert statement.kind is kind


@pytest.mark.parametrize("text", ["SELECT 'a", 'SELECT "a', "SELECT /* a", "SELECT [a"])
def test_what_does_not_end_is_refused_with_its_line(text):
    with pytest.raises(StallmarkError, match="line 2 does not end"):
        split(f"\n{text}", "mssql")


def test_a_dollar_quote_that_does_not_end_is_refused():
    with pytest.raises(StallmarkError, match="does not end"):
        split("SELECT $a$ x $b$", "postgresql")


def test_a_question_mark_in_tsql_needs_a_name():
    with pytest.raises(StallmarkError, match=":name"):
        split("SELECT ?", "mssql")
