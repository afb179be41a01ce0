"""Failed calls: of which transactions, how many, and whether they came in bursts."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from stallmark.analysis.finding import Finding, caution
from stallmark.analysis.read.interval import Interval
from stallmark.analysis.read.kinds import ReadKind
from stallmark.analysis.read.throughput import Load
from stallmark.errors import ErrorClass
from stallmark.record.reader import Record
from stallmark.stats.thresholds import BURST, BURST_CALLS

CONTENTION = frozenset(str(kind) for kind in ErrorClass if kind.retryable)
"""Error classes by which a server ends one of several transactions that conflict."""

_LOST = frozenset({str(ErrorClass.CONNECTION_LOST), str(ErrorClass.UNKNOWN_OUTCOME)})


@dataclass(frozen=True)
class ErrorSummary:
    error_class: str
    code: str
    attempts: int
    given_up: int
    message: str
    transaction: str = ""
    most_in_a_second: int = 0


class Key(NamedTuple):
    transaction: str
    error_class: str
    code: str


@dataclass
class Errors:
    """Failed calls of one run per second; `given_up` counts those after which the transaction was not tried again."""

    seconds: int
    attempts: dict[Key, np.ndarray] = field(default_factory=dict)
    given_up: dict[Key, np.ndarray] = field(default_factory=dict)
    messages: dict[Key, str] = field(default_factory=dict)
    unknown: Counter[str] = field(default_factory=Counter)
    """By transaction, over the whole run: the number of unknown outcome, committed by the server or not."""

    def summaries(self, interval: Interval) -> list[ErrorSummary]:
        """Return the errors by transaction, class and code; most frequent first."""
        found = []
        for key, per_second in self.attempts.items():
            attempts, given_up = interval.of(per_second), interval.of(self.given_up[key])
            if attempts.any():
                found.append(
                    ErrorSummary(
                        key.error_class,
                        key.code,
                        int(attempts.sum()),
                        int(given_up.sum()),
                        self.messages[key],
                        key.transaction,
                        int(attempts.max()),
                    )
                )
        return sorted(found, key=lambda one: (-one.attempts, one.transaction, one.error_class, one.code))

    def aborted(self, transaction: str) -> np.ndarray:
        """Return the calls per second that the server ended because of other transactions."""
        return self._sum(
            self.attempts, (k for k in self.attempts if k.transaction == transaction and k.error_class in CONTENTION)
        )

    def lost_connections(self) -> np.ndarray:
        """Return the connections per second that were lost under a call."""
        return self._sum(self.attempts, (key for key in self.attempts if key.error_class in _LOST))

    def bursts(self, load: Load, interval: Interval) -> Iterator[Finding]:
        """Yield each transaction and error class of which many calls failed at once."""
        for transaction, error_class in dict.fromkeys(key[:2] for key in self.attempts):
            keys = [key for key in self.attempts if key[:2] == (transaction, error_class)]
            failed = interval.of(self._sum(self.attempts, keys))
            counts = load.counts.get(transaction)
            done = interval.of(counts["committed"] + counts["rolled_back"]) if counts else 0
            in_burst = (failed >= BURST_CALLS) & (failed > BURST * (failed + done))
            if in_burst.any():
                lost = int(interval.of(self._sum(self.given_up, keys)).sum())
                yield caution(
                    ReadKind.ERROR_BURST,
                    transaction=transaction,
                    error_class=error_class,
                    seconds=int(in_burst.sum()),
                    measured_s=interval.seconds,
                    most_in_a_second=int(failed[in_burst].max()),
                    given_up=lost,
                )

    def _sum(self, what: dict[Key, np.ndarray], keys: Iterable[Key]) -> np.ndarray:
        return np.sum([np.zeros(self.seconds), *(what[key] for key in keys)], axis=0)


def read_errors(record: Record, seconds: int) -> Errors:
    """Read the errors in one pass over the table. Those after the last whole second count for `unknown` only."""
    errors = Errors(seconds)
    columns = ["second", "transaction", "error_class", "code", "attempts", "given_up", "message"]
    for batch in record.batches("errors", columns):
        for row in batch.to_pylist():
            if row["error_class"] == ErrorClass.UNKNOWN_OUTCOME:
                errors.unknown[row["transaction"]] += row["attempts"]
            if row["second"] >= seconds:
                continue
            key = Key(row["transaction"], row["error_class"], row["code"])
            if key not in errors.attempts:
                errors.attempts[key], errors.given_up[key] = np.zeros(seconds), np.zeros(seconds)
                errors.messages[key] = row["message"]
            errors.attempts[key][row["second"]] += row["attempts"]
            errors.given_up[key][row["second"]] += row["given_up"]
    return errors
