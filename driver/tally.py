"""Aggregates samples per second and transaction type, so that executors send histograms and not samples."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from hdrh.histogram import HdrHistogram

from stallmark.driver.virtual_user import Failure, Sample
from stallmark.transactions.workload import Outcome

LOWEST_US, HIGHEST_US, DIGITS = 1, 3_600_000_000, 3
SECOND_NS = 1_000_000_000


def histogram() -> HdrHistogram:
    """An empty histogram of µs, 1 µs to 1 h with 3 significant digits."""
    return HdrHistogram(LOWEST_US, HIGHEST_US, DIGITS, b64_wrap=False)


def encode(values_us: np.ndarray) -> bytes:
    """The histogram of `values_us` in HDR's compressed form."""
    counts = histogram()
    for value, count in zip(
        *np.unique(np.clip(values_us, LOWEST_US, HIGHEST_US), return_counts=True), strict=True
    ):
        counts.record_value(int(value), int(count))
    return counts.encode()


def merge(blobs: Sequence[bytes]) -> bytes:
    """One encoded histogram out of several."""
    if len(blobs) == 1:
        return blobs[0]
    total = histogram()
    for blob in blobs:
        total.add(HdrHistogram.decode(blob, b64_wrap=False))
    return total.encode()


def transaction_rows(samples: Iterable[Sample], start_ns: int) -> list[dict[str, Any]]:
    """Rows of the record's `transactions` table. `start_ns` is the run's start on the monotonic clock."""
    groups: dict[tuple[int, str], list[Sample]] = defaultdict(list)
    for sample in samples:
        groups[(sample.ended - start_ns) // SECOND_NS, sample.transaction].append(sample)
    return [_transaction_row(second, name, group) for (second, name), group in groups.items()]


def _transaction_row(second: int, name: str, group: list[Sample]) -> dict[str, Any]:
    done = [sample for sample in group if sample.outcome is not None]
    times = np.array([(s.scheduled, s.started, s.ended) for s in done], np.int64).reshape(-1, 3)
    latency = (times[:, 2] - times[:, 0]) // 1000
    service = (times[:, 2] - times[:, 1]) // 1000
    encoded = encode(latency)
    return {
        "second": second,
        "transaction": name,
        "committed": sum(sample.outcome is Outcome.COMMITTED for sample in done),
        "rolled_back": sum(sample.outcome is Outcome.ROLLED_BACK for sample in done),
        "failed": len(group) - len(done),
        "retries": sum(sample.retries for sample in group),
        "latency_us": int(latency.sum()),
        "service_us": int(service.sum()),
        "latency": encoded,
        "service": encoded if np.array_equal(latency, service) else encode(service),
    }


def user_rows(samples: Iterable[Sample], start_ns: int) -> dict[int, dict[str, Any]]:
    """Per second: what the users' time was spent on, in µs. Keys as in the record's `users` table."""
    rows: dict[int, dict[str, Any]] = defaultdict(lambda: dict.fromkeys(USER_SUMS, 0) | {"lag_max_us": 0})
    for s in samples:
        row = rows[(s.ended - start_ns) // SECOND_NS]
        # A user still busy at the scheduled time was late because of the server; only the rest is our own lag.
        lag = (s.started - max(s.scheduled, s.free_since)) // 1000
        row["busy_us"] += (s.ended - s.started) // 1000
        row["think_us"] += max(0, s.scheduled - s.free_since) // 1000
        row["lag_us"] += lag
        row["lag_max_us"] = max(row["lag_max_us"], lag)
    return rows


USER_SUMS = ("busy_us", "think_us", "lag_us")


def error_rows(failures: Iterable[Failure], start_ns: int) -> list[dict[str, Any]]:
    """Rows of the record's `errors` table."""
    groups: dict[tuple[int, str, str, str], list[Failure]] = defaultdict(list)
    for failure in failures:
        second = (failure.at - start_ns) // SECOND_NS
        groups[second, failure.transaction, failure.error.kind, failure.error.code].append(failure)
    return [
        {
            "second": second,
            "transaction": transaction,
            "error_class": str(kind),
            "code": code,
            "attempts": len(group),
            "given_up": sum(failure.given_up for failure in group),
            "message": group[0].error.message,
        }
        for (second, transaction, kind, code), group in groups.items()
    ]
