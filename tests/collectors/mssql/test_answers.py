"""No answer of a server ends a run as a fault of ours: what cannot be read is a sentence, and the rest is kept."""

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.mssql_server import Server, rows
from support.scripted_views import ANSWERS, answer_all, answered, everything, words_of
from support.tds.answers import Count, Error, Info, Rows

from stallmark.collectors import ON_REQUEST, REGISTRY
from stallmark.collectors.mssql.blocking import Deadlocks
from stallmark.collectors.mssql.collector import MssqlCollector
from stallmark.collectors.mssql.statements import Statements
from stallmark.errors import StallmarkError
from stallmark.record.rows import batch_of
from stallmark.record.schema import SAMPLED

REQUESTED = [kind for kinds in ON_REQUEST["mssql"].values() for kind in kinds]
KINDS = [kind for kind in (*REGISTRY["mssql"], *REQUESTED) if kind in ANSWERS]


def test_every_collector_of_sql_server_is_tried() -> None:
    assert {kind for kind in (*REGISTRY["mssql"], *REQUESTED) if issubclass(kind, MssqlCollector)} == set(KINDS)


def reversed_columns(answer: Rows) -> Rows:
    return Rows(answer.columns[::-1], [tuple(row)[::-1] for row in answer.rows])


def without(answer: Rows, *places: int) -> Rows:
    """The rows with NULL in some columns."""
    rows = [tuple(None if i in places else value for i, value in enumerate(row)) for row in answer.rows]
    return Rows(answer.columns, rows)


def nothing_but_null(answer: Rows) -> Rows:
    return without(answer, *range(len(answer.columns)))


ODD: dict[str, Callable[[Rows], Sequence[Any]]] = {
    "no result": lambda answer: (),
    "a count alone": lambda answer: (Count(3),),
    "a message alone": lambda answer: (Info("hello"),),
    "no rows": lambda answer: (Rows(answer.columns, []),),
    "a count before the rows": lambda answer: (Count(0), answer),
    "two results": lambda answer: (answer, answer),
    "other order of columns": lambda answer: (reversed_columns(answer),),
    "nothing but NULL": lambda answer: (nothing_but_null(answer),),
    "an error in the middle": lambda answer: (answer, Error(8134, "Divide by zero error encountered.")),
    "an error alone": lambda answer: (Error(8134, "Divide by zero error encountered."),),
}


def tried(server: Server, kind: type[MssqlCollector], answer: Sequence[Any]) -> list[str]:
    """Ask all of a collector; return what it says where it cannot."""
    answer_all(server)
    words = words_of(kind)
    ours = list(server.script._rules)
    server.script._rules.clear()
    server.script.sql(words, *answer)
    server.script._rules.extend(ours)
    found = []
    collector = kind(server.engine())
    for ask in (collector.unavailable, collector.limited, lambda: rows_of(collector), collector.files):
        try:
            ask()
        except StallmarkError as error:
            found.append(str(error))
    return found


def rows_of(collector: MssqlCollector) -> pa.RecordBatch:
    call = {"t": 0.0, "took_s": 0.0}
    return batch_of([call | row for row in everything(collector)], pa.schema([*SAMPLED, *collector.columns]))


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("kind", KINDS)
def test_an_odd_answer_is_a_sentence_or_rows(server: Server, kind: type[MssqlCollector], odd: str) -> None:
    for sentence in tried(server, kind, ODD[odd](ANSWERS[kind])):
        assert sentence and "Error (" not in sentence


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_null_in_any_column_is_a_sentence_or_rows(
    server: Server, kind: type[MssqlCollector], data: st.DataObject
) -> None:
    columns = range(len(ANSWERS[kind].columns))
    places = data.draw(st.sets(st.sampled_from(columns), min_size=1))
    for sentence in tried(server, kind, [without(ANSWERS[kind], *places)]):
        assert sentence and "Error (" not in sentence


def test_a_statement_of_an_encrypted_procedure_keeps_its_counts(server: Server) -> None:
    place = [column.name for column in ANSWERS[Statements].columns].index("text")
    [row, *_] = everything(answered(server, Statements, without(ANSWERS[Statements], place)))
    assert row["text"] == "encrypted" and row["executions"]


@pytest.mark.parametrize(("application", "resources"), [("stallmark-user", ["unreadable"]), ("SSMS", [])])
def test_a_deadlock_that_cannot_be_read_is_counted_if_it_is_ours(
    server: Server, application: str, resources: list[str]
) -> None:
    """indexname="<Name of Missing Index, sysname,>": a template of SSMS that somebody filled in by half."""
    event = f'<event><deadlock clientapp="{application}"><keylock indexname="<Name, sysname,>"/></deadlock></event>'
    collector = answered(server, Deadlocks, rows(["happened", "event"], ("2026-03-02T09:00:01.000", event)))
    assert [row["resources"] for row in everything(collector)] == resources
