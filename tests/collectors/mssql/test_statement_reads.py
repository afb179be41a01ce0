"""The reads of own SQL's statements on SQL Server: which batches and procedures are ours."""

import pytest
from support.mssql_server import engine, says_it_is, server
from support.tds.answers import Rows
from support.tds.datatypes import BIGINT, FLOAT, nvarchar
from support.tds.script import Script
from support.tds.tokens import Column

from stallmark.collectors.columns import STATEMENT_READS
from stallmark.collectors.mssql.statements import StatementReads, called_procedure
from stallmark.engines.mssql.session import as_sent
from stallmark.own_sql.folder import read_definition
from stallmark.transactions import define

__all__ = ["engine", "server"]


@pytest.fixture
def script() -> Script:
    script = Script(databases=["bank", "master", "tempdb"])
    says_it_is(script)
    return script


@pytest.mark.parametrize(
    ("sql", "sent"),
    [
        ("SELECT ? + ?", "SELECT @P1 + @P2"),
        (
            "SELECT 'a?''?', [b?], \"?\", ? -- why?\n, ? /* ? */",
            "SELECT 'a?''?', [b?], \"?\", @P1 -- why?\n, @P2 /* ? */",
        ),
    ],
)
def test_a_batch_is_known_by_the_text_that_the_driver_sends(sql, sent):
    assert as_sent(sql) == sent


@pytest.mark.parametrize(
    ("text", "procedure"),
    [
        ("EXEC dbo.p :a, 'x'", "dbo.p"),
        ("exec [my schema].[p]", "[my schema].[p]"),
        ("EXECUTE p", "p"),
        ("EXEC p :a SELECT 1", None),
        ("SELECT 1", None),
        ("EXEC (:a)", None),
    ],
)
def test_a_procedure_is_that_of_a_statement_that_calls_it_and_does_nothing_else(text, procedure):
    assert called_procedure(text) == procedure


SQL = "SELECT a FROM t WHERE id = :id; EXEC dbo.p :id; SELECT 1; UPDATE t SET a = :id; SELECT 1"


def statements():
    place = {"sql": SQL, "parameters": {"id": {"from": 1, "to": 2}}}
    return {"own": define(read_definition({"name": "own", "transactions": {"place": place}})).statements("mssql")}


def test_statements_that_the_server_cannot_tell_apart_are_left_out(engine):
    collector = StatementReads(engine, statements())
    assert all(name in collector.limits() for name in ("place 3", "place 5"))
    assert "(N'place 1', N'SELECT a FROM t WHERE id = @P1', NULL)" in collector.sql
    assert "(N'place 2', N'EXEC dbo.p @P1', N'dbo.p')" in collector.sql
    assert "place 3" not in collector.sql and "'SELECT 1'" not in collector.sql


@pytest.mark.parametrize(
    ("declared", "ours"),
    [
        (None, True),
        ("(@P1 int)", True),
        ("(@P1 int,@P2 nvarchar(10),@P3 decimal(18,2))", True),
        ("(@P1 int)INSERT INTO u VALUES (@P1)", False),
        ("SELECT 2; ", False),
    ],
)
def test_a_batch_that_ends_like_ours_is_another(declared, ours, engine, server, script: Script):
    names = [*(name for name in STATEMENT_READS.names), "declared"]
    kinds = [FLOAT, *[nvarchar(60)] * 3, *[BIGINT] * 3, nvarchar(60)]
    row = (1.5, "plan cache", "place 1", "0x02 0x06 0 2026", 4, 40, 2, declared)
    columns = [Column(name, kind) for name, kind in zip(names, kinds, strict=True)]
    script.sql("sys.dm_exec_plan_attributes", Rows(columns, [row]))
    collector = StatementReads(engine, statements())
    collector.open()
    rows = collector.sample(0.0)
    assert rows == ([dict(zip(names, row[:-1], strict=False))] if ours else [])
    collector.close()
