"""The transactions of a user's workload: classes made of statements, and what they share in a process."""

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from operator import itemgetter
from typing import Any, ClassVar

from stallmark.engines.base import Isolation, Session
from stallmark.errors import CallFailed, ErrorClass, StallmarkError
from stallmark.own_sql.parameter_sources import OpenedSource, Place, Row, Users, names_in, open_source
from stallmark.own_sql.pgbench_functions import ExpressionError, as_parameter, as_value, is_true
from stallmark.own_sql.pgbench_scripts import Query, Set, Sleep, parse_script
from stallmark.own_sql.statements import DIALECTS, Kind, Statement, split
from stallmark.redact import secret_parameters, without_values
from stallmark.transactions.workload import FAILED, Outcome, RunClock, StatementFacts, Transaction, WorkloadContext

_BEGIN, _COMMIT, _ROLL_BACK = "stallmark begin {}", "stallmark commit", "stallmark roll back"
Pick = Callable[[Sequence[Any]], Sequence[Any]]
_now = time.monotonic_ns


class Shared:
    """The sources of one process, opened: each query for parameters is executed once."""

    def __init__(self, definition: Mapping[str, Any], context: WorkloadContext):
        self.context = context
        self.parameters = definition["parameters"]
        statements = statement_facts(definition, context.dialect)
        self.places = {statement.name: place for place, statement in enumerate(statements)}
        self._definition = definition
        self._clock = RunClock()
        self._opened: dict[str, OpenedSource] = {}
        for name, transaction in definition["transactions"].items():
            if not transaction["script"]:
                self._open_sources(name, transaction)

    def sources_of(self, name: str) -> list[tuple[tuple[str, ...], OpenedSource]]:
        """Return the sources that a transaction's statements need, each with its names."""
        return self._open_sources(name, self._definition["transactions"][name])

    def _open_sources(self, name: str, transaction: Mapping[str, Any]) -> list[tuple[tuple[str, ...], OpenedSource]]:
        needed = {
            parameter for statement in split(transaction["sql"], self.context.dialect) for parameter in statement.names
        }
        own = {parameter for key in transaction["parameters"] for parameter in names_in(key)}
        opened = []
        # Its own last: a name that both have is of its own source.
        for sources, prefix in ((self._definition["parameters"], ""), (transaction["parameters"], f"{name}.")):
            for key, source in sources.items():
                names = names_in(key)
                wanted = needed.intersection(names) - (own if not prefix else set())
                if wanted and "result" not in source:
                    opened.append((names, self._open(prefix + key, key, source)))
        return opened

    def _open(self, place: str, key: str, source: Mapping[str, Any]) -> OpenedSource:
        if place not in self._opened:
            context = self.context
            users = Users(max(1, context.users))
            self._opened[place] = open_source(key, source, context.query, self._clock, context.seed, users)
        return self._opened[place]


def picker(places: Sequence[int]) -> Pick:
    """Return a function that picks the values at these places."""
    if not places:
        return lambda values: ()
    if len(places) == 1:
        [only] = places
        return lambda values: (values[only],)
    return itemgetter(*places)


class OwnTransaction(Transaction):
    """A transaction of a user's; a class of its own for each is made of this one."""

    frames: ClassVar = {}
    given: ClassVar[Mapping[str, Any]]
    define: ClassVar[Mapping[str, Any]]
    secrets: ClassVar[frozenset[str]]
    """The parameters whose values no message may have."""

    def __init__(self, shared: Shared):
        super().__init__(shared)
        self._own_rng: random.Random | None = None
        self._report = shared.context.report_statements
        self._place = shared.places[_call_name(self.name, 0)]
        """The place of its first statement; the others follow."""

    def begin_user(self, number: int, rng: random.Random) -> None:
        super().begin_user(number, rng)
        # A generator of its own: so what a user draws does not depend on which transactions come in between.
        self._own_rng = random.Random(rng.getrandbits(64))

    def _call_only(self, session: Session, name: str, parameters: Sequence[Any]) -> Outcome:
        """Execute the only statement of a transaction, which commits by itself, and report it."""
        began = _now()
        try:
            count = session.count(name, parameters)
        except CallFailed:
            self._report((self._place, FAILED, began, _now()))
            raise
        self._report((self._place, count, began, _now()))
        return Outcome.COMMITTED

    @classmethod
    def to_prepare(cls, dialect: str) -> dict[str, str]:
        """Return the texts that a session prepares, by name: its statements, and what begins and ends them."""
        statements = {name: statement.sql for name, statement in prepared_statements(cls, dialect).items()}
        if dialect != "postgresql":
            return statements
        level = cls.given["isolation"].upper()
        begin = f"BEGIN ISOLATION LEVEL {level}"
        return statements | {_BEGIN.format(level): begin, _COMMIT: "COMMIT", _ROLL_BACK: "ROLLBACK"}


