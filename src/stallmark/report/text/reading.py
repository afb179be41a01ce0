"""The sentences of pages that belong to no finding: how to read a section, and descriptions of charts."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeGuard

from stallmark import format
from stallmark.analysis.step_summary import StepSummary
from stallmark.format import NBSP, NONE, TOO_SMALL, percent
from stallmark.report.text import Template
from stallmark.stats.thresholds import COUNTS_AGREE

# Descriptions of charts, for a line under the title and for readers who cannot see them.


@dataclass(frozen=True)
class Panel:
    """Steps that may be drawn on common axes: those of emulated arrays, or those of real devices."""

    steps: list[StepSummary]
    emulated: bool
    title: str


@dataclass(frozen=True)
class ChartLine:
    """One line of a chart: a value of every step, and its style."""

    name: str
    value: Callable[[StepSummary], float | None]
    dash: str = "solid"
    opacity: float = 1.0
    rate: bool = False  # compared by its ratios


def summary_of(parts: Sequence[Panel], metrics: Sequence[ChartLine], labels: dict[str, str], own_scale: bool) -> str:
    """Return the extremes of every panel and metric."""
    sentences = []
    for panel in parts:
        for metric in metrics:
            values = [(v, labels[s.key]) for s in panel.steps if is_finite(v := metric.value(s))]
            where = f"{panel.title}: " if len(parts) > 1 else ""
            metric_name = f"{metric.name} " if len(metrics) > 1 else ""
            sentences.append(f"{where}{metric_name}{_extremes(values) if values else 'not measured'}.")
    if own_scale:
        sentences.append("The bare device is drawn on its own scale.")
    return " ".join(sentences)


def _extremes(values: list[tuple[float, str]]) -> str:
    """Return the lowest and the highest value, in the order of the steps."""
    numbers = [value for value, _ in values]
    if len(numbers) > 1 and format.number(min(numbers)) == format.number(max(numbers)):
        return f"{format.number(numbers[0])} at every step"
    ends = sorted({numbers.index(min(numbers)), numbers.index(max(numbers))})
    return " to ".join(f"{format.number(values[i][0])} at {values[i][1]}" for i in ends)


def reading_of(parts: Sequence[Panel], metric: ChartLine, labels: dict[str, str]) -> str:
    """Return one line for sighted readers: the extremes, emulated and bare."""
    texts = []
    for panel in parts:
        if values := [(v, labels[s.key]) for s in panel.steps if is_finite(v := metric.value(s))]:
            texts.append(_extremes(values))
    return "; ".join(texts) or "Not measured."


def is_finite(value: float | None) -> TypeGuard[float]:
    return value is not None and math.isfinite(value)


throughput_method = Template(
    "Committed transactions of the measured interval divided by its seconds. Each point is one measured interval "
    "({measured}, {commits} commits)."
)


def primary_method(name: str, nominal: Sequence[float]) -> str:
    """Return the method of the chart of the primary transaction; `nominal` are the rates of the databases' sizes."""
    rates = " or ".join(map(format.number, nominal))
    size = f" The nominal rate for the size of the database is {rates} per second." if nominal else ""
    return f"{name} committed within the measured interval divided by its seconds.{size}"


