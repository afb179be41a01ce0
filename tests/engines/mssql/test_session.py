"""Calls and transactions of a virtual user, counted in round trips, and what their errors mean."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone
from decimal import Decimal

import pytest
from support.mssql_server import answering, engine_at, says_it_is
from support.tds.answers import Cut, Error, Hold, Rows
from support.tds.datatypes import INT, DataType, nvarchar
from support.tds.responder import Responder
from support.tds.script import Script
from support.tds.tokens import Column
from support.waiting import eventually

from stallmark.engines.base import Isolation
from stallmark.engines.mssql.engine import MssqlEngine
from stallmark.engines.mssql.odbc import failed, sentence
from stallmark.engines.mssql.session import MssqlSession, as_exec
from stallmark.errors import CallFailed, ErrorClass, NoConnection
from stallmark.transactions.bank import WORKLOAD, Transfer

pytestmark = pytest.mark.thorough

THROUGH = "[Microsoft][ODBC Driver 18 for SQL Server][SQL Server]"
TRANSFER = WORKLOAD.call(Transfer, "transfer", "mssql")


def test_a_transaction_is_one_round_trip(engine: MssqlEngine, server: Responder, script: Script):
    script.procedure("bank.transfer", Rows([Column("abalance", INT)], [(41,)]))
    session = engine.session(10)
    session.prepare("transfer", TRANSFER)
    server.forget()
    assert [session.call("transfer", (1, 2, 3, n)) for n in range(20)] == [[(41,)]] * 20
    assert server.round_trips == 20
    assert [request.values for request in server.requests] == [(1, 2, 3, n) for n in range(20)]
    assert all("COMMIT TRANSACTION" in request.text for request in server.requests)
    assert session.server_pid == 57
    session.close()


def test_procedures_keep_their_prepared_statements_beside_each_other(engine, server, script):
    for name in ("a", "b"):
        script.procedure(name, Rows([Column("x", nvarchar(10))], [(name,)]))
    session = engine.session(10)
    for name in ("a", "b"):
        session.prepare(name, f"{{CALL {name}(?)}}")
    server.forget()
    assert [session.call(name, (1,)) for name in "abab"] == [[("a",)], [("b",)]] * 2
    assert server.round_trips == 4
    session.close()


def test_the_rows_of_all_results_come_one_after_the_other(engine, server, script):
    one, two = [Column("x", INT)], [Column("y", nvarchar(10)), Column("z", INT)]
    script.procedure("detail", Rows(one, [(5,)]), Rows(one, []), Rows(two, [("a", 6), (None, 7)]))
    session = engine.session(10)
    session.prepare("detail", "{CALL detail(?)}")
    server.forget()
    assert [session.call("detail", (1,)) for _ in range(2)] == [[(5,), ("a", 6), (None, 7)]] * 2
    assert server.round_trips == 2
    session.close()


# Transactions of several calls

BEGIN = "SET XACT_ABORT ON; SET TRANSACTION ISOLATION LEVEL {}; BEGIN TRANSACTION"
COMMIT = "COMMIT TRANSACTION; SET TRANSACTION ISOLATION LEVEL READ COMMITTED"
ROLL_BACK = "IF @@TRANCOUNT > 0 ROLLBACK TRANSACTION; SET TRANSACTION ISOLATION LEVEL READ COMMITTED"


@pytest.fixture
def framed(engine: MssqlEngine, server: Responder, script: Script) -> Iterator[MssqlSession]:
    """A session that has two frames prepared; `one` returns a row, how `two` answers is up to the test."""
    script.procedure("order_frame1", Rows([Column("x", INT)], [(5,)]))
    session = engine.session(10)
    session.prepare("one", "{CALL order_frame1(?)}")
    session.prepare("two", "{CALL order_frame2(?, ?)}")
    server.forget()
    yield session
    session.close()


def said(server: Responder) -> list[str]:
    return [" ".join(request.text.split()) for request in server.requests]


@pytest.mark.parametrize("isolation", Isolation)
def test_a_transaction_of_several_calls_costs_two_round_trips_more_than_they_do(framed, server, script, isolation):
    script.procedure("order_frame2", Rows([Column("y", INT)], [(6,)]))
    for _ in range(3):
        with framed.transaction(isolation):
            assert framed.call("one", (1,)) == [(5,)]
            assert framed.call("two", (2, 3)) == [(6,)]
    assert server.round_trips == 3 * 4
    assert [request.kind for request in server.requests] == ["batch", "rpc", "rpc", "batch"] * 3
    assert [said(server)[0], said(server)[3]] == [BEGIN.format(isolation), COMMIT]
    assert {request.procedure for request in server.requests} == {"", "sp_prepexecrpc"}


@pytest.mark.parametrize("text", ["BEGIN TRANSACTION; EXEC order_frame1 ?", "EXEC order_frame1 ?; COMMIT"])
def test_which_a_statement_with_parameters_cannot_spare(framed, server, text):
    """Why the transaction begins and ends with batches of their own: error 266."""
    framed.prepare("both", text)
    framed.begin(Isolation.SERIALIZABLE) if "COMMIT" in text else None
    with pytest.raises(CallFailed, match="mismatching number of BEGIN and COMMIT") as refused:
        framed.call("both", (1,))
    assert refused.value.code == "266" and said(server)[-1] == ROLL_BACK


@pytest.mark.parametrize(
    ("said_by_babelfish", "kind"),
    [
        ("could not serialize access due to concurrent update", ErrorClass.SERIALIZATION),
        ("canceling statement due to lock timeout", ErrorClass.LOCK_TIMEOUT),
        ("cannot be null", ErrorClass.OTHER),
    ],
)
def test_babelfish_s_one_number_is_told_apart_by_its_words(framed, script, said_by_babelfish, kind):
    script.procedure("order_frame2", Error(33557097, said_by_babelfish), times=1)
    with pytest.raises(CallFailed) as raised:
        framed.call("two", (2, 3))
    assert raised.value.kind is kind and raised.value.code == "33557097"


def test_on_babelfish_the_level_is_set_in_a_batch_of_its_own():
    script = Script()
    says_it_is(script, banner="Babelfish for PostgreSQL with SQL Server Compatibility - 12.0 (Babelfish 4.4.0)")
    script.sql("SELECT @@SPID", Rows([Column("spid", INT)], [(57,)]))
    with answering(script) as server:
        session = engine_at(server).session(10)
        server.forget()
        with session.transaction(Isolation.SERIALIZABLE):
            session.roll_back()
        assert said(server)[1:] == ROLL_BACK.split("; ")
        session.close()


def test_a_transaction_may_decide_to_roll_back(framed, server):
    with framed.transaction(Isolation.SERIALIZABLE):
        framed.call("one", (1,))
        framed.roll_back()
    assert said(server)[2:] == [ROLL_BACK] and server.round_trips == 3


def test_a_fault_between_the_calls_rolls_back(framed, server):
    with pytest.raises(ZeroDivisionError), framed.transaction(Isolation.REPEATABLE_READ):
        framed.call("one", (1,))
        1 / 0  # noqa: B018
    assert said(server)[2:] == [ROLL_BACK]


@pytest.mark.parametrize(
    ("number", "kind"), [(1205, ErrorClass.DEADLOCK), (547, ErrorClass.OTHER), (1222, ErrorClass.LOCK_TIMEOUT)]
)
def test_after_an_error_between_the_calls_the_session_is_clean(framed, server, script, number, kind):
    """1205 has ended the transaction already, the others have not; in neither case is it rolled back twice."""
    script.procedure("order_frame2", Error(number, "it failed."), times=1)
    script.procedure("order_frame2", Rows([Column("y", INT)], [(6,)]))
    with pytest.raises(CallFailed) as raised, framed.transaction(Isolation.SERIALIZABLE):
        framed.call("one", (1,))
        framed.call("two", (2, 3))
    assert raised.value.kind is kind
    assert said(server)[3:] == [ROLL_BACK]
    server.forget()
    with framed.transaction(Isolation.READ_COMMITTED):
        framed.call("two", (2, 3))
    assert [said(server)[0], said(server)[2]] == [BEGIN.format("READ COMMITTED"), COMMIT]


@pytest.mark.parametrize(
    ("at", "kind"),
    [
        ("SERIALIZABLE", ErrorClass.CONNECTION_LOST),
        ("order_frame2", ErrorClass.CONNECTION_LOST),
        ("COMMIT", ErrorClass.UNKNOWN_OUTCOME),
        ("ROLLBACK", ErrorClass.CONNECTION_LOST),
    ],
)
def test_a_connection_cut_is_of_unknown_outcome_at_the_commit_alone(framed, script, at, kind):
    if at == "order_frame2":
        script.procedure(at, Cut())
    else:
        script.sql(rf"\b{at}\b.*(BEGIN|READ COMMITTED$)", Cut())
        script.procedure("order_frame2", Rows([Column("y", INT)], [(6,)]))
    with pytest.raises(CallFailed) as raised, framed.transaction(Isolation.SERIALIZABLE):
        framed.call("two", (2, 3))
        if at == "ROLLBACK":
            framed.roll_back()
    assert raised.value.kind is kind


def test_users_have_the_options_of_whoever_looks_at_their_plans(engine, server):
    """ "The default ARITHABORT setting for SSMS is ON. Client applications setting ARITHABORT to OFF might receive
    different query plans" (learn.microsoft.com, SET ARITHABORT)."""
    engine.session(10).close()
    engine.queries(10).close()
    asked = [request.text for request in server.requests if request.kind == "batch"]
    assert asked.count("SET ARITHABORT ON") == 2


