"""The trial of a workload before its load: each statement is prepared and executed, and all is rolled back."""

import json
import random
import re
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from itertools import islice, zip_longest
from operator import itemgetter
from typing import Any

from stallmark.engines.base import READ_ONLY, Engine, Head, Isolation, Session
from stallmark.errors import CallFailed, ErrorClass, StallmarkError
from stallmark.own_sql.model import OwnSql, mistakes_in
from stallmark.own_sql.parameter_sources import OpenedSource, Place, Row
from stallmark.own_sql.statements import Kind, Statement
from stallmark.own_sql.transaction import OwnStatements, OwnTransaction, prepared_statements
from stallmark.redact import HIDDEN, sql_without_secrets, without_values
from stallmark.transactions.checks import counting_query
from stallmark.transactions.workload import Transaction, Workload, WorkloadContext

# Values of sources that a server does not take as parameters. PostgreSQL reports the types of parameters, by which it
# judges all values of a source at once. SQL Server converts each value as it executes a statement: so a transaction is
# tried with rows of each form that its sources have.

_CAST = "SELECT count(value::{type}) FROM json_array_elements_text($1::json) AS value"


class Misfits:
    """The search for misfits by the types that a server reports. A column is judged once for each type."""

    def __init__(self, session: Session):
        self._session = session
        self._judged: set[tuple[int, int, str]] = set()

    def refuse(
        self,
        place: str,
        types: Mapping[str, str],
        sources: Sequence[tuple[Sequence[str], OpenedSource]],
        secrets: Collection[str],
    ) -> None:
        """Raise StallmarkError for the first value of a source that is not of its parameter's type. `types` are those
        of the statement in `place`, by parameter; the message has no value of `secrets`."""
        for names, source in sources:
            for column, name in enumerate(names):
                if name in types and (key := (id(source), column, types[name])) not in self._judged:
                    self._judged.add(key)
                    self._refuse_column(place, name, types[name], source, column, is_secret=name in secrets)

    def _refuse_column(
        self, place: str, name: str, type_name: str, source: OpenedSource, column: int, *, is_secret: bool
    ) -> None:
        texts = [None if row[column] is None else str(row[column]) for row in source.rows]
        if misfit := self._find(type_name, list(dict.fromkeys(texts))):
            value, error = misfit
            row = _row_in_words(source.given, texts.index(value) + 1)
            shown = HIDDEN if is_secret else repr(value)
            reason = without_values(error.message, [value] if is_secret else ())
            raise StallmarkError(
                f"{place}: :{name} is of type {type_name}, which does not take {shown} {row}: "
                f"{reason.rstrip('.')} ({error.code})."
            )

    def _find(self, type_name: str, values: list[str | None]) -> tuple[str | None, CallFailed] | None:
        """Return the first value that a type does not take, with the server's error, or None if it takes all."""
        # Without a name, because a statement of that name may be prepared already.
        self._session.prepare("", _CAST.format(type=type_name))
        if (error := self._error(values)) is None:
            return None
        while len(values) > 1:
            half = len(values) // 2
            first_error = self._error(values[:half])
            values = values[:half] if first_error else values[half:]
        return values[0], self._error(values) or error

    def _error(self, values: Sequence[str | None]) -> CallFailed | None:
        try:
            self._session.call("", (json.dumps(values),))
        except CallFailed as error:
            # Types have codes of their own for a wrong value: a syntax error of tsquery, no such table of regclass.
            if error.kind is ErrorClass.OTHER:
                return error
            raise
        return None


def _row_in_words(source: Mapping[str, Any], number: int) -> str:
    if "file" in source:
        return f"in row {number:,} of {source['file']}"
    if "values" in source:
        return f"in place {number:,} of its values"
    return "of its query" if "query" in source else "of its source"


def rows_of_each_form(rows: Sequence[Row]) -> Iterator[Row]:
    """Yield the rows with the longest, smallest and largest value of a column, and those in which it has a form of
    value for the first time."""
    for column in range(len(rows[0]) if rows else 0):
        yield max(rows, key=lambda row, column=column: len(str(row[column])))  # type: ignore[misc]
        if numbers := list(_numbers(rows, column)):
            yield min(numbers, key=itemgetter(0))[1]
            yield max(numbers, key=itemgetter(0))[1]
    seen: set[Any] = set()
    for row in rows:
        forms = {(column, _form(value)) for column, value in enumerate(row)}
        if not forms <= seen:
            seen |= forms
            yield row


