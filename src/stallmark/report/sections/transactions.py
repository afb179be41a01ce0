"""The tables by transaction type: counts and latencies of each step, and the 90th percentiles of all steps."""

from collections.abc import Sequence

from stallmark import format
from stallmark.analysis.experiment import ExperimentSummary
from stallmark.analysis.read.queries import in_order
from stallmark.analysis.read.server_summary import TransactionReads
from stallmark.analysis.read.transactions import TransactionSummary
from stallmark.analysis.step_summary import StepSummary
from stallmark.analysis.validity.kinds import GateKind
from stallmark.format import spoken
from stallmark.report.labels import step_labels
from stallmark.report.table import PERCENTILES, Cell, Table, percentile, percentile_notes, shown
from stallmark.report.text import gates as gate_words
from stallmark.report.text import queries as query_words
from stallmark.report.text import read as read_words
from stallmark.stats.thresholds import SHARE_SAMPLES

HEADER = [
    *("transaction", "count", "achieved", "deck", "per s", "mean"),
    *("p50", "p90", "limit", "p95", "p99", "p99.9", "max"),
    *("rolled back", "failed", "retries", "errors"),
]
GROUPS = [("", 2), ("Share of users’", 2), ("", 1), ("Latency, ms", 8), ("Not committed", 4)]


def by_step(experiment: ExperimentSummary) -> list[tuple[str, Table]]:
    """Return a table for each step, with its name; one for all of them where there is one type of transaction."""
    labels = step_labels(experiment)
    several = len({t.name for s in experiment.steps for t in s.transactions}) > 1
    if not several:
        rows = [[labels[s.key], *_row(t, s)] for s in experiment.steps for t in s.transactions]
        return [("", _table(["step", *HEADER], rows, [("", 3), *GROUPS[1:]], experiment.steps))]
    return [
        (labels[step.key], _table(HEADER, [*(_row(t, step) for t in step.transactions), _all(step)], GROUPS, [step]))
        for step in experiment.steps
    ]


def _row(one: TransactionSummary, step: StepSummary) -> list[str | Cell]:
    errors: dict[str, int] = {}
    for error in step.validity.errors:
        if error.transaction == one.name:
            errors[error.error_class] = errors.get(error.error_class, 0) + error.attempts
    off_mix = any(gate.kind == GateKind.MIX and gate.passed is False for gate in step.validity.gates)
    share = format.share(one.share)
    return [
        spoken(one.name),
        format.count(one.done),
        Cell(share, "apart") if off_mix and one.share is not None else share,
        format.share(one.deck_share),
        format.number(one.tps),
        format.number(one.latency_mean_ms),
        percentile(one.latency_ms.get("p50")),
        _p90(one),
        format.NONE if one.limit_s is None else format.number(one.limit_s * 1000),
        *(percentile(one.latency_ms.get(name)) for name in ("p95", "p99", "p99.9", "max")),
        *(format.count(n) for n in (one.rolled_back, one.failed, one.retries)),
        ", ".join(f"{name} {n:,}" for name, n in errors.items()) or format.NONE,
    ]


def _all(step: StepSummary) -> list[str | Cell]:
    return [
        "all",
        format.count(step.throughput.committed + step.throughput.rolled_back),
        *(format.NONE, format.NONE),
        format.number(step.throughput.tps),
        format.number(step.latency.mean_ms),
        *(percentile(step.latency.percentiles_ms.get(name)) for name in ("p50", "p90")),
        format.NONE,
        *(percentile(step.latency.percentiles_ms.get(name)) for name in ("p95", "p99", "p99.9", "max")),
        *(format.count(n) for n in (step.throughput.rolled_back, step.throughput.failed, step.throughput.retries)),
        format.NONE,
    ]


def _p90(one: TransactionSummary) -> Cell | str:
    """Return the 90th percentile, marked where more transactions than allowed took longer than the limit."""
    written = percentile(one.latency_ms.get("p90"))
    return Cell(str(written), "bad") if one.slow else written


def _table(
    header: list[str], rows: Sequence[Sequence[str | Cell]], groups: list[tuple[str, int]], steps: Sequence[StepSummary]
) -> Table:
    """Return a table without its empty columns: a share where there is no deck, a limit where none is set."""
    kept = [
        at
        for at, name in enumerate(header)
        if name in ("transaction", "count") or any(str(row[at]) != format.NONE for row in rows)
    ]
    spans, at = [], 0
    for name, span in groups:
        spans.append((name, sum(at <= column < at + span for column in kept)))
        at += span
    names = [header[at] for at in kept]
    return Table(
        names,
        [[row[at] for at in kept] for row in rows],
        frozenset(at for at, name in enumerate(names) if name in ("step", "transaction", "errors")),
        percentile_notes(v for s in steps for t in s.transactions for v in shown(t.latency_ms)),
        [(name, span) for name, span in spans if span],
    )