def test_a_session_is_known_by_the_name_of_its_load(engine, server):
    engine.session(10).close()
    engine.session(10, "stallmark-user-mail").close()
    names = [login.application for login in server.logins if login.application != "stallmark-collector"]
    assert names == ["stallmark-user", "stallmark-user-mail"]


# Types of parameters

DECLARED = [
    ("bigint", 8, 19, 0), ("int", 4, 10, 0), ("smallint", 2, 5, 0), ("bit", 1, 1, 0), ("decimal", 5, 8, 2),
    ("varchar", 8000, 0, 0), ("char", 3, 0, 0), ("nvarchar", 60, 0, 0), ("datetime2", 7, 23, 3), ("date", 3, 10, 0),
    ("float", 8, 53, 0), ("varchar", -1, 0, 0),
]  # fmt: skip
_TEXTS = ("1," * 999, "C", "日本")
VALUES = [
    (1, 1, 1, True, "0.5", "a", "TMB", "a", "2005-01-03T09:00:00.123", "2005-01-03", 1, "a"),
    (2**40, -7, 30_000, False, Decimal("-99.25"), *_TEXTS, "2005-01-03T09:00:00.000", None, 0.25, "b" * 200),
    (None,) * 12,
]


@pytest.mark.parametrize("call", ["{{CALL dbo.all_types({})}}", "BEGIN TRANSACTION; EXEC dbo.all_types {}; COMMIT"])
def test_parameters_have_the_types_of_the_procedure_at_every_call(engine, server, script, call):
    columns = [Column("type_name", nvarchar(128)), *(Column(name, INT) for name in ("bytes", "digits", "decimals"))]
    script.sql(r"sys\.parameters[^;]*'dbo.all_types'", Rows(columns, DECLARED), times=1)
    script.procedure("dbo.all_types", Rows([Column("x", INT)], [(1,)]))
    for _ in range(2):  # asked once, for all sessions
        session = engine.session(10)
        session.prepare("all", call.format(", ".join("?" * len(DECLARED))))
        for values in VALUES:
            assert session.call("all", values) == [(1,)]
        server.forget()
        for values in VALUES:
            session.call("all", values)
        calls = list(server.requests)
        sent = [[each.type for each in request.parameters[-len(DECLARED) :]] for request in calls]
        assert len(calls) == len(VALUES)
        assert sent[0] == sent[1] == sent[2]
        assert [each.value for each in calls[1].parameters[-len(DECLARED) :]][:2] == [2**40, -7]
        session.close()


