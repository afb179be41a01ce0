"""Each executed statement of SQL of a user's own is reported: its place, its rows or its failure, and its time."""

import random
import time
from collections.abc import Sequence

import pytest

from stallmark.engines.base import Head, Session
from stallmark.errors import CallFailed, ErrorClass
from stallmark.own_sql.folder import read_definition
from stallmark.transactions import define
from stallmark.transactions.workload import FAILED, WorkloadContext


class Answering(Session):
    """Answers each statement with so many rows; fails where that is None."""

    dialect, is_lost = "postgresql", False

    def __init__(self, **rows: int | None):
        self._rows = {name.replace("_", " "): count for name, count in rows.items()}

    def call(self, name: str, parameters: Sequence, *, commits: bool = True, last: bool = False) -> Sequence[tuple]:
        return []  # BEGIN and its kin

    def call_head(self, name: str, parameters: Sequence, *, commits: bool = True) -> Head:
        count = self._rows[name]
        if count is None:
            raise CallFailed(ErrorClass.OTHER, "22012", "division by zero")
        return count, [(7,)] * count


def executed(session: Session, **transactions) -> list[tuple[str, int]]:
    """Execute the last of some transactions; return the name and the rows of each reported statement."""
    workload = define(read_definition({"name": "own", "transactions": transactions}))
    reports: list[Sequence[int]] = []
    context = WorkloadContext({}, 1, lambda text: [], lambda *_: None, report_statements=reports.append)
    transaction = workload.transactions[-1](workload.users.share(context))
    before = time.monotonic_ns()
    try:
        transaction.execute(session, transaction.inputs(random.Random(1)))
    except CallFailed:
        pass
    [reported] = reports
    statements = list(zip(*(reported[part::4] for part in range(4)), strict=True))
    times = [before, *(moment for _, _, *moments in statements for moment in moments), time.monotonic_ns()]
    assert times == sorted(times)
    names = [statement.name for statement in workload.statements(session.dialect)]
    return [(names[place], rows) for place, rows, *_ in statements]


OTHER = {"sql": "SELECT 1; SELECT 2"}


@pytest.mark.parametrize("one_transaction", [True, False])
def test_statements_up_to_a_failure(one_transaction):
    look = {"sql": "SELECT 1; SELECT 2; SELECT 3", "one_transaction": one_transaction}
    session = Answering(look_1=3, look_2=None)
    assert executed(session, other=OTHER, look=look) == [("look 1", 3), ("look 2", FAILED)]


def test_a_statement_alone():
    assert executed(Answering(look_1=2), other=OTHER, look={"sql": "SELECT 1"}) == [("look 1", 2)]


def test_statements_of_a_script_are_numbered_without_its_commands():
    script = "\\set a 1\nSELECT :a;\n\\set b 2\n\\if :b = 1\nSELECT 5;\n\\endif\nSELECT :b;\n"
    given = {"sql": script, "script": "pgbench"}
    assert executed(Answering(look_1=1, look_3=4), other=OTHER, look=given) == [("look 1", 1), ("look 3", 4)]


def test_statements_have_their_line_and_their_text_without_comments():
    sql = "-- why\nSELECT a, /* b */\n  'two  -- words'\nFROM t;\nUPDATE t SET a = :a"
    parameters = {"a": {"from": 1, "to": 2}}
    workload = define(
        read_definition({"name": "own", "transactions": {"look": {"sql": sql, "parameters": parameters}}})
    )
    facts = [(fact.line, fact.text) for fact in workload.statements("postgresql")]
    assert facts == [(2, "SELECT a, 'two -- words' FROM t"), (5, "UPDATE t SET a = :a")]
    assert workload.statements("mssql")[1].sql == "UPDATE t SET a = ?"
