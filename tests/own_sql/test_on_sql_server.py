"""SQL of a user's own on SQL Server, as far as a scripted one shows it: what is sent, bound and rolled back."""

import random

import pytest
from support.mssql_server import engine, says_it_is, server
from support.tds.answers import Count, Error, Hold, Rows
from support.tds.datatypes import INT
from support.tds.script import Script
from support.tds.tokens import Column

from stallmark.engines.base import ROWS_AT_ONCE
from stallmark.errors import CallFailed, ErrorClass, StallmarkError
from stallmark.own_sql.examine import examine
from stallmark.own_sql.folder import read_definition
from stallmark.transactions import define
from stallmark.transactions.workload import Outcome, WorkloadContext

__all__ = ["engine", "server"]

ORDER = {
    "sql": "INSERT INTO dbo.orders (customer) OUTPUT inserted.id VALUES (:customer);\n"
           "UPDATE dbo.customers SET [last:order] = :id WHERE id = :customer AND :id > 0",
    "isolation": "serializable",
    "parameters": {"customer": {"from": 7, "to": 7}, "id": {"result": 1}},
}  # fmt: skip


@pytest.fixture
def script() -> Script:
    script = Script(databases=["bank", "master", "tempdb"])
    says_it_is(script)
    script.sql("SELECT @@SPID", Rows([Column("spid", INT)], [(57,)]))
    script.sql("sp_describe_undeclared_parameters", Error(11501, "The parameter type could not be deduced."))
    return script


def place(engine, given=ORDER):
    workload = define(read_definition({"name": "own", "transactions": {"place": given}}))
    [kind] = workload.transactions
    context = WorkloadContext({}, 1, engine.query, lambda *_: None, dialect="mssql")
    transaction = kind(workload.users.share(context))
    session = engine.session(10)
    workload.prepare(session, [kind])
    return workload, transaction, session


def sent(server):
    """Texts and values of what was sent, without the questions about types."""
    asked = (request for request in server.requests if "sp_describe_undeclared" not in request.text)
    return [(request.text.split("\n")[0], tuple(request.values or ())) for request in asked]


def test_a_transaction_binds_its_parameters_and_ends_what_it_begins(engine, server, script):
    script.sql("INSERT INTO dbo.orders", Rows([Column("id", INT)], [(41,)]))
    script.sql("UPDATE dbo.customers")
    _, transaction, session = place(engine)
    server.forget()
    assert transaction.execute(session, transaction.inputs(random.Random(1))) is Outcome.COMMITTED
    (begin, _), (_, inserted), (_, updated), (commit, _) = sent(server)
    assert "SERIALIZABLE" in begin and "BEGIN TRANSACTION" in begin and "COMMIT TRANSACTION" in commit
    assert (inserted, updated) == ((7,), (41, 7, 41))


def test_without_a_row_to_go_on_with_it_is_rolled_back(engine, server, script):
    script.sql("INSERT INTO dbo.orders", Rows([Column("id", INT)], []))
    _, transaction, session = place(engine)
    server.forget()
    assert transaction.execute(session, transaction.inputs(random.Random(1))) is Outcome.ROLLED_BACK
    assert "ROLLBACK TRANSACTION" in sent(server)[-1][0]


@pytest.mark.parametrize(
    ("sql", "trips"),
    [
        ("UPDATE t SET a = :n", 1),
        ("DECLARE @a int = :n; UPDATE t SET a = @a", 1),
        ("MERGE t USING u ON t.a = u.a WHEN MATCHED THEN UPDATE SET a = :n WHEN NOT MATCHED THEN INSERT VALUES (1)", 1),
        ("EXEC dbo.p :n", 1),
        ("DECLARE @a int = :n; UPDATE t SET a = @a; UPDATE u SET a = @a", 3),
        ("UPDATE t SET a = :n DELETE FROM u", 3),
        ("DECLARE @a int = :n; WHILE @a > 0 BEGIN UPDATE t SET a = @a; SET @a -= 1 END", 3),
        ("IF :n > 0 BEGIN EXEC dbo.p 1; INSERT INTO u VALUES (1) END", 3),
    ],
)
def test_a_batch_that_changes_twice_is_one_transaction(sql, trips, engine, server, script):
    script.sql("UPDATE|EXEC dbo")
    given = {"sql": sql, "parameters": {"n": {"from": 7, "to": 7}}}
    for one_transaction in (True, False):
        _, transaction, session = place(engine, given | {"one_transaction": one_transaction})
        server.forget()
        assert transaction.execute(session, transaction.inputs(random.Random(1))) is Outcome.COMMITTED
        texts = [text for text, _ in sent(server)]
        assert len(texts) == (trips if one_transaction else 1)
        assert ("BEGIN TRANSACTION" in texts[0]) == (len(texts) == 3) == ("COMMIT TRANSACTION" in texts[-1])