def test_named_arguments_take_no_types_of_the_order_in_which_they_are_declared(engine, server, script):
    columns = [Column("type_name", nvarchar(128)), *(Column(name, INT) for name in ("bytes", "digits", "decimals"))]
    script.sql(r"sys\.parameters[^;]*'dbo.note'", Rows(columns, [("int", 4, 10, 0), ("varchar", 20, 0, 0)]))
    script.sql("sp_describe_undeclared_parameters", Error(11501, "The parameter type could not be deduced."))
    script.procedure("dbo.note", Rows([Column("x", INT)], [(1,)]))
    session = engine.session(10)
    session.prepare("note", "EXEC dbo.note @text = ?, @id = ?")
    assert session.call("note", ("not a number", 7)) == [(1,)]
    assert [each.value for each in server.requests[-1].parameters[-2:]] == ["not a number", 7]
    session.close()


@pytest.mark.parametrize("kind", ["varchar", "nvarchar"])
def test_texts_of_a_batch_have_the_type_that_the_server_asks_for(engine, server, script, kind):
    columns = [Column("parameter_ordinal", INT), *(Column(name, nvarchar(128)) for name in ("name", "id", "type"))]
    described = [(1, "@P1", "", f"{kind}(20)"), (2, "@P2", "", "int"), (3, "@P3", "", "datetime2(3)")]
    script.sql("sp_describe_undeclared_parameters", Rows(columns, described), times=1)
    script.sql("WHERE code", Rows([Column("x", INT)], [(1,)]))
    sent = []
    for _ in range(2):  # asked once, for all sessions
        session = engine.session(10)
        session.prepare("look", "SELECT 1 FROM t WHERE code = ? AND id = ? AND made > ? AND note <> 'why?'")
        for code in ("a", "Zürich" * 10):
            assert session.call("look", (code, 7, "2026-11-29T21:00:00.000")) == [(1,)]
            sent.append([(each.type.name, each.type.size, each.value) for each in server.requests[-1].parameters[-3:]])
        session.close()
    assert [values[0][2] for values in sent[:2]] == ["a", "Zürich" * 10]
    assert {values[0][:2] for values in sent} == {(kind, 8000)}
    assert {values[1][0] for values in sent} == {"int"} and {values[2][0] for values in sent} == {"nvarchar"}


