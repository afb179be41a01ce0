"""Findings about a run that no figure shows: steps that were not measured or not begun, and processes that stopped
reporting."""

from collections import Counter
from collections.abc import Iterator

from stallmark.analysis.finding import Finding, Kind, caution, info
from stallmark.record.manifest import Manifest
from stallmark.record.reader import Record
from stallmark.stats.thresholds import CLOCKS_APART_MS, UNREPORTED_S


class RunKind(Kind):
    COLLECTOR_OUTAGE = "collector_outage"
    SAMPLES_MISSED = "samples_missed"
    SAMPLES_INCOMPLETE = "samples_incomplete"
    CLOCKS_APART = "clocks_of_load_machines_apart"
    ARRIVALS_WAITED = "arrivals_waited_at_the_end"
    QUERIES_LEFT = "queries_of_an_open_loop_left"
    DEFERRED_WAITED = "deferred_transactions_waited_at_the_end"
    UNFINISHED = "transactions_did_not_end"
    EXECUTORS_SILENT = "executors_silent"
    EXECUTORS_LOST = "executors_lost"
    MAINTENANCE_FAILED = "maintenance_failed"


def run_notes(record: Record) -> list[Finding]:
    manifest = record.manifest
    return [*_load(manifest), *_lost_executors(record), *_maintenance(record), *_collectors(manifest)]


def _load(manifest: Manifest) -> Iterator[Finding]:
    apart_ms = max((machine.clock_within_ms for machine in manifest.load_machines), default=0.0)
    if apart_ms > CLOCKS_APART_MS:
        yield caution(RunKind.CLOCKS_APART, apart_ms=apart_ms)
    if count := manifest.left_waiting.arrivals:
        yield caution(RunKind.ARRIVALS_WAITED, transactions=count)
    for load in manifest.loads:
        if load.kind == "streams" and load.arrivals != "closed" and (load.left_waiting.arrivals or load.given_up):
            yield (caution if load.left_waiting.arrivals else info)(
                RunKind.QUERIES_LEFT, load=load.name, waiting=load.left_waiting.arrivals, given_up=load.given_up
            )
    if count := manifest.unheard.unfinished:
        yield caution(RunKind.UNFINISHED, transactions=count)
    if count := manifest.left_waiting.deferred:
        yield info(RunKind.DEFERRED_WAITED, transactions=count, cleared_by_next=manifest.workload.opening is not None)
    if count := manifest.unheard.silent:
        yield caution(RunKind.EXECUTORS_SILENT, executors=count)


def _lost_executors(record: Record) -> Iterator[Finding]:
    """Yield the number of lost executors, with the commits of each transaction that the database counted and no
    executor reported."""
    made = record.manifest
    if not made.unheard.lost:
        return
    seen: Counter[str] = Counter()
    for batch in record.batches("transactions", ["transaction", "committed"]):
        for name, committed in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            seen[name] += committed
    counted = {
        name: numbers.after - numbers.before
        for name, numbers in made.workload.counted.items()
        if numbers.after is not None
    }
    more = {name: number - seen[name] for name, number in counted.items()}
    yield caution(
        RunKind.EXECUTORS_LOST, executors=made.unheard.lost, within_s=UNREPORTED_S, unreported=more if counted else None
    )


def _maintenance(record: Record) -> Iterator[Finding]:
    """Yield the error by which maintenance ended: a statement that failed is not tried again."""
    for batch in record.batches("maintenance", ["kind", "error"]):
        for row in batch.to_pylist():
            if row["error"]:
                yield caution(RunKind.MAINTENANCE_FAILED, maintenance=row["kind"], server_said=row["error"])


def _collectors(manifest: Manifest) -> Iterator[Finding]:
    for collector in manifest.collectors.values():
        for outage in collector.outages:
            yield caution(
                RunKind.COLLECTOR_OUTAGE,
                collector=collector.title,
                since_s=outage.since_s,
                until_s=outage.until_s,
                error=outage.reason,
            )
        if collector.missed:
            yield caution(RunKind.SAMPLES_MISSED, collector=collector.title, samples=collector.missed)
        if collector.incomplete:
            yield caution(RunKind.SAMPLES_INCOMPLETE, collector=collector.title, lacks=collector.incomplete)
