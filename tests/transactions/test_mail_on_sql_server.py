"""Mail through the real ODBC driver, to a server that answers what a test scripts: one procedure call for each
transaction, in a batch that begins and commits where it writes, with bodies of any size."""

import random
import re
from datetime import datetime

import pytest
from support.mssql_server import engine, says_it_is, script, server
from support.tds.answers import Error, Rows
from support.tds.datatypes import BIGINT, BIT, INT, nvarchar
from support.tds.responder import Responder
from support.tds.script import Script
from support.tds.tokens import Column

from stallmark.engines.mssql.engine import MssqlEngine
from stallmark.errors import CallFailed, ErrorClass
from stallmark.loaders.mail import LOADER
from stallmark.transactions.mail import (
    WORKLOAD,
    BackgroundScan,
    DeleteMessage,
    DeliverMessage,
    Delivery,
    ListFolder,
    MoveMessage,
    ReadMessage,
    UpdateMessage,
    open_context,
)
from stallmark.transactions.workload import Outcome, WorkloadContext

__all__ = ["engine", "script", "server"]

NUMBER = [Column("message_id", INT)]
BODY = "b" * 29_999 + "."


class Clock:
    def now(self) -> datetime:
        return datetime(2026, 11, 23, 10, 0, 0)


@pytest.fixture(scope="module")
def context():
    return open_context(WorkloadContext(LOADER.scale({}), 1, lambda _: [], lambda *_: None), Clock())


@pytest.fixture
def session(engine: MssqlEngine, script: Script):
    columns = [Column("type_name", nvarchar(128)), *(Column(name, INT) for name in ("bytes", "digits", "decimals"))]
    kinds = {"integer": ("int", 4, 10, 0), "smallint": ("smallint", 2, 5, 0), "bigint": ("bigint", 8, 19, 0),
             "datetime2(3)": ("datetime2", 7, 23, 3), "varchar(60)": ("varchar", 60, 0, 0),
             "varchar(70)": ("varchar", 70, 0, 0), "varchar(max)": ("varchar", -1, 0, 0)}  # fmt: skip
    for name, declared in re.findall(r"(?s)CREATE PROCEDURE (mail\.\w+)(.*?)\bAS\b", WORKLOAD.procedures("mssql")):
        rows = [kinds[kind] for kind in re.findall(r"@\w+ ([\w()]+)", declared)]
        script.sql(rf"sys\.parameters[^;]*'{name}'", Rows(columns, rows))
    says_it_is(script)
    script.sql("@@SPID", Rows([Column("", INT)], [(51,)]))
    script.sql("ROLLBACK TRANSACTION")
    session = engine.session(10)
    WORKLOAD.prepare(session, WORKLOAD.transactions)
    yield session
    session.close()


@pytest.mark.parametrize(
    ("kind", "inputs", "frame", "sent"),
    [
        (DeliverMessage, Delivery(7, 1, "a@example.com", "Hello.", BODY), "deliver_message",
         [7, 1, "2026-11-23T10:00:00.000", "a@example.com", "Hello.", BODY]),
        (UpdateMessage, (7, 500_000, None), "update_message_mark", [7, 500_000]),
        (UpdateMessage, (7, 500_000, BODY), "update_message_body", [7, 500_000, BODY]),
        (DeleteMessage, (7, 500_000), "delete_message", [7, 500_000]),
        (MoveMessage, (7, 500_000, 3), "move_message", [7, 500_000, 3]),
    ],
    ids=["deliver", "mark", "replace", "delete", "move"],
)  # fmt: skip
def test_what_writes_is_one_transaction_in_one_batch(
    session, server: Responder, script: Script, context, kind, inputs, frame: str, sent: list
) -> None:
    script.procedure(f"mail.{frame}", Rows(NUMBER, [(1,)]))
    transaction = kind(context)
    for _ in range(2):
        assert transaction.execute(session, inputs) is Outcome.COMMITTED
        request = server.requests[-1]
        assert request.parameters[-len(sent) :] and [each.value for each in request.parameters[-len(sent) :]] == sent
        assert re.search(
            r"(?s)XACT_ABORT ON;.*READ COMMITTED;\s*BEGIN TRANSACTION;\s*EXEC mail\.\w+ .*COMMIT", request.text
        )
    assert [request.called for request in server.requests].count(request.called) >= 2


def test_what_reads_is_a_call(session, server: Responder, script: Script, context) -> None:
    columns = [Column("me_id", INT), Column("me_read", BIT), Column("me_bytes", INT), Column("bo_text", nvarchar(4000))]
    script.procedure("mail.read_message", Rows(columns, [(5, True, 4, "one.")]))
    assert ReadMessage(context).execute(session, (7, 500_000)) is Outcome.COMMITTED
    assert [each.value for each in server.requests[-1].parameters[-2:]] == [7, 500_000]
    script.procedure("mail.list_folder", Rows(columns[:3], [(5, True, 4)]))
    assert ListFolder(context).execute(session, (7, 1)) is Outcome.COMMITTED
    assert [each.value for each in server.requests[-1].parameters[-3:]] == [7, 1, 50]
    scanned = [Column("last_id", INT), Column("bytes", BIGINT), Column("checksum", BIGINT)]
    script.procedure("mail.background_scan", Rows(scanned, [(9, 262_145, 77)]))
    scan = BackgroundScan(context)
    assert scan.execute(session, scan.inputs(random.Random())) is Outcome.COMMITTED
    assert [each.value for each in server.requests[-1].parameters[-3:]] == [1, 1, 262_144]
    scan.execute(session, ())
    assert [each.value for each in server.requests[-1].parameters[-3:]] == [1, 10, 262_143]


def test_a_delete_that_takes_none_is_a_rollback(session, script: Script, context) -> None:
    script.procedure("mail.delete_message", Rows([Column("deleted", INT)], [(0,)]))
    assert DeleteMessage(context).execute(session, (7, 1)) is Outcome.ROLLED_BACK


def test_a_deadlock_is_tried_again_by_whoever_executes_it(session, script: Script, context) -> None:
    script.procedure("mail.move_message", Error(1205, "Transaction was deadlocked.", severity=13), times=1)
    script.procedure("mail.move_message", Rows(NUMBER, [(1,)]))
    move = MoveMessage(context)
    with pytest.raises(CallFailed) as raised:
        move.execute(session, (7, 1, 3))
    assert raised.value.kind is ErrorClass.DEADLOCK
    assert move.execute(session, (7, 1, 3)) is Outcome.COMMITTED