@pytest.mark.parametrize("length", [8_000, 8_001, 3_000_000])
@pytest.mark.parametrize("call", ["{CALL dbo.note(?, ?)}", "BEGIN TRANSACTION; EXEC dbo.note ?, ?; COMMIT"])
def test_a_long_text_arrives_whole(engine, server, script, call, length):
    columns = [Column("type_name", nvarchar(128)), *(Column(name, INT) for name in ("bytes", "digits", "decimals"))]
    script.sql(r"sys\.parameters[^;]*'dbo.note'", Rows(columns, [("int", 4, 10, 0), ("varchar", -1, 0, 0)]))
    script.procedure("dbo.note", Rows([Column("x", INT)], [(1,)]))
    session = engine.session(10)
    session.prepare("note", call)
    text = "a" + "b" * (length - 2) + "c"
    for _ in range(2):
        assert session.call("note", (7, text)) == [(1,)]
        assert [each.value for each in server.requests[-1].parameters[-2:]] == [7, text]
    session.close()


def test_times_with_an_offset_are_fetched_as_texts_that_can_be_bound_again(engine, script):
    """pyodbc alone refuses the type."""
    zones = [timezone(timedelta(hours=hours, minutes=minutes)) for hours, minutes in ((0, 0), (5, 45), (-3, -30))]
    moments = [datetime(2026, 3, 1, 4, 5, 6, 789_012, zone) for zone in zones]
    kind = DataType(0x2B, scale=7)
    script.sql("SELECT made", Rows([Column("made", kind)], [*((moment,) for moment in moments), (None,)]))
    session = engine.session(10)
    session.prepare("made", "SELECT made")
    texts = ["2026-03-01T04:05:06.7890120" + zone for zone in ("+00:00", "+05:45", "-03:30")]
    assert session.call("made", ()) == [*((text,) for text in texts), (None,)]
    session.close()
    with engine.few_logins():
        assert [engine.query("SELECT made")[1] for _ in range(2)] == [(texts[1],)] * 2


