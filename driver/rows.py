"""The rows of the record's tables as executors report them, each a part of its second, and how parts are merged.

The conductor of a run passes them on as they come, that of a load machine merges them first. NumPy, which the former
would import in vain, is imported where parts are merged.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Annotated, Any, TypeVar

import msgspec

from stallmark.errors import ErrorClass
from stallmark.record import Histogram

Whole = Annotated[int, msgspec.Meta(ge=-(1 << 62), le=1 << 62)]
"""A whole number that a column of a record can hold."""


class Row(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """A row of one of the record's tables, whose columns are its fields (record/schema.py), or a part of one."""

    second: Whole
    load: str

    def columns(self) -> dict[str, Any]:
        return msgspec.structs.asdict(self)


class TransactionRow(Row):
    transaction: str
    committed: Whole
    rolled_back: Whole
    failed: Whole
    retries: Whole
    latency_us: Whole
    service_us: Whole
    latency: Histogram
    service: Histogram

    def __post_init__(self) -> None:
        _refuse_cut(self.latency, self.service)

    def columns(self) -> dict[str, Any]:
        return _with_histograms(super().columns(), "latency", "service")


class StatementRow(Row):
    statement: str
    executions: Whole
    rows: Whole
    errors: Whole
    latency_us: Whole
    latency: Histogram

    def __post_init__(self) -> None:
        _refuse_cut(self.latency)

    def columns(self) -> dict[str, Any]:
        return _with_histograms(super().columns(), "latency")


def _refuse_cut(*histograms: Histogram) -> None:
    """Raise ValueError for a histogram whose two arrays do not fit together."""
    for histogram in histograms:
        if len(histogram.gaps) % 2 or len(histogram.counts) != 2 * len(histogram.gaps):
            raise ValueError("a histogram that is cut")


def _with_histograms(values: dict[str, Any], *names: str) -> dict[str, Any]:
    """Return the columns of a row, of which `names` are histograms."""
    from stallmark.record import histogram as hdr

    for name in names:
        values |= hdr.columns(name, values.pop(name))
    return values


class UserRow(Row):
    machine: Whole
    executor: Whole
    running: float = 0.0
    busy_us: Whole = 0
    think_us: Whole = 0
    lag_us: Whole = 0
    lag_max_us: Whole = 0
    cpu_us: Whole = 0


class DeferredRow(Row):
    machine: Whole
    executor: Whole
    taken: Whole = 0
    late_us: Whole = 0
    late_max_us: Whole = 0
    waiting: Whole = 0


class OwnIORow(Row):
    transaction: str
    sampled: Whole
    reads: Whole
    read_bytes: Whole
    hits: Whole
    read_us: Whole | None
    writes: Whole


class ErrorRow(Row):
    transaction: str
    error_class: ErrorClass
    code: str
    attempts: Whole
    given_up: Whole
    message: str


Timed = TypeVar("Timed", TransactionRow, StatementRow)