def transaction_class(name: str, given: Mapping[str, Any], definition: Mapping[str, Any]) -> type[OwnTransaction]:
    """Return the class of a transaction."""
    kind = PgbenchScript if given["script"] else OwnStatements
    facts = {
        "name": name,
        "given": given,
        "define": definition["define"],
        "secrets": frozenset(secret_parameters(given["sql"])),
        "reads_only": _only_reads(given, definition["define"]) if given["reads_only"] is None else given["reads_only"],
        "limit_s": given["limit"],
    }
    return type(name, (kind,), facts)


def prepared_statements(kind: type[OwnTransaction], dialect: str) -> dict[str, Statement]:
    """Return the statements of a transaction by the names under which a session has them."""
    return {
        _call_name(kind.name, place): statement
        for place, statement in enumerate(_statements(kind.given, kind.define, dialect))
    }


def statement_facts(definition: Mapping[str, Any], dialect: str) -> Iterator[StatementFacts]:
    """Yield the statements of all transactions of a definition."""
    for transaction, given in definition["transactions"].items():
        for place, statement in enumerate(_statements(given, definition["define"], dialect)):
            name = _call_name(transaction, place)
            yield StatementFacts(name, transaction, statement.line, statement.brief, statement.sql)


def _statements(given: Mapping[str, Any], define: Mapping[str, Any], dialect: str) -> list[Statement]:
    if not given["script"]:
        return split(given["sql"], dialect)
    return [step.statement for step in parse_script(given["sql"], define) if isinstance(step, Query)]


def _only_reads(given: Mapping[str, Any], define: Mapping[str, Any]) -> bool:
    """Return whether the words of all statements say that they read, in either dialect."""
    if given["script"]:
        # BEGIN READ WRITE would undo that its session refuses writes.
        return all(
            statement.kind is Kind.READ or (statement.kind is Kind.CONTROL and "WRITE" not in statement.words)
            for statement in _statements(given, define, "postgresql")
        )
    # Judged before a server is known. A dialect in which the text cannot be read, or is refused, does not count.
    kinds = []
    for dialect in DIALECTS:
        with suppress(StallmarkError):
            kinds.append({statement.kind for statement in split(given["sql"], dialect)})
    return all(of_dialect == {Kind.READ} for of_dialect in kinds if of_dialect <= {Kind.READ, Kind.WRITE})


# Statements in a row, as one transaction or each by itself.