METHODS = {
    "latency": (
        "Scheduled to ended, retries included, from an HDR histogram with 3 significant digits over the whole "
        "measured interval. Percentiles with too small a sample are not drawn."
    ),
    "reads": "Reads of data files that left the server, over the measured interval, divided by its commits.",
    "read-ms": (
        "Volume-weighted: stall divided by reads of the measured interval. Mean of intervals: the mean of the "
        "per-second means, as monitoring tools draw it; quiet seconds count as much as busy ones."
    ),
    "iops": ("Reads and writes of data files as the server counts them, over the measured interval, without the log."),
    "mb": "Bytes read from and written to data files as the server counts them, over the measured interval.",
}
"""The method of each chart of metrics, by the chart's id."""
TRANSACTION_LATENCY = "Latency of this transaction type, scheduled to ended, retries included (HDR histogram)."
LINE_READ_TIME = "read time, ms per read of a data file"
LINE_READ_STALL = "read stall, ms summed over all users per second"
LINE_CHECKPOINTS = "pages per second that checkpoints wrote"
LINE_BACKGROUND_WRITER = "pages per second that the background writer wrote"
LINE_FLASH_SHARE = "share of the reads that flash answered"
WAITS_EXPLAINED = {
    "replica": "Replica: a commit waited until another server had the log.",
    "latch": "Latch: waiting for a page or a structure in memory.",
    "memory": "Memory: waiting for a grant or an allocation of memory.",
    "parallel": "Parallel: workers of a query waiting for each other.",
    "worker": "Worker: no thread was free to run it.",
}
"""Classes that are shown only if any session waited in them."""
CORRELATION_UNIT = "correlation of per-second changes, with its 95 % interval"
WAITS = (
    "Each poll reads the state of every user’s session; shares are of all observations in the measured interval. I/O: "
    "data files. WAL: writing and syncing the log. Lock: waiting for another transaction. CPU: running or ready to "
    "run. Client: the server waited for the user. "
)
WAITS_ARE_NO_CAUSE = "A share of time is not a cause: with faster I/O, users may wait for something else instead."


correlation_method = Template(
    "Pearson’s r of the changes from one second to the next (differenced series, so that a common trend is not "
    "mistaken for a connection), 95 % interval by Fisher’s z; unit of the stall: {unit}. n is the number of "
    "changes. A value near zero is expected with a saturated device, because users wait all the time."
)


def in_words(unit: str, rows: Sequence[str]) -> str:
    """Return the first picture of a report in words, for readers who cannot see it."""
    return f"{unit} and mean response time. {'; '.join(rows)}."


def timeline_method(widest_s: int) -> str:
    """Return the method of the chart over time, where a point is the mean of at most `widest_s` seconds."""
    density = "Every second is drawn."
    if widest_s > 1:
        density = (
            f"Lines are means of {format.seconds(widest_s)}; behind them are the lowest and the highest second of each "
            "mean."
        )
    return (
        "Per-second counters; second 0 is the start of each run’s first measured interval. Warm-up is shaded and "
        f"drawn thin, and excluded from the figures above. {density}"
    )


correlation = Template("{step}: r {r:coefficient}, 95 % from {low:coefficient} to {high:coefficient}.")


# The sentences of pages that belong to no finding: how to read a section, and what is said where it is empty.

WRITTEN = (
    "Written by Stallmark from the run records named under Environment. Nothing in this file is loaded from elsewhere."
)
ON_PAPER = (
    "The printed page lacks the values and the method of each chart, and the tables of single steps and of settings: "
    "these are in the HTML file."
)
NO_SCRIPT = "The charts need JavaScript; the drawing at the top and all tables do not."
NO_FINDING = "No finding: the record does not support one."

# The summary of steps. ----------------------------------------------------------------------------------------

PICTURE = (
    "Bars are means over runs; a tick is one run, a line the 95 % interval over three runs or more. Response time: "
    "scheduled to ended, mean of all transactions, split by the sampled states of sessions and the device’s own "
    "counters. Rest: other I/O, driver and network, waiting for a free user, and unclassified waits."
)
CEILING = (
    "Latency over throughput at every level that was tried. Filled marks met the service level, crosses did not. The "
    "search doubled the load until a level failed, then halved the gap, then repeated both ends."
)
MEMORY_CURVE = (
    "Throughput rises with memory, and reads per transaction fall. An orange cross is the prediction for a size from "
    "the other sizes alone: if it is away from the point, the curve bends more than the other sizes show."
)
THRESHOLDS = (
    "Limits that the scenario declared before anything ran. Steps that were cut short or are invalid have no verdict."
)
SERVICE_LEVEL = "Reads of the data files compared with the limit that the scenario sets."
SERVICE_LEVEL_BY_PHASE = "Reads of the data files compared with the limit that the scenario sets, phase by phase."
DOUBTFUL = "Hollow marks and hatched bars: steps with a serious mark in the summary."


