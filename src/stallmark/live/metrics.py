"""The metrics of an experiment for Prometheus. Names and units follow its conventions: seconds, bytes, shares of one.

Counts of transactions begin at zero with every run; those of files are the server's own, since it started. Prometheus
takes a count that falls for one that began again.
"""

from collections.abc import Iterable, Iterator

import numpy as np
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Metric, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

import stallmark
from stallmark.experiment.progress import Phase
from stallmark.experiment.status import State
from stallmark.live.view import WAITS, FollowedRun, Seen, mean
from stallmark.record import histogram as hdr
from stallmark.record.devices import is_emulated

CONTENT_TYPE = CONTENT_TYPE_LATEST
BUCKETS_S = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)
LATELY_S = 5
"""The seconds that a gauge is the mean of."""
_KINDS = (("read", "reads"), ("write", "writes"), ("extend", "extends"), ("sync", "syncs"))


def exposition(seen: Seen) -> bytes:
    """Return all metrics in Prometheus' text format."""
    registry = CollectorRegistry()
    registry.register(_Metrics(seen))
    return generate_latest(registry)


class _Metrics(Collector):
    def __init__(self, seen: Seen):
        self._seen = seen

    def collect(self) -> Iterator[Metric]:
        yield from _experiment_metrics(self._seen)
        if run := self._seen.running:
            yield from _run_metrics(run)
            yield from _transaction_metrics(run)
            yield from _file_metrics(run)


def _experiment_metrics(seen: Seen) -> Iterator[Metric]:
    status = seen.status
    info = GaugeMetricFamily(
        "stallmark_experiment_info", "The experiment. Always 1.", labels=["experiment", "scenario", "stallmark"]
    )
    info.add_metric([seen.folder.name, seen.scenario.name, stallmark.__version__], 1)
    yield info
    phases = GaugeMetricFamily("stallmark_phase", "1 for the phase that it is in, 0 for the others.", labels=["phase"])
    # A series for every phase, so that queries need no list of the phases.
    for phase in sorted({*Phase, *State, seen.phase}):
        phases.add_metric([phase], phase == seen.phase)
    yield phases
    yield GaugeMetricFamily("stallmark_runs_planned", "Runs that the experiment is to have.", value=status.planned)
    yield GaugeMetricFamily("stallmark_runs_whole", "Runs that are whole.", value=status.whole)
    if status.left_s is not None:
        yield GaugeMetricFamily(
            "stallmark_time_left_seconds", "Time left, about; before a run is whole as estimated.", value=status.left_s
        )


def _run_metrics(run: FollowedRun) -> Iterator[Metric]:
    made = run.record.manifest
    info = GaugeMetricFamily(
        "stallmark_run_info", "The run under way. Always 1.",
        labels=["variant", "run", "repeat", "server", "server_version", "emulated"],
    )  # fmt: skip
    info.add_metric(
        [
            made.variant.name, str(made.sequence), str(made.repeat), made.server.product, made.server.version,
            str(is_emulated(made)).lower(),
        ], 1,
    )  # fmt: skip
    yield info
    # A single second is noise at low rates.
    last = slice(max(0, run.seconds - LATELY_S), run.seconds)
    if not run.sums:
        return
    for name, help, line in (
        ("stallmark_virtual_users", "Virtual users that are running.", "users"),
        ("stallmark_buffer_pool_hit_ratio", "Share of the page requests that the buffer pool answered.", "hit_share"),
    ):
        if (value := mean(run.sums, line, last)) is not None:
            yield _gauge(run, name, help, [([], value)])
    waiting = [([line.removeprefix("waits_")], mean(run.sums, line, last)) for line in WAITS]
    yield _gauge(
        run, "stallmark_waiting_sessions", "Sessions of users that wait, by class of wait; mean of the last seconds.",
        [(labels, value) for labels, value in waiting if value is not None], ["wait_class"],
    )  # fmt: skip
    errors = CounterMetricFamily(
        "stallmark_errors", "Failed attempts at transactions, retries included.",
        labels=["variant", "transaction", "error_class"],
    )  # fmt: skip
    for (transaction, error_class), attempts in run.errors.items():
        errors.add_metric([made.variant.name, transaction, error_class], attempts)
    yield errors


def _gauge(
    run: FollowedRun, name: str, help: str, values: Iterable[tuple[list[str], float]], labels: Iterable[str] = ()
) -> Metric:
    """Return a gauge with the variant and the step of the present."""
    number, _ = run.step_at(run.seconds - 1)
    steps = run.record.manifest.steps
    here = [run.record.manifest.variant.name, steps[number].name if steps else ""]
    metric = GaugeMetricFamily(name, help, labels=["variant", "step", *labels])
    for more, value in values:
        metric.add_metric([*here, *more], value)
    return metric


def _transaction_metrics(run: FollowedRun) -> Iterator[Metric]:
    labels = ["variant", "step", "phase", "transaction"]
    ended = CounterMetricFamily("stallmark_transactions", "Transactions that ended.", labels=[*labels, "outcome"])
    retries = CounterMetricFamily("stallmark_transaction_retries", "Attempts after the first.", labels=labels)
    times = HistogramMetricFamily(
        "stallmark_response_time_seconds", "Time of transactions that were committed or rolled back, from the moment "
        "they were due.", labels=labels,
    )  # fmt: skip
    made = run.record.manifest
    for (number, measured, transaction), tally in sorted(run.tallies.items()):
        step = made.steps[number].name if made.steps else ""
        here = [made.variant.name, step, Phase.MEASURING if measured else Phase.WARM_UP, transaction]
        for outcome in ("committed", "rolled_back", "failed"):
            ended.add_metric([*here, outcome], tally.counts[outcome])
        retries.add_metric(here, tally.counts["retries"])
        below = np.append(0, np.cumsum(tally.latencies.counts))
        places = np.searchsorted(hdr.TOPS_US, np.array(BUCKETS_S) * 1e6, side="right")
        counted = [(str(limit), float(below[place])) for limit, place in zip(BUCKETS_S, places, strict=True)]
        times.add_metric(here, [*counted, ("+Inf", float(below[-1]))], tally.counts["latency_us"] / 1e6)
    yield from (ended, retries, times)


def _file_metrics(run: FollowedRun) -> Iterator[Metric]:
    labels = ["variant", "file", "role", "kind"]
    stall = CounterMetricFamily("stallmark_io_stall_seconds", "Time that the server waited for I/O.", labels=labels)
    operations = CounterMetricFamily("stallmark_io_operations", "I/Os of the server.", labels=labels)
    bytes_ = CounterMetricFamily("stallmark_io_bytes", "Bytes that the server read and wrote.", labels=labels)
    variant = run.record.manifest.variant.name
    for file, row in sorted(run.files.items()):
        for kind, counter in _KINDS:
            here = [variant, file, row["kind"] or "", kind]
            if (stalled := row.get(f"{kind}_stall_ms")) is not None:
                stall.add_metric(here, stalled / 1000)
            if (count := row.get(counter)) is not None:
                operations.add_metric(here, count)
            if (size := row.get(f"{kind}_bytes")) is not None:
                bytes_.add_metric(here, size)
    yield from (stall, operations, bytes_)
