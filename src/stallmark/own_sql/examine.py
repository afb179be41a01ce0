"""The trial of a workload before its load: each statement is prepared and executed once, and all is rolled back."""

import random
import time
from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from stallmark.engines.base import READ_ONLY, Engine, Isolation, Session
from stallmark.errors import CallFailed, ErrorClass, StallmarkError
from stallmark.own_sql.model import OwnSql, mistakes_in
from stallmark.own_sql.statements import Kind, Statement
from stallmark.own_sql.transaction import OwnTransaction, prepared_statements
from stallmark.transactions.checks import counting_query
from stallmark.transactions.workload import Transaction, Workload, WorkloadContext

TIMEOUT_S = 60.0
MANY_ROWS = 10_000
"""Rows above which a load counts them a few at a time: every user would hold all of them."""
# Conditions are judged after the load. Here the server only compiles them, in the form in which they are judged then:
# SQL Server sees a text when it is executed and not before, and takes less within FROM (…) than by itself.
_NO_ROW = "WHERE 1 = 0"
_TYPES, _TRIAL, _READING_TRIAL, _END = "stallmark types", "stallmark trial", "stallmark reading trial", "stallmark end"
_ENDS = {
    _TYPES: "SELECT name, parameter_types::text[] FROM pg_prepared_statements",
    _TRIAL: "BEGIN",
    _READING_TRIAL: "BEGIN READ ONLY",
    _END: "ROLLBACK",
}


@dataclass(frozen=True)
class TriedStatement:
    """A statement as the server took it. `types` are those of its parameters, None if the server does not say; `rows`
    and `ms` are None for one that a branch, or an earlier result without a row, has left out."""

    name: str
    transaction: str
    line: int
    text: str
    parameters: Sequence[str]
    types: Sequence[str] | None
    rows: int | None
    ms: float | None


def examine(engine: Engine, workload: Workload, users: int = 1, seed: int = 1) -> list[TriedStatement]:
    """Try all transactions of a workload, for so many users. Raise StallmarkError, a sentence, for the first that the
    load could not have."""
    _refuse_by_dialect(workload, engine.dialect)
    context = WorkloadContext({}, seed, engine.read, _post, users=users, dialect=engine.dialect)
    shared = workload.users.share(context)
    session = engine.session(TIMEOUT_S, "stallmark-check")
    try:
        tried = []
        # The view that shows the types of parameters is PostgreSQL's. The trial begins by a prepared text there, since
        # the session's own `begin` has no READ ONLY.
        if engine.dialect == "postgresql":
            for name, sql in _ENDS.items():
                session.prepare(name, sql)
        for kind in workload.transactions:
            assert issubclass(kind, OwnTransaction)
            tried += _try(session, kind, kind(shared), seed)
        for condition in workload.conditions:
            with _naming(f"conditions/{condition.name}.sql, within FROM (…)"):
                name = f"stallmark {condition.name}"
                session.prepare(name, counting_query(condition.sql, _NO_ROW))
                session.call(name, (), commits=False)
        return tried
    finally:
        session.close()


def _post(kind: type[Transaction], inputs: tuple, after_s: float) -> None:
    raise AssertionError("SQL of a user's own posts nothing")


def _refuse_by_dialect(workload: Workload, dialect: str) -> None:
    definition = workload.definition
    model = OwnSql.model_validate(definition)
    for name, transaction in model.transactions.items():
        if transaction.script and dialect != "postgresql":
            raise StallmarkError(
                f"{name}.sql is a script of pgbench, which is of PostgreSQL, and this is SQL Server: write it as a "
                "transaction of a folder (`stallmark new --workload FOLDER`)."
            )
        if not transaction.script:
            for mistake in mistakes_in(model, transaction, dialect):
                raise StallmarkError(f"{name}.sql, {mistake}.")
    # A text that only reads in one dialect may write in the other, in which a line can begin a statement.
    for mistake in model.query_mistakes((dialect,)):
        raise StallmarkError(f"{mistake[:1].upper()}{mistake[1:]}.")


