"""No answer of a server ends a run as a fault of ours: what cannot be read is a sentence, and the rest is kept.

Each statement of each collector gets answers of its own, while the others get the usual ones: some that are odd, and
generated ones, a few of them in the suite and 1,000 in `make explore`.
"""

import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support import published_waits as published
from support.mssql_server import TYPES, Server, rows
from support.scripted_views import (
    ANSWERS,
    BESIDE,
    COMMITTED,
    HIDDEN_REPLICAS,
    MEMORY,
    SETTLED,
    answer_all,
    answered,
    everything,
    words_of,
)
from support.tds.answers import Count, Error, Info, Rows, Step

from stallmark.collectors import ON_REQUEST, REGISTRY
from stallmark.collectors.mssql import MssqlCollector
from stallmark.collectors.mssql.counters import Replicas
from stallmark.collectors.mssql.moments import BufferPool, PendingIO
from stallmark.collectors.mssql.statements import Statements
from stallmark.collectors.mssql.waits import Deadlocks
from stallmark.errors import CallFailed, StallmarkError
from stallmark.record.schema import SAMPLED
from stallmark.record.writer import batch_of

pytestmark = pytest.mark.thorough

REQUESTED = [kind for kinds in ON_REQUEST["mssql"].values() for kind in kinds]
KINDS = [kind for kind in (*REGISTRY["mssql"], *REQUESTED) if kind in ANSWERS]
LOGIN = "SELECT QUOTENAME"
STATEMENTS = [(kind, words) for kind in KINDS for words in (words_of(kind), *BESIDE.get(kind, ()))]
STATEMENTS.append((PendingIO, LOGIN))
REFUSED = Error(300, published.DENIED_2022, severity=14)
OTHERWISE: dict[tuple[type[MssqlCollector], str], tuple[str, Step]] = {
    (Replicas, HIDDEN_REPLICAS): (words_of(Replicas), rows(Replicas.columns.names)),
    (PendingIO, LOGIN): (words_of(PendingIO), REFUSED),
    (BufferPool, COMMITTED): (MEMORY, rows(["name", "value"])),
}
"""The statement by whose answer the collector comes to ask this one, and that answer."""
OF_THE_ENGINE = ("ProductVersion", "CustomerDbRootRole", "SET LOCK_TIMEOUT")
EXAMPLES = 1000 if settings.get_current_profile_name() == "explore" else 5