def test_a_deadlock_is_rolled_back_and_can_be_tried_again(engine, server, script):
    script.sql("INSERT INTO dbo.orders", Rows([Column("id", INT)], [(41,)]))
    script.sql("UPDATE dbo.customers", Error(1205, "deadlock", severity=13), times=1)
    script.sql("UPDATE dbo.customers")
    _, transaction, session = place(engine)
    inputs = transaction.inputs(random.Random(1))
    with pytest.raises(CallFailed) as failed:
        transaction.execute(session, inputs)
    assert failed.value.kind is ErrorClass.DEADLOCK
    assert "ROLLBACK TRANSACTION" in sent(server)[-1][0]
    assert transaction.execute(session, inputs) is Outcome.COMMITTED


def test_its_trial_is_rolled_back(engine, server, script):
    script.sql("INSERT INTO dbo.orders", Rows([Column("id", INT)], [(41,)]))
    script.sql("UPDATE dbo.customers")
    workload, _, _ = place(engine)
    server.forget()
    tried = examine(engine, workload)
    assert [(one.line, one.rows, one.types) for one in tried] == [(1, 1, None), (2, 0, None)]
    texts = [text for text, _ in sent(server)]
    assert any("BEGIN TRANSACTION" in text for text in texts) and not any(
        "COMMIT TRANSACTION" in text for text in texts
    )
    assert "ROLLBACK TRANSACTION" in texts[-1]


@pytest.mark.thorough
def test_a_slow_condition_is_tried_for_a_moment(engine, script):
    script.sql("SELECT 1")
    script.sql("FROM slow", Hold())
    script.sql("FROM nowhere", Error(208, "Invalid object name 'nowhere'.", severity=16))
    given = {"name": "own", "transactions": {"look": {"sql": "SELECT 1"}}}
    given |= {"conditions": {"slow": "SELECT id FROM slow", "wrong": "SELECT id FROM nowhere"}}
    with pytest.raises(StallmarkError, match=r"conditions/wrong\.sql, "):
        examine(engine, define(read_definition(given)))


def test_a_condition_is_tried_as_it_will_be_judged(engine, server, script):
    script.sql("SELECT 1", Rows([Column("id", INT)], [(1,)]))
    script.sql("AS offending", Error(156, "Incorrect syntax near the keyword 'WITH'.", severity=15))
    given = {"name": "own", "transactions": {"look": {"sql": "SELECT 1"}}}
    workload = define(read_definition(given | {"conditions": {"well": "WITH t AS (SELECT 2 AS a) SELECT a FROM t"}}))
    with pytest.raises(StallmarkError, match=r"^conditions/well\.sql, within FROM \(…\): the server .*'WITH' \(156\)"):
        examine(engine, workload)


def test_a_statement_that_was_not_executed_was_not_seen(engine, script):
    script.sql("INSERT INTO dbo.orders", Rows([Column("id", INT)], []))
    given = {"name": "own", "transactions": {"place": ORDER}}
    tried = examine(engine, define(read_definition(given)))
    assert [(one.rows, one.types) for one in tried] == [(0, None), (None, None)]


def test_changed_rows_are_counted_where_none_are_returned(engine, script):
    script.sql("UPDATE t", Count(3))
    script.sql("UPDATE u", Count(2), Rows([Column("id", INT)], [(1,)]))
    session = engine.session(10)
    for name in ("t", "u"):
        session.prepare(name, f"UPDATE {name} SET a = 1")
    assert session.call_head("t", ()) == (3, [])
    assert session.call_head("u", ()) == (1, [(1,)])


def test_rows_of_all_results_are_counted_and_the_first_kept(engine, script):
    none, more = Rows([Column("id", INT)], []), Rows([Column("id", INT)], [(1,)])
    script.sql("SELECT many", none, Rows([Column("id", INT)], [(n,) for n in range(2500)]), more)
    script.sql("SELECT wrong", Error(207, "Invalid column name 'wrong'.", severity=16))
    session = engine.session(10)
    for name in ("many", "wrong"):
        session.prepare(name, f"SELECT {name}")
    for _ in range(2):
        assert session.call_head("many", ()) == (2501, [(n,) for n in range(ROWS_AT_ONCE)])
    with pytest.raises(CallFailed, match="Invalid column"):
        session.call_head("wrong", ())
    assert session.count("many", ()) == 2501