def _numbers(rows: Sequence[Row], column: int) -> Iterator[tuple[float, Row]]:
    for row in rows:
        with suppress(TypeError, ValueError):
            yield float(row[column]), row


def _form(value: Any) -> tuple[str, str]:
    """Return the type of a value, and of a text its characters by kind: digits as 9, letters as a."""
    if not isinstance(value, str):
        return type(value).__name__, ""
    return "str", re.sub(r"[^\W\d_]+", "a", re.sub(r"\d+", "9", value))


# The trial of all transactions and conditions.

TIMEOUT_S = 60.0
CONDITION_S = 2.0
"""Longest trial of a condition, which may read all of a large table."""
MOST_ROWS_TRIED = 100
"""Maximum number of source rows to try if the server does not report types of parameters."""
ROWS_TRIED_S = 10.0
"""Maximum time for trying them; one execution may take longer."""
_TYPES, _TRIAL, _READING_TRIAL, _END = "stallmark types", "stallmark trial", "stallmark reading trial", "stallmark end"
_SAVE, _BACK = "stallmark save", "stallmark back"
_POSTGRES = {
    _TYPES: "SELECT name, array_to_json(parameter_types::text[]) FROM pg_prepared_statements",
    _TRIAL: "BEGIN",
    _READING_TRIAL: "BEGIN READ ONLY",
    _END: "ROLLBACK",
    _SAVE: "SAVEPOINT stallmark",
    _BACK: "ROLLBACK TO SAVEPOINT stallmark",
}
_SYNTAX = "42601"
"""PostgreSQL's error of syntax."""
_SECOND = re.compile(r"\n\s*(?:SELECT|INSERT|UPDATE|DELETE|MERGE|WITH|CALL)\b", re.IGNORECASE)
_COMMITS = "2D000"
"""PostgreSQL's error of a procedure that commits or rolls back within a transaction of its caller."""
_ENDS_OF_CALLER = ("266", "3902", "3903")
"""SQL Server's errors of a procedure that ends a transaction which it has not begun."""


@dataclass(frozen=True)
class TriedStatement:
    """A statement as the server took it. `types` are those of its parameters, or None if the server does not report
    them. `rows` and `ms` are None for a statement that was not executed: a branch or an earlier result without a row
    left it out, or it `commits` by itself."""

    name: str
    transaction: str
    line: int
    text: str
    parameters: Sequence[str]
    types: Sequence[str] | None
    rows: int | None
    ms: float | None
    commits: bool = False


def examine(engine: Engine, workload: Workload, users: int = 1, seed: int = 1) -> list[TriedStatement]:
    """Try all transactions of a workload, for so many users. Raise StallmarkError, a sentence, for the first that the
    load could not have."""
    _refuse_by_dialect(workload, engine.dialect)
    context = WorkloadContext({}, seed, engine.read, _post, users=users, dialect=engine.dialect)
    shared = workload.users.share(context)
    tried = []
    with closing(engine.session(TIMEOUT_S, "stallmark-check")) as session:
        # The view that shows the types of parameters is PostgreSQL's. The trial begins by a prepared text there, since
        # the session's own `begin` has no READ ONLY.
        if engine.dialect == "postgresql":
            for name, sql in _POSTGRES.items():
                session.prepare(name, sql)
        misfits = Misfits(session)
        for kind in workload.transactions:
            assert issubclass(kind, OwnTransaction)
            tried += _try(session, kind, kind(shared), seed, misfits)
    _try_conditions(engine, workload)
    return tried


def _try_conditions(engine: Engine, workload: Workload) -> None:
    """Execute each condition for a moment, in the form in which it is judged after the load: within FROM (…) SQL Server
    takes less than by itself."""
    if not workload.conditions:
        return
    with closing(engine.session(CONDITION_S, "stallmark-check")) as session:
        session.refuse_writes()
        for condition in workload.conditions:
            name = f"stallmark {condition.name}"
            try:
                session.prepare(name, counting_query(condition.sql))
                session.count(name, (), commits=False)
            except CallFailed as error:
                if error.kind is not ErrorClass.TIMEOUT:
                    within = "" if error.code == READ_ONLY else ", within FROM (…)"
                    raise _refused(f"conditions/{condition.name}.sql{within}", error, None) from None


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