class OwnStatements(OwnTransaction):
    def __init__(self, shared: Shared):
        super().__init__(shared)
        dialect = shared.context.dialect
        statements = split(self.given["sql"], dialect)
        self._turn = 0
        self.sources = shared.sources_of(self.name)
        self._draws = [source.draw for _, source in self.sources]
        names = [name for names, _ in self.sources for name in names]
        self._results, returned = _results(statements, self.given, shared)
        places = {name: place for place, name in enumerate([*names, *returned]) if name is not None}
        self._lines = [statement.line for statement in statements]
        self._secret_places = [place for name, place in places.items() if name in self.secrets]
        self._calls = [
            (_call_name(self.name, number), picker([places[name] for name in statement.names]))
            for number, statement in enumerate(statements)
        ]
        # A single statement is a transaction by itself and is spared the trips of BEGIN and COMMIT; other levels than
        # the default need a BEGIN that names them.
        is_atomic = len(statements) == 1 and statements[0].is_atomic
        one_statement = is_atomic and self.given["isolation"] == "read committed"
        self._alone: str | None = None
        self._pick: Pick = tuple
        if one_statement:
            self._alone, self._pick = self._calls[0]
            self._secret_places = [place for place, name in enumerate(statements[0].names) if name in self.secrets]
        self._is_one = self.given["one_transaction"] and not one_statement
        self._isolation = Isolation(self.given["isolation"].upper())
        self._by_trips = dialect == "postgresql"

    def inputs(self, rng: random.Random) -> tuple:
        rng = self._own_rng or rng
        place = Place(self.user or 0, self._turn)
        self._turn += 1
        return self.inputs_from([draw(rng, place) for draw in self._draws])

    def inputs_from(self, rows: Sequence[Row]) -> tuple:
        """Return the inputs with these rows, one of each source."""
        values = rows[0] if len(rows) == 1 else tuple([value for row in rows for value in row])
        return tuple(self._pick(values)) if self._alone else values

    def execute(self, session: Session, inputs: tuple) -> Outcome:
        if self._alone:
            try:
                return self._call_only(session, self._alone, inputs)
            except CallFailed as error:
                raise _name_statement(error, self.name, self._lines[0], self._secret_values(inputs)) from None
        if not self._is_one:
            return self._make_calls(session, inputs, commits=True)
        if not self._by_trips:
            with session.transaction(self._isolation):
                outcome = self._make_calls(session, inputs, commits=False)
                if outcome is Outcome.ROLLED_BACK:
                    session.roll_back()
                return outcome
        return self._execute_bound(session, inputs)

    def _execute_bound(self, session: Session, inputs: tuple) -> Outcome:
        """Begin and commit in trips of their own, so that every parameter is bound: the session's own way to begin
        with the first call and commit with the last writes them into the text."""
        session.call(_BEGIN.format(self._isolation), (), commits=False)
        try:
            outcome = self._make_calls(session, inputs, commits=False)
        except CallFailed:
            _roll_back(session)
            raise
        if outcome is Outcome.ROLLED_BACK:
            session.call(_ROLL_BACK, (), commits=False)
        else:
            session.call(_COMMIT, ())
        return outcome

    def _make_calls(self, session: Session, inputs: tuple, *, commits: bool) -> Outcome:
        values, number, place = [*inputs], 0, self._place
        reported: list[int] = []
        began = _now()
        try:
            for number, (name, pick) in enumerate(self._calls):
                count, rows = session.call_head(name, pick(values), commits=commits)
                ended = _now()
                reported += place + number, count, began, ended
                began = ended
                if columns := self._results.get(number):
                    if not len(rows):
                        return Outcome.ROLLED_BACK
                    values += [rows[0][column] for column in columns]
        except CallFailed as error:
            reported += place + number, FAILED, began, _now()
            secrets = self._secret_values(values)
            raise _name_statement(error, self.name, self._lines[number], secrets) from None
        except IndexError:  # a column that the first row lacks; the trial before the load meets it
            raise StallmarkError(
                f"{self.name}.sql, line {self._lines[number]}: it returns {len(rows[0])} columns, and a parameter is "
                f"of column {1 + max(self._results[number])}: change `column`."
            ) from None
        finally:
            if reported:
                self._report(tuple(reported))  # the garbage collector forgets tuples of numbers
        return Outcome.COMMITTED

    def _secret_values(self, values: Sequence[Any]) -> list[Any]:
        """Return those values that are secrets, of all that have been drawn or returned yet."""
        return [values[place] for place in self._secret_places if place < len(values)]


def _results(
    statements: Sequence[Statement], given: Mapping[str, Any], shared: Shared
) -> tuple[dict[int, list[int]], list[str | None]]:
    """Return the columns that are kept of each statement's first row, and the names of their values in order; None for
    one that the transaction has a source of its own for."""
    own = {name for key in given["parameters"] for name in names_in(key)}
    sources = [(key, source, own) for key, source in shared.parameters.items()]
    sources += [(key, source, set()) for key, source in given["parameters"].items()]
    kept: dict[int, list[int]] = {}
    names: list[str | None] = []
    needed = {name for statement in statements for name in statement.names}
    returned = [entry for entry in sources if "result" in entry[1]]
    for key, source, hidden in sorted(returned, key=lambda entry: entry[1]["result"]):
        if needed.difference(hidden).intersection(names_in(key)):
            for offset, name in enumerate(names_in(key)):
                names.append(None if name in hidden else name)
                kept.setdefault(source["result"] - 1, []).append(source["column"] - 1 + offset)
    return kept, names


def _name_statement(error: CallFailed, transaction: str, line: int, secrets: Sequence[Any]) -> CallFailed:
    """Return a failure that names the statement, and none of the secret values that the server may quote."""
    message = f"{transaction}.sql, line {line}: {without_values(error.message, secrets)}"
    return CallFailed(error.kind, error.code, message)


def _roll_back(session: Session) -> None:
    """Roll back what an error left open; a session that is lost has nothing open."""
    if not session.is_lost:
        session.call(_ROLL_BACK, (), commits=False)


# A script of pgbench. What stands before its first statement is drawn before a transaction is due.


