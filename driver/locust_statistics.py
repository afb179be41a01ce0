"""Locust's statistics, filled with what executors report: once a second for each transaction, not at each of them."""

from functools import cache
from typing import Any

from locust.env import Environment
from locust.stats import RequestStats, StatsEntry, StatsError

from stallmark.driver.rows import ErrorRow, Rows, TransactionRow
from stallmark.format import display_name
from stallmark.record import histogram as hdr
from stallmark.redact import visible

SECONDS_KEPT = 60  # Locust shows the rate of the last ten


class LocustStatistics:
    """The statistics of an environment. A transaction's type is the name of its load."""

    def __init__(self, environment: Environment, start_s: float):
        """Take the run's start by the wall clock, as Locust dates requests."""
        self._environment = environment
        self._start_s = start_s

    def add(self, rows: Rows) -> None:
        for row in rows.transactions:
            self._count(row)
        for error in rows.errors:
            self._count_error(error)

    def _count(self, row: TransactionRow) -> None:
        stats = self._environment.stats
        entry = _as_entry(row, int(self._start_s) + row.second, stats)
        for whole in (stats.entries[entry.name, entry.method], stats.total):
            whole.extend(entry)
            for per_second in (whole.num_reqs_per_sec, whole.num_fail_per_sec):
                while len(per_second) > SECONDS_KEPT:
                    del per_second[min(per_second)]

    def _count_error(self, row: ErrorRow) -> None:
        """Count transactions that were given up as failures, and all failed attempts as exceptions."""
        name, text = display_name(row.transaction), visible(f"{row.message} ({row.code})")
        seen_s = self._start_s + row.second
        if row.given_up:
            key = StatsError.create_key(row.load, name, text)
            failure = self._environment.stats.errors.setdefault(key, StatsError(row.load, name, text))
            failure.occurrences += row.given_up
            failure.first_seen, failure.last_seen = failure.first_seen or seen_s, seen_s
        if self._environment.runner:
            exceptions = self._environment.runner.exceptions
            note = f"{name}: {row.error_class}. Attempts that were tried again are counted as well."
            known = exceptions.setdefault(
                hash((row.load, name, text)), {"count": 0, "msg": text, "traceback": note, "nodes": {row.load}}
            )
            known["count"] += row.attempts


def _as_entry(row: TransactionRow, second: int, stats: RequestStats) -> StatsEntry:
    entry: Any = StatsEntry(stats, display_name(row.transaction), row.load)  # Locust's times are whole ms by its types
    places, counts = hdr.used(row.latency)
    labels = _labels_ms()
    for place, count in zip(places.tolist(), counts.tolist(), strict=True):
        entry.response_times[labels[place]] += count
    if len(places):
        entry.min_response_time, entry.max_response_time = labels[int(places[0])], labels[int(places[-1])]
    entry.total_response_time = row.latency_us / 1000
    # Those given up have no response time.
    entry.num_none_requests = entry.num_failures = row.failed
    entry.num_requests = row.committed + row.rolled_back + row.failed
    entry.num_reqs_per_sec[second] = entry.num_requests
    if row.failed:
        entry.num_fail_per_sec[second] = row.failed
    # The earlier start counts, which is that of the last reset.
    entry.start_time = float("inf")
    entry.last_request_timestamp = second + 1
    return entry


@cache
def _labels_ms() -> list[float]:
    """Return the response time of each bucket with two digits, as Locust rounds: it rounds to whole ms below 100."""
    return [float(f"{(low + high) / 2000:.2g}") for low, high in zip(hdr.VALUES_US, hdr.TOPS_US, strict=True)]