def _try(
    session: Session, kind: type[OwnTransaction], transaction: OwnTransaction, seed: int, misfits: Misfits
) -> list[TriedStatement]:
    statements = prepared_statements(kind, session.dialect)
    for name, statement in statements.items():
        with _naming(_place(kind, statement), kind, statement):
            session.prepare(name, statement.sql)
    types = _types(session)
    if isinstance(transaction, OwnStatements):
        for name, statement in statements.items():
            by_name = dict(zip(statement.names, types.get(name, ()), strict=False))
            with _naming(place := _place(kind, statement), kind):
                misfits.refuse(place, by_name, transaction.sources, kind.secrets)
    trial = _TrialSession(session, statements, kind.secrets)
    _execute(trial, transaction, transaction.inputs(random.Random(seed)))
    if isinstance(transaction, OwnStatements) and session.dialect != "postgresql":
        _try_further_rows(_TrialSession(session, statements, kind.secrets), transaction)
    tried = []
    for name, statement in statements.items():
        rows, ms = trial.done.get(name, (None, None))
        names, text, commits = statement.names, sql_without_secrets(statement.brief), name in trial.commits
        tried.append(TriedStatement(name, kind.name, statement.line, text, names, types.get(name), rows, ms, commits))
    return tried


def _execute(trial: "_TrialSession", transaction: OwnTransaction, inputs: tuple) -> None:
    """Execute a transaction within one that is rolled back. Raise StallmarkError if the server refuses a statement."""
    kind = type(transaction)
    trial.open(reads_only=kind.reads_only)
    try:
        transaction.execute(trial, inputs)
    except CallFailed as error:
        if not trial.failure:  # the transaction's own refusal, which names the file
            raise StallmarkError(f"{error.message.rstrip('.')}.") from None
        # The transaction puts file and line before an error, and the sentence below has them already: it takes the
        # server's own words from the trial.
        failed = trial.statements.get(trial.current)
        raise _refused(_place(kind, failed), trial.failure, kind, failed) from None
    finally:
        trial.end()


def _try_further_rows(trial: "_TrialSession", transaction: OwnStatements) -> None:
    """Execute a transaction with rows of each form that its sources have: one of another type may be refused."""
    sources = transaction.sources
    forms = [dict.fromkeys(row[: len(names)] for row in rows_of_each_form(source.rows)) for names, source in sources]
    rng, began = random.Random(1), time.monotonic()
    for rows in islice(zip_longest(*forms), MOST_ROWS_TRIED):
        if time.monotonic() - began > ROWS_TRIED_S:
            return
        drawn = [row or source.draw(rng, Place(0, 0)) for row, (_, source) in zip(rows, sources, strict=True)]
        try:
            _execute(trial, transaction, transaction.inputs_from(drawn))
        except StallmarkError as error:
            names = [name for names, _ in sources for name in names]
            values = [value for row in drawn for value in row]
            tried = ", ".join(
                f":{name} {HIDDEN if name in transaction.secrets else repr(value)}"
                for name, value in zip(names, values, strict=True)
            )
            raise StallmarkError(f"{str(error).rstrip('.')}. It was tried with {tried}.") from None


@contextmanager
def _naming(place: str, kind: type[OwnTransaction] | None = None, statement: Statement | None = None):
    try:
        yield
    except CallFailed as error:
        raise _refused(place, error, kind, statement) from None


def _place(kind: type[OwnTransaction], statement: Statement | None) -> str:
    return f"{kind.name}.sql" + (f", line {statement.line}" if statement else "")