class PgbenchScript(OwnTransaction):
    def __init__(self, shared: Shared):
        super().__init__(shared)
        self._steps = parse_script(self.given["sql"], self.define)
        seed = shared.context.seed
        self._variables: dict[str, Any] = {"scale": 1, "random_seed": seed, "default_seed": seed} | dict(self.define)
        self._rng = random.Random()
        queries = [place for place, step in enumerate(self._steps) if not isinstance(step, Set)]
        statements = [(place, step.statement) for place, step in enumerate(self._steps) if isinstance(step, Query)]
        self._facts = {
            place: (number, _call_name(self.name, number), statement.begins, statement.ends)
            for number, (place, statement) in enumerate(statements)
        }
        self._first = queries[0]
        self._drawn = [(step.name, step.value.evaluate) for step in self._steps[: self._first] if isinstance(step, Set)]
        self._alone: tuple[str, tuple[str, ...]] | None = None
        last = self._steps[-1]
        if self._first == len(self._steps) - 1 and isinstance(last, Query) and last.prefix is None:
            self._alone = _call_name(self.name, 0), last.statement.names
            self._line = last.statement.line

    def inputs(self, rng: random.Random) -> tuple:
        self._rng, variables = (rng := self._own_rng or rng), self._variables
        variables["client_id"] = self.user or 0
        name = ""
        try:
            for name, evaluate in self._drawn:
                variables[name] = evaluate(variables, rng)
        except ExpressionError as error:
            raise CallFailed(ErrorClass.OTHER, "", f"{self.name}.sql: \\set {name}: {error}") from None
        if self._alone:
            return tuple([as_parameter(variables[name]) for name in self._alone[1]])
        return (dict(variables),)

    def execute(self, session: Session, inputs: tuple) -> Outcome:
        if self._alone:
            name, names = self._alone
            try:
                return self._call_only(session, name, inputs)
            except CallFailed as error:
                secrets = [value for name, value in zip(names, inputs, strict=True) if name in self.secrets]
                raise _name_statement(error, self.name, self._line, secrets) from None
        # A copy, because a retry begins with the same inputs whatever \set has changed meanwhile. Kept as well,
        # because in pgbench variables outlive a transaction.
        variables = self._variables = dict(inputs[0])
        is_open = False
        place, steps, line = self._first, self._steps, 0
        reported: list[int] = []
        try:
            while place < len(steps):
                step, here = steps[place], place
                place += 1
                if isinstance(step, Query):
                    line = step.statement.line
                    number, name, begins, ends = self._facts[here]
                    is_open = is_open or begins
                    parameters = [as_parameter(variables[name]) for name in step.statement.names]
                    commits = not is_open or ends
                    began, count = _now(), FAILED
                    try:
                        count, rows = session.call_head(name, parameters, commits=commits)
                    finally:
                        reported += self._place + number, count, began, _now()
                    is_open = is_open and not ends
                    if step.prefix is not None:
                        self._set_row(step, rows, count)
                elif isinstance(step, Set):
                    variables[step.name] = step.value.evaluate(variables, self._rng)
                elif isinstance(step, Sleep):
                    time.sleep(float(as_value(step.duration.evaluate(variables, self._rng)) or 0) * step.unit_s)
                elif step.unless is None or not is_true(step.unless.evaluate(variables, self._rng)):
                    place = step.to
            if is_open:
                raise ExpressionError("it leaves a transaction open: end it with COMMIT")
        except CallFailed as error:
            if is_open:
                _roll_back(session)
            secrets = [variables[name] for name in self.secrets if name in variables]
            raise _name_statement(error, self.name, line, secrets) from None
        except (ExpressionError, KeyError) as error:
            if is_open:
                _roll_back(session)
            reason = f"the variable {error.args[0]} has no value" if isinstance(error, KeyError) else str(error)
            raise CallFailed(ErrorClass.OTHER, "", f"{self.name}.sql: {reason}") from None
        finally:
            if reported:
                self._report(tuple(reported))
        return Outcome.COMMITTED

    def _set_row(self, step: Query, rows: Sequence[tuple], count: int) -> None:
        if len(rows) != 1:
            came = count if rows else 0
            raise ExpressionError(f"line {step.statement.line}: \\gset expects one row, and {came:,} came")
        for name, value in zip(rows.names, rows[0], strict=True):  # type: ignore[attr-defined]
            self._variables[f"{step.prefix}{name}"] = value


def _call_name(transaction: str, place: int) -> str:
    return f"{transaction} {place + 1}"