class Rows(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """All rows of one report."""

    transactions: list[TransactionRow] = []
    users: list[UserRow] = []
    errors: list[ErrorRow] = []
    deferred_queue: list[DeferredRow] = []
    transaction_io: list[OwnIORow] = []
    own_statements: list[StatementRow] = []

    def loads(self) -> set[str]:
        return {row.load for table in msgspec.structs.astuple(self) for row in table}

    def machines(self) -> set[int]:
        return {row.machine for row in self.users} | {row.machine for row in self.deferred_queue}


def merge(rows: Sequence[Timed]) -> Timed:
    """Merge the parts of one row that executors have sent."""
    from stallmark.record import histogram as hdr

    if len(rows) == 1:
        return rows[0]
    merged: dict[str, Any] = {}
    for name in rows[0].__struct_fields__:
        values = [getattr(row, name) for row in rows]
        if isinstance(values[0], Histogram):
            merged[name] = hdr.merge(values)
        elif isinstance(values[0], int) and name != "second":
            merged[name] = sum(values)
    return msgspec.structs.replace(rows[0], **merged)


def merge_own_io(rows: Sequence[OwnIORow]) -> OwnIORow:
    sums = [name for name in OwnIORow.__struct_fields__ if name not in ("second", "load", "transaction")]
    return msgspec.structs.replace(rows[0], **{name: sum_known([getattr(row, name) for row in rows]) for name in sums})


def merge_errors(rows: Sequence[ErrorRow]) -> ErrorRow:
    """Return one row of failures of one kind, with the message of the first."""
    sums = ("attempts", "given_up")
    return msgspec.structs.replace(rows[0], **{name: sum(getattr(row, name) for row in rows) for name in sums})


def sum_known(values: Sequence[int | None]) -> int | None:
    """Return the sum; None if a value is not known."""
    return None if None in values else sum(values)  # type: ignore[arg-type]


# The merging of what executors report: one row per second and load, and transaction or executor.
#
# A load machine has this too, but not the writer of records and what judges a load: they take long to import.


class RowMerger:
    """A merger of the executors' partial rows: a load machine's of its own executors, and the controller's of all."""

    def __init__(self) -> None:
        self._transactions: dict[tuple[int, str, str], list[TransactionRow]] = defaultdict(list)
        self._users: dict[tuple[int, str, int], UserRow] = {}
        self._errors: dict[tuple[int, str, str, str, str], list[ErrorRow]] = defaultdict(list)
        self._deferred: dict[tuple[int, str, int], DeferredRow] = {}
        self._own_io: dict[tuple[int, str, str], list[OwnIORow]] = defaultdict(list)
        self._statements: dict[tuple[int, str, str], list[StatementRow]] = defaultdict(list)

    def add(self, reported: Rows) -> None:
        for row in reported.transactions:
            self._transactions[row.second, row.load, row.transaction].append(row)
        for user in reported.users:
            _add(self._users, user, ("running", "cpu_us", "busy_us", "think_us", "lag_us"), ("lag_max_us",))
        for error in reported.errors:
            self._errors[error.second, error.load, error.transaction, error.error_class, error.code].append(error)
        for deferred in reported.deferred_queue:
            _add(self._deferred, deferred, ("taken", "late_us"), ("late_max_us", "waiting"))
        for own_io in reported.transaction_io:
            self._own_io[own_io.second, own_io.load, own_io.transaction].append(own_io)
        for statement in reported.own_statements:
            self._statements[statement.second, statement.load, statement.statement].append(statement)

    def pop_before(self, second: float) -> Rows:
        """Return the rows of all seconds before `second`, merged and in order, and forget them."""
        return Rows(
            _pop_merged(self._transactions, second, merge),
            _pop_before(self._users, second),
            _pop_merged(self._errors, second, merge_errors),
            _pop_before(self._deferred, second),
            _pop_merged(self._own_io, second, merge_own_io),
            _pop_merged(self._statements, second, merge),
        )


PartialRow = TypeVar("PartialRow", TransactionRow, ErrorRow, OwnIORow, StatementRow)
PerExecutor = TypeVar("PerExecutor", UserRow, DeferredRow)


def _add(
    known: dict[tuple[int, str, int], PerExecutor], row: PerExecutor, sums: Sequence[str], maxima: Sequence[str]
) -> None:
    first = known.setdefault((row.second, row.load, row.executor), row)
    if first is not row:
        for name in sums:
            setattr(first, name, getattr(first, name) + getattr(row, name))
        for name in maxima:
            setattr(first, name, max(getattr(first, name), getattr(row, name)))


def _pop_merged(
    rows: dict[Any, list[PartialRow]], before: float, merge: Callable[[list[PartialRow]], PartialRow]
) -> list[PartialRow]:
    return [merge(parts) for parts in _pop_before(rows, before)]


def _pop_before(rows: dict[Any, Any], before: float) -> list[Any]:
    """Remove the rows of the seconds before then, and return them in order."""
    return [rows.pop(key) for key in sorted(key for key in rows if key[0] < before)]