def limits(experiment: ExperimentSummary) -> Table | None:
    """Return the 90th percentile of each type in every step, against its limit; None where no type has one."""
    labels, steps = step_labels(experiment), experiment.steps
    kinds = {t.name: t for s in steps for t in s.transactions if t.limit_s is not None}
    if not kinds:
        return None
    rows: list[Sequence[str | Cell]] = []
    for name, kind in kinds.items():
        found = [next((t for t in s.transactions if t.name == name), None) for s in steps]
        rows.append(
            [
                spoken(name),
                format.number((kind.limit_s or 0) * 1000),
                *(format.NONE if one is None else _p90(one) for one in found),
            ]
        )
    return Table(
        ["transaction", "limit", *(labels[s.key] for s in steps)],
        rows,
        frozenset({0}),
        [
            gate_words.P90_LIMITS,
            *percentile_notes(t.latency_ms.get("p90") for s in steps for t in s.transactions if t.limit_s),
        ],
    )


def reads(experiment: ExperimentSummary) -> Table | None:
    """Return physical reads per transaction of each type in every step; None where they are not known."""
    labels, steps = step_labels(experiment), [step for step in experiment.steps if step.reads]
    names = dict.fromkeys(one.transaction for step in steps for one in step.reads)
    if not names:
        return None
    found = [{one.transaction: one for one in step.reads} for step in steps]
    rows: list[Sequence[str | Cell]] = [
        [spoken(name), *(_mean(mine[name], mine[name].reads) if name in mine else format.NONE for mine in found)]
        for name in names
    ]
    header = ["transaction", *(labels[step.key] for step in steps)]
    return Table(header, rows, frozenset({0}), _too_few(steps))


def reads_by_step(experiment: ExperimentSummary) -> list[tuple[str, Table]]:
    """Return a table of reads, with its name, for each step in which they are known."""
    labels = step_labels(experiment)
    header = ["transaction", "counted", "physical reads", "KiB read", "ms reading", "found in the pool", "of all reads"]
    return [
        (
            labels[step.key],
            Table(
                header,
                [
                    [
                        spoken(one.transaction),
                        format.count(one.counted),
                        _mean(one, one.reads),
                        _mean(one, one.read_bytes / 1024),
                        _mean(one, one.read_ms),
                        _mean(one, one.hits),
                        Cell(f"{format.NONE}*", "none") if one.too_few else format.share(one.share),
                    ]
                    for one in step.reads
                ],
                notes=[_of_reads([step]), *_too_few([step])],
                groups=[("", 2), ("Per transaction", 4), ("", 1)],
            ),
        )
        for step in experiment.steps
        if step.reads
    ]


def _mean(of: TransactionReads, value: float | None) -> Cell | str:
    """Return a mean per transaction; a dash where too few transactions were sampled."""
    return Cell(f"{format.NONE}*", "none") if of.too_few else format.number(value)


def _too_few(steps: Sequence[StepSummary]) -> list[str]:
    few = any(one.too_few for step in steps for one in step.reads)
    return [read_words.too_few(SHARE_SAMPLES)] if few else []


def _of_reads(steps: Sequence[StepSummary]) -> str:
    if all(one.sampled for step in steps for one in step.reads):
        return read_words.READS_SAMPLED
    return read_words.READS_BY_PROCEDURE


def service_times(experiment: ExperimentSummary) -> Table:
    labels = step_labels(experiment)
    return Table(
        ["step", "transaction", *PERCENTILES],
        [
            [labels[s.key], spoken(t.name), *(percentile(t.service_ms.get(p)) for p in PERCENTILES)]
            for s in experiment.steps
            for t in s.transactions
        ],
        frozenset({0, 1}),
        percentile_notes(v for s in experiment.steps for t in s.transactions for v in shown(t.service_ms)),
    )


def streams(experiment: ExperimentSummary) -> Table | None:
    """Return a column for each step that had concurrent streams; None where none had."""
    labels = step_labels(experiment)
    steps = [(step, step.streams) for step in experiment.steps if step.streams]
    if not steps:
        return None
    names = sorted({query.name for _, streams in steps for query in streams.queries}, key=in_order)
    rows: list[Sequence[str | Cell]] = [
        ["streams", *(format.count(streams.streams) for _, streams in steps)],
        ["queries per hour", *(format.number(streams.per_hour) for _, streams in steps)],
        ["failed", *(format.count(streams.failed) for _, streams in steps)],
    ]
    for name in names:
        found = [next((one for one in streams.queries if one.name == name), None) for _, streams in steps]
        rows.append([name, *(f"{format.number(one.seconds)} ({one.done})" if one else format.NONE for one in found)])
    return Table(["", *(labels[step.key] for step, _ in steps)], rows, notes=[query_words.CONCURRENT_STREAMS])
