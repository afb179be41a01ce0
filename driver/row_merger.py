"""The merging of what executors report: one row per second and load, and transaction or executor.

A load machine has this too, but not the writer of records and what judges a load: they take long to import.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from stallmark.driver.rows import (
    DeferredRow,
    ErrorRow,
    OwnIORow,
    Rows,
    TransactionRow,
    UserRow,
    merge,
    merge_errors,
    merge_own_io,
)


class RowMerger:
    """A merger of the executors' partial rows: a load machine's of its own executors, and the controller's of all."""

    def __init__(self) -> None:
        self._transactions: dict[tuple[int, str, str], list[TransactionRow]] = defaultdict(list)
        self._users: dict[tuple[int, str, int], UserRow] = {}
        self._errors: dict[tuple[int, str, str, str, str], list[ErrorRow]] = defaultdict(list)
        self._deferred: dict[tuple[int, str, int], DeferredRow] = {}
        self._own_io: dict[tuple[int, str, str], list[OwnIORow]] = defaultdict(list)

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

    def take_before(self, second: float) -> Rows:
        """Return the rows of all seconds before `second`, merged and in order, and forget them."""
        return Rows(
            _merged(self._transactions, second, merge),
            _taken(self._users, second),
            _merged(self._errors, second, merge_errors),
            _taken(self._deferred, second),
            _merged(self._own_io, second, merge_own_io),
        )


PartialRow = TypeVar("PartialRow", TransactionRow, ErrorRow, OwnIORow)
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


def _merged(
    rows: dict[Any, list[PartialRow]], before: float, merge: Callable[[list[PartialRow]], PartialRow]
) -> list[PartialRow]:
    return [merge(parts) for parts in _taken(rows, before)]


def _taken(rows: dict[Any, Any], before: float) -> list[Any]:
    """Remove the rows of the seconds before then, and return them in order."""
    return [rows.pop(key) for key in sorted(key for key in rows if key[0] < before)]
