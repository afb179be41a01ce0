"""Parts of an answer, for scripts: steps, in the order they are sent."""

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from support.tds import tokens
from support.tds.datatypes import INT
from support.tds.tokens import Column

ENDING_THE_TRANSACTION = (1205, 3960)  # the server rolls back by itself
FATAL = 20  # severity from which the server closes the connection
MISMATCH = 266


@dataclass(frozen=True)
class Rows:
    """A result set."""

    columns: Sequence[Column]
    rows: Iterable[Sequence[Any]] = ()


@dataclass(frozen=True)
class Count:
    """The rows a statement touched."""

    rows: int


@dataclass(frozen=True)
class Info:
    """A text of PRINT, or a warning."""

    text: str
    number: int = 0
    severity: int = 0
    state: int = 1


@dataclass(frozen=True)
class Error:
    number: int
    text: str
    severity: int = 16
    state: int = 1
    procedure: str = ""
    line: int = 1


@dataclass(frozen=True)
class Use:
    """The connection's database is another one now."""

    database: str


class Hold:
    """The steps before it are sent, the rest when a test calls `release()`. `reached` is set once the request has
    arrived."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self._lock = threading.Lock()
        self._released = False
        self._waiting: list[Callable[[], None]] = []

    def release(self) -> None:
        with self._lock:
            self._released = True
            waiting, self._waiting = self._waiting, []
        for go_on in waiting:
            go_on()

    def on_release(self, go_on: Callable[[], None]) -> None:
        """Called from the releasing thread, or at once."""
        with self._lock:
            if not self._released:
                self._waiting.append(go_on)
                return
        go_on()


@dataclass(frozen=True)
class Cut:
    """The connection ends here: what comes before it is sent, without the answer's end. `reset`: as when a server
    dies; otherwise as when it closes in order."""

    reset: bool = True


Step = Rows | Count | Info | Error | Use | Hold | Cut
Piece = bytes | Hold | Cut


class Flow(NamedTuple):
    """How a request shapes its answer."""

    in_procedure: bool = False
    """Its statements run inside a procedure: the answer has a return status."""
    is_prepared: bool = False
    """It is a text behind sp_executesql, sp_prepexec or sp_execute, which must leave @@TRANCOUNT as it was."""
    more_after: bool = False
    """Other statements follow the procedure in the same batch."""
    in_transaction: bool = False
    """Before it."""
    begins: bool = False
    ends: int | None = None
    """tokens.COMMITTED or tokens.ROLLED_BACK."""
    resets: bool = False
    handle: int | None = None
    """Of the statement that was prepared."""
    database: str = ""

    @property
    def is_nested(self) -> bool:
        """In a transaction it commits no more than what it began itself."""
        return self.begins and self.ends == tokens.COMMITTED


class Rendered(NamedTuple):
    pieces: list[Piece]
    """Bytes, with the steps between them that are not bytes."""
    in_transaction: bool
    """After it."""


def render(steps: Iterable[Step], flow: Flow, more: bool = False) -> Rendered:
    """The answer's bytes. `more`: another call's answer follows."""
    out = _Stream()
    failed, fatal = False, False
    in_transaction = before = flow.in_transaction and not flow.resets
    statement = tokens.DONE_IN_PROCEDURE if flow.in_procedure else tokens.DONE

    if flow.resets:
        out.put(tokens.changed(tokens.WAS_RESET, b"\0"))
    if flow.begins and not in_transaction:
        out.put(tokens.transaction_began())
        in_transaction = True
    for step in steps:
        match step:
            case Rows(described, rows):
                out.put(tokens.columns(described))
                types = [column.type for column in described]
                encoded = [tokens.row(types, values) for values in rows]
                out.put(b"".join(encoded))
                out.done(statement, tokens.COUNT, len(encoded), tokens.SELECT)
            case Count(count):
                out.done(statement, tokens.COUNT, count, tokens.UPDATE)
            case Info(text, number, severity, state):
                out.put(tokens.info(number, severity, state, text))
            case Error(number, text, severity, state, procedure, line):
                out.put(tokens.error(number, severity, state, text, procedure, line))
                failed, fatal = True, fatal or severity >= FATAL
                if in_transaction and number in ENDING_THE_TRANSACTION:
                    out.put(tokens.transaction_ended(tokens.ROLLED_BACK))
                    in_transaction = False
                out.done(statement, tokens.ERROR_BIT)
            case Use(database):
                out.put(tokens.changed_text(tokens.DATABASE, database, flow.database))
                out.put(tokens.info(5701, 10, 2, f"Changed database context to '{database}'."))
            case _:
                out.interrupt(step)
    if flow.ends is not None and in_transaction and not failed and not (before and flow.is_nested):
        out.put(tokens.transaction_ended(flow.ends))
        in_transaction = False
    if flow.is_prepared and in_transaction != before and not failed:
        out.put(tokens.error(MISMATCH, 16, 2, _mismatch(before, in_transaction)))
        failed = True
    if flow.in_procedure:
        out.put(tokens.return_status(0))
        if flow.handle is not None:
            out.put(tokens.return_value(0, "", INT, flow.handle))
        out.done(tokens.DONE_PROCEDURE, tokens.ERROR_BIT if failed and not flow.more_after else 0)
    if flow.more_after or not out.is_done:
        out.done(tokens.DONE, tokens.ERROR_BIT if failed else 0)
    pieces = out.finish(more)
    if fatal:
        pieces.append(Cut(reset=False))
    return Rendered(pieces, in_transaction)


def _mismatch(before: bool, after: bool) -> str:
    return (
        "Transaction count after EXECUTE indicates a mismatching number of BEGIN and COMMIT statements. "
        f"Previous count = {before:d}, current count = {after:d}."
    )


class _Stream:
    """Tokens in order. Whether a DONE says that more comes is known only when more comes."""

    def __init__(self) -> None:
        self._pieces: list[Piece] = []
        self._parts: list[bytes] = []
        self._undecided: tuple[int, int, int, int] | None = None

    @property
    def is_done(self) -> bool:
        return self._undecided is not None

    def put(self, token: bytes) -> None:
        self._decide(more=True)
        self._parts.append(token)

    def done(self, token: int, bits: int, count: int = 0, command: int = 0) -> None:
        self._decide(more=True)
        self._undecided = (token, bits, count, command)

    def interrupt(self, step: Hold | Cut) -> None:
        self._decide(more=True)
        self._pieces += [b"".join(self._parts), step]
        self._parts = []

    def finish(self, more: bool) -> list[Piece]:
        self._decide(more)
        return [*self._pieces, b"".join(self._parts)]

    def _decide(self, more: bool) -> None:
        if self._undecided:
            token, bits, count, command = self._undecided
            self._parts.append(tokens.done(token, bits | (tokens.MORE if more else 0), count, command))
            self._undecided = None