# Errors

REFUSED = (921, 922, 952, 954, 976, 978, 983, 988, 3906, 4221)


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (1205, ErrorClass.DEADLOCK),
        (1222, ErrorClass.LOCK_TIMEOUT),
        (3960, ErrorClass.SERIALIZATION),
        (9002, ErrorClass.OUT_OF_SPACE),
        (1105, ErrorClass.OUT_OF_SPACE),
        (824, ErrorClass.STORAGE),
        (701, ErrorClass.OUT_OF_MEMORY),
        (802, ErrorClass.OUT_OF_MEMORY),
        *((number, ErrorClass.SERIALIZATION) for number in (41301, 41302, 41305, 41325, 41839)),
        *((number, ErrorClass.TIMEOUT) for number in (845, 8628, 8645)),
        *((number, ErrorClass.OUT_OF_SPACE) for number in (1104, 1121, 1132, 1133, 1136, 1138, 3907, 3911, 3958, 3966)),
        *((number, ErrorClass.OUT_OF_SPACE) for number in (40544, 40551, 40552, 41822)),
        *((number, ErrorClass.OUT_OF_MEMORY) for number in (1204, 8651, 8657, 8902, 17803, 40553, 41805, 41823, 41840)),
        *((number, ErrorClass.STORAGE) for number in (605, 610, 822, 829, 832, 926, 1102, 3864, 3908, 5159, 5180)),
        *((number, ErrorClass.STORAGE) for number in (211, 3313, 3314, 5242, 5243, 7105, 8646, 9003, 9004, 9100)),
        *((number, ErrorClass.RESOURCE_LIMIT) for number in (8642, 10928, 10929, 10936, 40550, 49918, 49919, 49920)),
        (2627, ErrorClass.OTHER),
    ],
)
def test_errors_are_known_by_number_and_leave_no_transaction_open(engine, server, script, number, kind):
    script.procedure("bank.transfer", Error(number, "it failed.", severity=16))
    session = engine.session(10)
    session.prepare("transfer", TRANSFER)
    with pytest.raises(CallFailed) as raised:
        session.call("transfer", (1, 2, 3, 4))
    assert (raised.value.kind, raised.value.code, raised.value.message) == (kind, str(number), "it failed")
    assert "ROLLBACK" in server.requests[-1].text
    session.close()


@pytest.mark.parametrize("number", [64, 121, *REFUSED, 1219, 40197, 40501, 40549, 40613])
def test_a_failover_sends_the_session_to_another_login(engine, script, number):
    """By sys.messages and SqlConfigurableRetryFactory.BaselineTransientErrors; what was refused has not committed."""
    script.procedure("bank.transfer", Error(number, "try elsewhere.", severity=16))
    session = engine.session(10)
    session.prepare("transfer", TRANSFER)
    with pytest.raises(CallFailed) as raised:
        session.call("transfer", (1, 2, 3, 4))
    assert raised.value.kind is (ErrorClass.CONNECTION_LOST if number in REFUSED else ErrorClass.UNKNOWN_OUTCOME)
    assert session.is_lost
    session.close()