def _refused(
    where: str, error: CallFailed, kind: type[OwnTransaction] | None, statement: Statement | None = None
) -> StallmarkError:
    if kind and error.code == READ_ONLY and statement and statement.kind is not Kind.READ:
        return StallmarkError(f"{where}: it writes: leave out `reads_only: true` below {kind.name}.")
    if error.code == READ_ONLY and not kind:
        return StallmarkError(f"{where}: it writes, by a function: write one that only reads.")
    if kind and error.code == READ_ONLY:
        return StallmarkError(
            f"{where}: it writes, and its words do not show that: write `reads_only: false` below {kind.name}."
        )
    if kind and error.code == _COMMITS:
        alone = "call it outside BEGIN and END" if kind.given["script"] else "write `one_transaction: false` below"
        return StallmarkError(
            f"{where}: its procedure commits by itself, which it cannot within a transaction: {alone} {kind.name}."
        )
    if kind and error.code in _ENDS_OF_CALLER:
        return StallmarkError(
            f"{where}: its procedure ends a transaction that it has not begun, and what this trial did before may be "
            "kept: write its own BEGIN TRANSACTION into it."
        )
    if error.kind is ErrorClass.TIMEOUT:
        return StallmarkError(f"{where}: it takes longer than {TIMEOUT_S:.0f} s: make it shorter, or leave it out.")
    code = f" ({error.code})" if error.code else ""
    hint = ""
    if error.code == _SYNTAX and statement and _SECOND.search(statement.sql):
        hint = " If a second statement begins on a later line, end the one before with a semicolon."
    return StallmarkError(f"{where}: the server does not take it: {error.message.rstrip('.')}{code}.{hint}")


def _types(session: Session) -> dict[str, list[str]]:
    """Return the types of parameters by the name of the statement; empty if the server does not report them."""
    if session.dialect != "postgresql":
        return {}
    return {name: json.loads(types) for name, types in session.call(_TYPES, ())}


class _TrialSession(Session):
    """A session in one transaction, from `open` to `end`: what else would begin or end one does nothing."""

    def __init__(self, session: Session, statements: dict[str, Statement], secrets: Collection[str]):
        self._session = session
        self.statements = statements
        self._secrets = secrets
        self.dialect = session.dialect
        self.server_pid = session.server_pid
        self.current = ""
        self.failure: CallFailed | None = None
        """The failure in the server's own words, but for values of secrets."""
        self.done: dict[str, tuple[int, float]] = {}
        self.commits: set[str] = set()
        """The statements that commit by themselves, so that they could not be executed."""

    def open(self, *, reads_only: bool) -> None:
        if self.dialect == "postgresql":
            # READ ONLY reveals a function that writes behind a SELECT, which the words of a statement do not show.
            self._session.call(_READING_TRIAL if reads_only else _TRIAL, (), commits=False)
        else:
            self._session.begin(Isolation.READ_COMMITTED)

    def end(self) -> None:
        if self.is_lost:
            return
        if self.dialect == "postgresql":
            self._session.call(_END, (), commits=False)
        else:
            self._session.roll_back()

    @property
    def is_lost(self) -> bool:  # type: ignore[override]
        return self._session.is_lost

    def call(
        self, name: str, parameters: Sequence[Any], *, commits: bool = True, last: bool = False
    ) -> Sequence[tuple]:
        # The transaction's own BEGIN or COMMIT: that would end the trial and keep its changes.
        return []

    def call_head(self, name: str, parameters: Sequence[Any], *, commits: bool = True) -> Head:
        statement = self.statements[name]
        if statement.begins or statement.ends:
            return 0, ()
        self.current = name
        # Only these may commit by themselves, and only a statement outside a transaction of its user.
        may_commit = commits and self.dialect == "postgresql" and statement.word in ("CALL", "DO")
        if may_commit:
            self._session.call(_SAVE, (), commits=False)
        began = time.monotonic()
        try:
            head = self._session.call_head(name, parameters, commits=False)
        except CallFailed as error:
            if may_commit and error.code == _COMMITS:
                self._session.call(_BACK, (), commits=False)
                self.commits.add(name)
                return 0, ()
            pairs = zip(statement.names, parameters, strict=True)
            message = without_values(error.message, [value for name, value in pairs if name in self._secrets])
            self.failure = CallFailed(error.kind, error.code, message)
            raise
        self.done[name] = head[0], round((time.monotonic() - began) * 1000, 3)
        return head

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
