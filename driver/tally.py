"""Aggregates samples per second and transaction type, so that executors send histograms and not samples."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from stallmark.driver.client import COMMITTED, GIVEN_UP, ROLLED_BACK, Failure
from stallmark.engines.base import OwnIO
from stallmark.record import histogram as hdr

SECOND_NS = 1_000_000_000
USER_SUMS = ("busy_us", "think_us", "lag_us")

SAMPLE = np.dtype(
    [(name, np.int64) for name in ("transaction", "scheduled", "started", "ended", "free_since", "outcome", "retries")]
)
"""A client's sample; times are monotonic ns."""

ENDED = list(SAMPLE.names or ()).index("ended")


def as_table(samples: Sequence[tuple]) -> np.ndarray:
    """Samples as a structured array of SAMPLE, shape (n,)."""
    return np.array(samples, SAMPLE)


def transaction_rows(samples: np.ndarray, names: Sequence[str], start_ns: int) -> list[dict[str, Any]]:
    """Rows of the record's `transactions` table. `start_ns` is the run's start on the monotonic clock."""
    return [
        _transaction_row(second, name, group[group["transaction"] == index])
        for second, group in _by_second(samples, start_ns)
        for index, name in enumerate(names)
        if (group["transaction"] == index).any()
    ]


def _transaction_row(second: int, name: str, group: np.ndarray) -> dict[str, Any]:
    done = group[group["outcome"] != GIVEN_UP]
    latency = (done["ended"] - done["scheduled"]) // 1000
    service = (done["ended"] - done["started"]) // 1000
    encoded = hdr.encode(latency)
    return {
        "second": second,
        "transaction": name,
        "committed": int((done["outcome"] == COMMITTED).sum()),
        "rolled_back": int((done["outcome"] == ROLLED_BACK).sum()),
        "failed": len(group) - len(done),
        "retries": int(group["retries"].sum()),
        "latency_us": int(latency.sum()),
        "service_us": int(service.sum()),
        "latency": encoded,
        "service": encoded if np.array_equal(latency, service) else hdr.encode(service),
    }


def user_rows(samples: np.ndarray, start_ns: int) -> dict[int, dict[str, Any]]:
    """Per second: what the users' time was spent on, in µs. Keys as in the record's `users` table."""
    rows: dict[int, dict[str, Any]] = defaultdict(lambda: dict.fromkeys(USER_SUMS, 0) | {"lag_max_us": 0})
    for second, group in _by_second(samples, start_ns):
        # A user still busy at the scheduled time was late because of the server; only the rest is our own lag.
        lag = (group["started"] - np.maximum(group["scheduled"], group["free_since"])) // 1000
        think = np.maximum(0, group["scheduled"] - group["free_since"]) // 1000
        rows[second] = {
            "busy_us": int((group["ended"] - group["started"]).sum() // 1000),
            "think_us": int(think.sum()),
            "lag_us": int(lag.sum()),
            "lag_max_us": int(lag.max()),
        }
    return rows


def deferred_rows(attended: np.ndarray, waiting: dict[int, int], start_ns: int) -> list[dict[str, Any]]:
    """Per second: how many tasks were taken up and how late, in µs. `waiting`: due and not taken, by second. Keys as in
    the record's `deferred` table."""
    rows: dict[int, dict[str, Any]] = defaultdict(lambda: {"taken": 0, "late_us": 0, "late_max_us": 0, "waiting": 0})
    for second, count in waiting.items():
        rows[second]["waiting"] = count
    for second, group in _by_second(attended, start_ns):
        late = (group["started"] - group["scheduled"]) // 1000
        rows[second] |= {"taken": len(group), "late_us": int(late.sum()), "late_max_us": int(late.max())}
    return [{"second": second} | row for second, row in rows.items()]


def own_io_rows(looks: Iterable[tuple], names: Sequence[str], start_ns: int) -> list[dict[str, Any]]:
    """Rows of the record's `transaction_io` table. A look: the transaction, when it ended, and what is in an OwnIO."""
    groups: dict[tuple[int, int], list[OwnIO]] = defaultdict(list)
    for index, ended, *io in looks:
        groups[(ended - start_ns) // SECOND_NS, index].append(OwnIO(*io))
    return [
        {"second": second, "transaction": names[index], "sampled": len(group)} | summed([io._asdict() for io in group])
        for (second, index), group in groups.items()
    ]


def summed(rows: Sequence[dict[str, Any]], names: Sequence[str] = OwnIO._fields) -> dict[str, int | None]:
    """By column; None where one of the rows has none."""
    return {name: None if any(row[name] is None for row in rows) else sum(row[name] for row in rows) for name in names}


def parts_by_second(begin_ns: int, end_ns: int) -> Iterator[tuple[int, int]]:
    """Cut a stretch of a run where its seconds end: (second, ns of the stretch in it)."""
    while begin_ns < end_ns:
        second = begin_ns // SECOND_NS
        cut = min(end_ns, (second + 1) * SECOND_NS)
        yield second, cut - begin_ns
        begin_ns = cut


def _by_second(samples: np.ndarray, start_ns: int) -> Iterator[tuple[int, np.ndarray]]:
    seconds = (samples["ended"] - start_ns) // SECOND_NS
    for second in np.unique(seconds).tolist():
        yield second, samples[seconds == second]


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