@pytest.mark.parametrize(("commits", "kind"), [(True, ErrorClass.UNKNOWN_OUTCOME), (False, ErrorClass.CONNECTION_LOST)])
def test_a_connection_cut_under_a_call(engine, script, commits, kind):
    script.procedure("bank.transfer", Cut())
    session = engine.session(10)
    session.prepare("transfer", TRANSFER)
    with pytest.raises(CallFailed) as raised:
        session.call("transfer", (1, 2, 3, 4), commits=commits)
    assert raised.value.kind is kind and session.is_lost
    session.close()


@pytest.mark.parametrize(("commits", "kind"), [(True, ErrorClass.UNKNOWN_OUTCOME), (False, ErrorClass.TIMEOUT)])
def test_a_slow_answer_is_given_up(engine, server, script, commits, kind):
    """The attention may come before or after the commit is on disk; the session goes on."""
    script.procedure("bank.transfer", Hold(), times=1)
    script.procedure("bank.transfer", Rows([Column("abalance", INT)], [(41,)]))
    session = engine.session(1)
    session.prepare("transfer", TRANSFER)
    with pytest.raises(CallFailed) as raised:
        session.call("transfer", (1, 2, 3, 4), commits=commits)
    assert (raised.value.kind, raised.value.code) == (kind, "HYT00")
    assert "attention" in [request.kind for request in server.requests]
    assert "ROLLBACK" in server.requests[-1].text and not session.is_lost
    assert session.call("transfer", (1, 2, 3, 4)) == [(41,)]
    session.close()


def test_a_commit_that_is_cancelled_may_have_been_one(framed, server, script):
    script.sql(r"^COMMIT", Hold())
    script.procedure("order_frame2", Rows([Column("y", INT)], [(6,)]))
    with ThreadPoolExecutor() as pool:
        ended = pool.submit(lambda: transaction_of(framed))
        eventually(lambda: any(request.text.startswith("COMMIT") for request in server.requests))
        framed.cancel()
        error = ended.exception()
    assert isinstance(error, CallFailed) and not framed.is_lost
    assert (error.kind, error.code) == (ErrorClass.UNKNOWN_OUTCOME, "HY008")


def transaction_of(session: MssqlSession) -> None:
    with session.transaction(Isolation.SERIALIZABLE):
        session.call("two", (2, 3))


def test_a_cancel_that_returns_late_leaves_the_rollback_alone(framed, server, script, monkeypatch):
    """The driver cancels whatever runs on the cursor until SQLCancel has returned."""
    script.sql(r"^COMMIT", Hold())
    script.procedure("order_frame2", Rows([Column("y", INT)], [(6,)]))
    with ThreadPoolExecutor() as pool:
        ended = pool.submit(lambda: transaction_of(framed))
        eventually(lambda: any(request.text.startswith("COMMIT") for request in server.requests))
        cursor = framed._under_way
        rolled_back_before = []

        class Slow:
            def cancel(self) -> None:
                cursor.cancel()
                eventually(lambda: "attention" in [request.kind for request in server.requests])
                time.sleep(0.2)  # as long as the rollback could be under way in
                rolled_back_before.extend(text for text in said(server) if text == ROLL_BACK)

        monkeypatch.setattr(framed, "_under_way", Slow())
        framed.cancel()
        error = ended.exception()
    assert rolled_back_before == [] and said(server)[-1] == ROLL_BACK
    assert isinstance(error, CallFailed) and error.kind is ErrorClass.UNKNOWN_OUTCOME and not framed.is_lost


def test_what_the_server_says_it_gave_up_has_not_committed(engine, script):
    script.procedure("bank.transfer", Error(8645, "A timeout occurred while waiting for memory resources."))
    session = engine.session(10)
    session.prepare("transfer", TRANSFER)
    with pytest.raises(CallFailed) as raised:
        session.call("transfer", (1, 2, 3, 4))
    assert raised.value.kind is ErrorClass.TIMEOUT
    session.close()