def test_as_many_rows_as_are_fetched_at_once_are_counted(engine, script):
    for count in (0, ROWS_AT_ONCE - 1, ROWS_AT_ONCE, ROWS_AT_ONCE + 1, 2 * ROWS_AT_ONCE):
        script.sql(f"SELECT {count} ", Rows([Column("id", INT)], [(n,) for n in range(count)]))
        session = engine.session(10)
        session.prepare("some", f"SELECT {count} ROWS")
        assert session.count("some", ()) == count


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"sql": "SELECT 1;", "script": "pgbench"}, "is of PostgreSQL"),
        ({"sql": "SELECT $$a;b$$"}, "place.sql"),
        ({"sql": "SELECT 1\nDROP TABLE orders"}, "line 1: DROP changes tables"),
        ({"sql": "DECLARE @a int = 1 UPDATE t SET a = @a", "reads_only": True}, "it writes: leave out `reads_only"),
        (
            {"sql": "SELECT :id", "parameters": {"id": {"query": "SELECT 1\nDROP TABLE t"}}},
            "query for id is not one SEL",
        ),
        ({"sql": "SELECT nothing"}, "the server does not take it"),
    ],
)
def test_what_sql_server_does_not_take_is_refused(given, named, engine, script):
    script.sql("SELECT nothing", Error(207, "Invalid column name 'nothing'.", severity=16))
    workload = define(read_definition({"name": "own", "transactions": {"place": given}}))
    with pytest.raises(StallmarkError, match=named):
        examine(engine, workload)


def test_rows_of_each_form_are_tried(engine, server, script):
    bad = Error(245, "Conversion failed when converting the nvarchar value 'seven' to data type int.", severity=16)
    script.sql(
        "SELECT name", lambda request: [bad] if "seven" in request.values else [Rows([Column("n", INT)], [(1,)])]
    )
    values = [*map(str, range(500)), *map(str, range(500, 1000))]
    given = {"sql": "SELECT name FROM t WHERE id = :id", "parameters": {"id": {"values": values}}}
    workload, _, _ = place(engine, given)
    server.forget()
    examine(engine, workload)
    tried = [values[0] for text, values in sent(server) if "SELECT name" in text]
    assert {"0", "999"} <= {*tried} and len(tried) < 10
    values.insert(500, "seven")
    workload, _, _ = place(engine, given)
    server.forget()
    with pytest.raises(StallmarkError, match=r"place\.sql, line 1: .*data type int.*tried with :id 'seven'"):
        examine(engine, workload)
    assert "ROLLBACK TRANSACTION" in sent(server)[-1][0]


def test_rows_of_each_form_are_tried_for_a_while_only(engine, server, script, monkeypatch):
    monkeypatch.setattr("stallmark.own_sql.examine.ROWS_TRIED_S", 0.0)
    script.sql("SELECT name")
    given = {"sql": "SELECT name FROM t WHERE id = :id", "parameters": {"id": {"values": ["1", "x"]}}}
    workload, _, _ = place(engine, given)
    server.forget()
    examine(engine, workload)
    assert len([text for text, _ in sent(server) if "SELECT name" in text]) == 1


@pytest.mark.parametrize("one_transaction", [True, False])
def test_a_procedure_that_ends_the_transaction_of_its_caller_is_refused(one_transaction, engine, script):
    words = "Transaction count after EXECUTE indicates a mismatching number of BEGIN and COMMIT statements."
    script.procedure("dbo.pay", Error(266, words, severity=16))
    given = {"sql": "EXEC dbo.pay; SELECT 1", "one_transaction": one_transaction}
    workload, _, _ = place(engine, given)
    with pytest.raises(StallmarkError, match=r"line 1: its procedure ends a transaction that it has not begun"):
        examine(engine, workload)


def test_a_procedure_with_a_transaction_of_its_own_is_tried_and_rolled_back(engine, server, script):
    script.procedure("dbo.pay", Count(2))
    workload, _, _ = place(engine, {"sql": "EXEC dbo.pay", "one_transaction": False})
    server.forget()
    [tried] = examine(engine, workload)
    assert (tried.rows, tried.commits) == (2, False)
    assert "ROLLBACK TRANSACTION" in sent(server)[-1][0]


def test_a_condition_is_executed_before_the_load(engine, script):
    script.sql("SELECT 1")
    script.sql("FROM nowhere", Error(208, "Invalid object name 'nowhere'.", severity=16))
    given = {"name": "own", "transactions": {"look": {"sql": "SELECT 1"}}}
    given |= {"conditions": {"well": "SELECT id FROM nowhere"}}
    with pytest.raises(StallmarkError, match=r"conditions/well\.sql, within FROM \(…\): .*nowhere"):
        examine(engine, define(read_definition(given)))