def test_every_collector_of_sql_server_is_tried() -> None:
    assert {kind for kind in (*REGISTRY["mssql"], *REQUESTED) if issubclass(kind, MssqlCollector)} == set(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_every_statement_of_a_collector_is_tried(server: Server, kind: type[MssqlCollector]) -> None:
    answer_all(server)
    ask(kind(server.engine()))
    known = re.compile("|".join([*(words for each, words in STATEMENTS if each is kind), *OF_THE_ENGINE]), re.I)
    assert not [text for request in server.responder.requests if (text := request.text) and not known.search(text)]


def odd_answers(usual: Rows) -> list[list[Step]]:
    failed = Error(8134, "Divide by zero error encountered.")
    nothing_but_null = Rows(usual.columns, [(None,) * len(usual.columns)] * len([*usual.rows]))
    other_order = Rows(usual.columns[::-1], [tuple(row)[::-1] for row in usual.rows])
    no_rows = Rows(usual.columns, [])
    return [
        [], [Count(3)], [Info("hello")], [no_rows], [Count(0), usual], [usual, usual], [other_order],
        [nothing_but_null], [usual, failed], [failed], [REFUSED],
    ]  # fmt: skip


def usual(kind: type[MssqlCollector], words: str) -> Rows:
    if words == words_of(kind):
        return ANSWERS[kind]
    tables = [step for step in SETTLED.get(words, ()) if isinstance(step, Rows)]
    return tables[0] if tables else rows(["name"], ["[watcher]"])


class Scripted:
    """A server whose answer to one statement changes."""

    def __init__(self, server: Server, kind: type[MssqlCollector], words: str):
        answer_all(server)
        if (kind, words) in OTHERWISE:
            self._first(server, *OTHERWISE[kind, words])
        self.steps: Sequence[Step] = ()
        self.tried = 0
        self._first(server, words, lambda request: self.steps)
        self._engine = server.engine()
        self._kind = kind

    def collector(self) -> MssqlCollector:
        return self._kind(self._engine)

    @staticmethod
    def _first(server: Server, words: str, answer: Any) -> None:
        server.script.sql(words, answer)
        server.script._rules.insert(0, server.script._rules.pop())


def ask(collector: MssqlCollector) -> None:
    """Ask all of a collector, as a run does: what it tells beforehand is nothing or a sentence."""
    for told in (collector.unavailable(), collector.limitation()):
        assert told is None or (told[0].isupper() and "Error (" not in told)
    with suppress(StallmarkError):
        read(collector)
    collector.files()


def read(collector: MssqlCollector) -> pa.RecordBatch:
    call = {"t": 0.0, "took_s": 0.0}
    try:
        rows = everything(collector)
    finally:
        with suppress(CallFailed):  # which the sampler notes
            collector.close()
    return batch_of([call | row for row in rows], pa.schema([*SAMPLED, *collector.columns]))


def cells(usual: Rows, place: int) -> st.SearchStrategy[Any]:
    """Values of a column: usual ones, NULL, and whatever else its type can have."""
    known = [row[place] for row in usual.rows]
    texts = [text for text in known if isinstance(text, str)]
    kind = next(python for python, type in TYPES.items() if type is usual.columns[place].type or python is str)
    any_value: dict[type, st.SearchStrategy[Any]] = {
        bool: st.booleans(),
        int: st.integers(-(2**20), 2**20),
        float: st.floats(-1e9, 1e9),
        str: st.text(max_size=20)
        | st.sampled_from(texts or [""]).flatmap(lambda text: st.integers(0, len(text)).map(lambda end: text[:end])),
    }
    return st.sampled_from([*known, None]) | st.none() | any_value[kind]


@st.composite
def tables(draw: st.DrawFn, usual: Rows) -> Rows:
    """Rows of the usual columns in some order."""
    rows = draw(st.lists(st.tuples(*(cells(usual, place) for place in range(len(usual.columns)))), max_size=3))
    order = draw(st.permutations(range(len(usual.columns))))
    return Rows([usual.columns[place] for place in order], [tuple(row[place] for place in order) for row in rows])


def answers(usual: Rows) -> st.SearchStrategy[list[Step]]:
    errors = st.sampled_from([Error(8134, "Divide by zero error encountered."), REFUSED, Error(1205, "deadlock", 13)])
    return st.lists(tables(usual) | errors | st.builds(Count, st.integers(0, 9)) | st.just(Info("hello")), max_size=4)


@pytest.mark.hypothesis
@pytest.mark.parametrize(("kind", "words"), STATEMENTS)
def test_no_answer_loses_a_collector(server: Server, kind: type[MssqlCollector], words: str) -> None:
    """A sentence comes, or rows that fit the record; and the usual answers after it are read as ever."""
    scripted = Scripted(server, kind, words)
    odd = odd_answers(usual(kind, words))
    with scripted.collector().engine.few_logins():

        @settings(max_examples=EXAMPLES)
        @given(steps=answers(usual(kind, words)))
        def test(steps: list[Step]) -> None:
            scripted.steps = steps
            scripted.tried += 1
            collector = scripted.collector()
            ask(collector)
            scripted.steps = [usual(kind, words)]
            if (kind, words) not in OTHERWISE:
                read(collector)

        for steps in odd:
            test = example(steps=steps)(test)
        test()
    assert scripted.tried >= EXAMPLES + len(odd)


def test_a_statement_of_an_encrypted_procedure_keeps_its_counts(server: Server) -> None:
    place = [column.name for column in ANSWERS[Statements].columns].index("text")
    encrypted = [(*row[:place], None, *row[place + 1 :]) for row in ANSWERS[Statements].rows]
    [row, *_] = everything(answered(server, Statements, Rows(ANSWERS[Statements].columns, encrypted)))
    assert row["text"] == "encrypted" and row["executions"]


@pytest.mark.parametrize(("application", "resources"), [("stallmark-user", ["unreadable"]), ("SSMS", [])])
def test_a_deadlock_that_cannot_be_read_is_counted_if_it_is_ours(
    server: Server, application: str, resources: list[str]
) -> None:
    """indexname="<Name of Missing Index, sysname,>": a template of SSMS that somebody filled in by half."""
    event = f'<event><deadlock clientapp="{application}"><keylock indexname="<Name, sysname,>"/></deadlock></event>'
    collector = answered(server, Deadlocks, rows(["happened", "event"], ("2026-03-02T09:00:01.000", event)))
    assert [row["resources"] for row in everything(collector)] == resources


def test_a_login_that_the_server_does_not_name_is_told_its_grant(server: Server) -> None:
    scripted = Scripted(server, PendingIO, LOGIN)
    scripted.steps = [rows(["name"], [None])]
    assert str(scripted.collector().unavailable()).endswith(
        "run USE master; GRANT VIEW SERVER PERFORMANCE STATE TO it;"
    )