def columns(primary: str | None, missing_percentile: bool) -> str:
    """Return the explanation of the summary's columns; `primary` is the title of the transaction whose rate is the
    result."""
    rate = "TPS: committed transactions per second of the measured interval. Latency: scheduled"
    if primary:
        rate = (
            f"{primary}: commits per second of the measured interval; nominal: the rate for the size of the database; "
            "all tx: committed transactions of every type. Latency: of every type, scheduled"
        )
    return (
        f"{rate} to ended, retries included. Reads and read time: data files as the server counts them; the time is "
        "volume-weighted (stall ÷ reads). Writes: extensions of files included. MB/s is 10⁶ bytes, reads and writes. "
        "Hits: share of block requests answered by the pool. Busy: share of the host’s CPU time, and of the data "
        f"device’s time. {NONE}: not measured.{f' {PERCENTILE_MISSING}' if missing_percentile else ''}"
    )


PERCENTILE_MISSING = f"{NONE}*: {TOO_SMALL}."


# Sections of runs of transactions. ----------------------------------------------------------------------------

CORRELATION = (
    "Does throughput move with the stall? Correlation of per-second changes; a bar that spans zero shows no connection."
)
GATES = (
    "Conditions under which the figures represent this workload. A step that fails a gate is marked, and is not "
    "compared. The gate “p90 limits” only marks it."
)
STEADINESS = (
    "Without a steady state, figures depend on the time of measurement. Percentages are of the mean over the "
    "measured interval."
)
NO_ROW_WAITS = "No sampled session waited for a row that another session held."
TRANSACTIONS = (
    "Latency in milliseconds from scheduled to ended, retries included. Rolled back: as the workload intends; failed: "
    "given up after an error."
)
STATEMENTS = (
    "Latency: milliseconds from the request to the answer, of successful executions. Rows: the rows returned, or the "
    "rows changed if a statement returns none. The begin and the commit of a transaction are not listed."
)
_AGREE = (
    f"Counts and bytes should agree within {percent(COUNTS_AGREE).replace(' ', NBSP)}; those that do not are marked."
)
AGREEMENT = (
    f"{_AGREE} Mean times are comparable only if they are at least 2{NBSP}ms and the CPUs less than 70{NBSP}% busy: on "
    "a fast device the server’s times include scheduling."
)
RATES = (
    "Rates are over the seconds between a source’s own first and last sample in the measured interval. Δ: device "
    "relative to server. Means without another label are volume-weighted (stall ÷ count of the measured interval); "
    "“of intervals” is the mean of per-second means, as monitoring tools draw it."
)
NO_AGREEMENT = "No step has both counters: agreement could not be checked."
NO_CALL_FAILED = "No call failed in any measured interval."
NOT_CHECKED = "No consistency condition was checked."


def conditions_held(held: int, checked: int, names: Sequence[str]) -> str:
    return f"{held} of {checked} hold: {'; '.join(names)}."


# Runs of queries. ---------------------------------------------------------------------------------------------

PARALLEL = "Each query with 1, 2 and more processes or threads, if the server granted that many."
STREAM_WAITS = "States of the streams’ sessions, sampled several times a second, without the workers of a query."
PLANS = "Plans are in the folder “plans” of each record, by query and hash."
AGREEMENT_OF_QUERIES = (
    f"{_AGREE} The embedded engine reads temporary files without direct I/O: neither count includes these reads."
)
NO_QUERY_FAILED = "No query failed, and none took longer than its timeout."

# Terminals. ---------------------------------------------------------------------------------------------------


def similar_runs(others: int) -> str:
    return f"Similar in {others} other run{'s' * (others > 1)}."


def not_shown(columns: Sequence[str]) -> str:
    return f"Not shown at this width: {', '.join(columns)}."
