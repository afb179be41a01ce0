"""The merging of what executors report: one row per second and load, and transaction or executor, for the record."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any, TypeVar

from stallmark.driver.rows import DeferredRow, OwnIORow, Row, Rows, TransactionRow, UserRow, merge, merge_own_io
from stallmark.driver.warm_up import SecondsSeen
from stallmark.errors import as_reason
from stallmark.record.writer import RecordWriter


class Merger:
    """A merger of the executors' partial rows into one row per second and load (and transaction, or executor)."""

    def __init__(self, writer: RecordWriter):
        self.writer = writer
        self.seen = SecondsSeen()
        self.errors = 0
        self.committed: Counter[tuple[str, str]] = Counter()
        """Transactions by load and name."""
        self.given_up: Counter[tuple[str, str, str]] = Counter()
        """Transactions that were not tried again, by load, name and the server's words."""
        self._transactions: dict[tuple[int, str, str], list[TransactionRow]] = defaultdict(list)
        self._users: dict[tuple[int, str, int], UserRow] = {}
        self._deferred: dict[tuple[int, str, int], DeferredRow] = {}
        self._own_io: dict[tuple[int, str, str], list[OwnIORow]] = defaultdict(list)

    def add(self, reported: Rows) -> None:
        for row in reported.transactions:
            self._transactions[row.second, row.load, row.transaction].append(row)
            self.seen.add(row)
            self.committed[row.load, row.transaction] += row.committed
        for user in reported.users:
            _add(self._users, user, ("running", "cpu_us", "busy_us", "think_us", "lag_us"), ("lag_max_us",))
        for deferred in reported.deferred_queue:
            _add(self._deferred, deferred, ("taken", "late_us"), ("late_max_us", "waiting"))
        for own_io in reported.transaction_io:
            self._own_io[own_io.second, own_io.load, own_io.transaction].append(own_io)
        self.errors += sum(error.attempts for error in reported.errors)
        for error in reported.errors:
            self.given_up[error.load, error.transaction, f"{as_reason(error.message)} ({error.code})"] += error.given_up
        self.writer.append("errors", [error.columns() for error in reported.errors])

    def write_before(self, second: float) -> None:
        """Write and forget the rows of all seconds before `second`."""
        self._write("transactions", [merge(rows) for rows in _taken(self._transactions, second)])
        self._write("transaction_io", [merge_own_io(rows) for rows in _taken(self._own_io, second)])
        self._write("users", _taken(self._users, second))
        self._write("deferred_queue", _taken(self._deferred, second))

    def _write(self, table: str, rows: Sequence[Row]) -> None:
        self.writer.append(table, [row.columns() for row in rows])


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


def _taken(rows: dict[Any, Any], before: float) -> list[Any]:
    """Remove the rows of the seconds before then, and return them in order."""
    return [rows.pop(key) for key in sorted(key for key in rows if key[0] < before)]