def test_a_session_that_cannot_roll_back_is_of_no_more_use(framed, script):
    script.procedure("order_frame2", Error(547, "it failed."))
    script.sql(r"\bROLLBACK\b", Error(50001, "no."))
    with pytest.raises(CallFailed, match="it failed"), framed.transaction(Isolation.SERIALIZABLE):
        framed.call("two", (2, 3))
    assert framed.is_lost


def test_what_was_said_is_told_without_where_it_came_through():
    text = f"[40001] {THROUGH}Deadlock [on x]. Rerun. (1205) (SQLExecDirectW)"
    assert sentence(text) == "Deadlock [on x]. Rerun"


def test_a_server_that_goes_away_behind_a_login_is_lost():
    script = Script(databases=["bank"])
    says_it_is(script)
    script.sql("SELECT @@SPID", Cut())
    with answering(script) as server, pytest.raises(CallFailed) as raised:
        engine_at(server).session(10)
    assert raised.value.kind is ErrorClass.CONNECTION_LOST


def test_a_server_that_is_gone_before_it_said_what_it_is_is_lost(engine, monkeypatch):
    def gone(*_: object) -> None:
        raise NoConnection("No connection to here: it is shutting down.")

    monkeypatch.setattr(engine, "query", gone)
    with pytest.raises(CallFailed) as raised:
        engine.session(10)
    assert (raised.value.kind, raised.value.message) == (
        ErrorClass.CONNECTION_LOST, "No connection to here: it is shutting down."
    )  # fmt: skip


def test_a_connection_that_was_closed_before_the_call_is_lost_and_nothing_was_committed(engine):
    session = engine.session(10)
    session.prepare("transfer", TRANSFER)
    session.close()
    with pytest.raises(CallFailed) as raised:
        session.call("transfer", (1, 2, 3, 4))
    assert (raised.value.kind, raised.value.message) == (
        ErrorClass.CONNECTION_LOST, "The cursor's connection has been closed"
    )  # fmt: skip


@pytest.mark.parametrize(
    ("state", "text"),
    [
        ("HY000", "[HY000] [Other][Driver]Unknown error (0) (SQLExecDirectW)"),
        ("01000", "[01000] [FreeTDS]Write to the server failed (20006) (SQLExecDirectW)"),
        (
            "08S01",
            "[08S01] [Microsoft][ODBC Driver 18 for SQL Server]TCP Provider: Error code 0x68 (104) (SQLExecDirectW)",
        ),
    ],
)
def test_a_driver_that_does_not_say_what_became_of_a_commit(state, text):
    assert failed(Exception(state, text), commits=True).kind is ErrorClass.UNKNOWN_OUTCOME
    assert failed(Exception(state, text)).kind is not ErrorClass.UNKNOWN_OUTCOME


def test_what_a_server_refuses_has_an_outcome_whatever_its_state():
    text = f"[HY000] {THROUGH}Violation of a constraint. (2627) (SQLExecDirectW)"
    assert failed(Exception("HY000", text), commits=True).kind is ErrorClass.OTHER


def test_an_error_below_another_is_found():
    text = (
        f"[42000] {THROUGH}The statement has been terminated. (3621) (SQLExecDirectW); "
        f"[42000] {THROUGH}I/O error. (823)"
    )
    assert failed(Exception("42000", text + " (SQLExecDirectW)")).kind is ErrorClass.STORAGE


@pytest.mark.parametrize(
    ("call", "batch"),
    [("{CALL bank.transfer(?, ?)}", "EXEC bank.transfer ?, ?"), ("{call p}", "EXEC p"), ("SELECT 1", "SELECT 1")],
)
def test_calls_for_servers_without_remote_procedures(call, batch):
    assert as_exec(call) == batch