def _try(session: Session, kind: type[OwnTransaction], transaction: OwnTransaction, seed: int) -> list[TriedStatement]:
    statements = prepared_statements(kind, session.dialect)
    for name, statement in statements.items():
        with _naming(_place(kind, statement), kind):
            session.prepare(name, statement.sql)
    types = _types(session)
    trial = _TrialSession(session, statements, transaction.read_results)
    is_postgres = session.dialect == "postgresql"
    if is_postgres:
        # READ ONLY reveals a function that writes behind a SELECT, which the words of a statement do not show.
        session.call(_READING_TRIAL if kind.reads_only else _TRIAL, (), commits=False)
    else:
        session.begin(Isolation.READ_COMMITTED)
    try:
        transaction.execute(trial, transaction.inputs(random.Random(seed)))
    except CallFailed as error:
        if not trial.failure:  # the transaction's own refusal, which names the file
            raise StallmarkError(f"{error.message.rstrip('.')}.") from None
        # The transaction puts file and line before an error, and the sentence below has them already: it takes the
        # server's own words from the trial.
        failed = statements.get(trial.current)
        raise _refused(_place(kind, failed), trial.failure, kind, failed) from None
    finally:
        if not session.is_lost:
            if is_postgres:
                session.call(_END, (), commits=False)
            else:
                session.roll_back()
    tried = []
    for name, statement in statements.items():
        rows, ms = trial.done.get(name, (None, None))
        names, text = statement.names, statement.brief
        tried.append(TriedStatement(name, kind.name, statement.line, text, names, types.get(name), rows, ms))
    return tried


@contextmanager
def _naming(place: str, kind: type[OwnTransaction] | None = None):
    try:
        yield
    except CallFailed as error:
        raise _refused(place, error, kind) from None


def _place(kind: type[OwnTransaction], statement: Statement | None) -> str:
    return f"{kind.name}.sql" + (f", line {statement.line}" if statement else "")


def _refused(
    where: str, error: CallFailed, kind: type[OwnTransaction] | None, statement: Statement | None = None
) -> StallmarkError:
    if kind and error.code == READ_ONLY and statement and statement.kind is not Kind.READ:
        return StallmarkError(f"{where}: it writes: leave out `reads_only: true` below {kind.name}.")
    if kind and error.code == READ_ONLY:
        return StallmarkError(
            f"{where}: it writes, and its words do not show that: write `reads_only: false` below {kind.name}."
        )
    if error.kind is ErrorClass.TIMEOUT:
        return StallmarkError(f"{where}: it takes longer than {TIMEOUT_S:.0f} s: make it shorter, or leave it out.")
    code = f" ({error.code})" if error.code else ""
    return StallmarkError(f"{where}: the server does not take it: {error.message.rstrip('.')}{code}.")


def _types(session: Session) -> dict[str, list[str]]:
    """Return the types of parameters by the name of the statement; nothing of a server that does not tell them."""
    if session.dialect != "postgresql":
        return {}
    rows = session.call(_TYPES, ())
    return {name: text.strip("{}").replace('"', "").split(",") if text != "{}" else [] for name, text in rows}


class _TrialSession(Session):
    """A session in one transaction that its owner rolls back: what would begin or end one does nothing."""

    def __init__(self, session: Session, statements: dict[str, Statement], read_results: set[str]):
        self._session = session
        self._read_results = read_results
        self._statements = statements
        self.dialect = session.dialect
        self.server_pid = session.server_pid
        self.current = ""
        self.failure: CallFailed | None = None
        """The failure as the server said it."""
        self.done: dict[str, tuple[int, float]] = {}

    @property
    def is_lost(self) -> bool:  # type: ignore[override]
        return self._session.is_lost

    def call(
        self, name: str, parameters: Sequence[Any], *, commits: bool = True, last: bool = False
    ) -> Sequence[tuple]:
        statement = self._statements.get(name)
        # A name that is not a user's statement is the transaction's own BEGIN or COMMIT. A COMMIT would end the trial
        # and keep its changes.
        if statement is None or statement.begins or statement.ends:
            return []
        self.current = name
        began = time.monotonic()
        try:
            if name in self._read_results:
                rows = self._session.call(name, parameters, commits=False)
            else:
                # There may be millions of rows, and the trial needs only their number: a `range` has that length and no
                # memory.
                rows = range(self._session.count(name, parameters, commits=False))  # type: ignore[assignment]
        except CallFailed as error:
            self.failure = error
            raise
        self.done[name] = len(rows), round((time.monotonic() - began) * 1000, 3)
        return rows

    def prepare(self, name: str, sql: str) -> None:
        raise AssertionError("statements are prepared before their trial")

    def begin(self, isolation: Isolation) -> None:
        return

    def commit(self) -> None:
        return

    def roll_back(self) -> None:
        return

    def cancel(self) -> None:
        return

    def close(self) -> None:
        return
