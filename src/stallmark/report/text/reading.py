"""The sentences of pages that belong to no finding: how to read a section, and what is said where it is empty."""

from collections.abc import Sequence

from stallmark.format import NBSP, NONE, TOO_SMALL, percent
from stallmark.stats.thresholds import COUNTS_AGREE

WRITTEN = (
    "Written by Stallmark from the run records named under Environment. Nothing in this file is loaded from elsewhere."
)
ON_PAPER = (
    "On paper it lacks the numbers and the method of each chart, and the tables of single steps and of settings: they "
    "are in the file."
)
NO_SCRIPT = "The charts need JavaScript; the picture and all numbers do not."
NO_FINDING = "No finding: the record does not support one."

# The summary of steps. ----------------------------------------------------------------------------------------

PICTURE = (
    "Bars are means over runs; a tick is a run, a line the 95 % interval over three runs or more. Response time: "
    "scheduled to ended, mean of all transactions, divided by what sampled sessions were doing and what the device’s "
    "own counters account for. Rest: other I/O, driver and network, waiting for a free user, and waits of no known "
    "class."
)
CEILING = (
    "Every level that was tried: latency over throughput. A filled mark held the service level, a cross broke it. "
    "Levels come in the order of the search: doubled until one broke, then the gap halved, then both ends once more."
)
MEMORY_CURVE = (
    "Throughput rises with memory, and reads per transaction fall. An orange cross is what the curve says of a size "
    "that was left out: where it lies off the point, the curve bends more than its sizes tell."
)
THRESHOLDS = (
    "Limits that the scenario declared before anything ran. Steps that were cut short or are invalid have no verdict."
)
SERVICE_LEVEL = "Reads of the data files against the limit that the scenario sets."
SERVICE_LEVEL_BY_PHASE = "Reads of the data files against the limit that the scenario sets, phase by phase."
DOUBTFUL = "Hollow marks and hatched bars: steps with a serious mark in the summary."


def columns(primary: str | None, missing_percentile: bool) -> str:
    """Return how to read the columns of the summary; `primary` is the title of the one whose rate is the result."""
    rate = "TPS: committed transactions per second of the measured interval. Latency: scheduled"
    if primary:
        rate = (
            f"{primary}: those committed, per second of the measured interval; nominal: what the size of the database "
            "stands for; all tx: committed transactions of every type. Latency: of every type, scheduled"
        )
    return (
        f"{rate} to ended, retries included. Reads and read time: data files as the server counts them; the time is "
        "volume-weighted (stall ÷ reads). Writes: extensions of files included. MB/s is 10⁶ bytes, reads and writes. "
        "Hits: block requests answered by the pool. Busy: the host’s CPUs, and the data device’s time. "
        f"{NONE}: not measured."
        f"{f' {percentile_missing()}' if missing_percentile else ''}"
    )


def percentile_missing() -> str:
    return f"{NONE}*: {TOO_SMALL}."


# Sections of runs of transactions. ----------------------------------------------------------------------------

CORRELATION = (
    "Does throughput move with the stall? Correlation of per-second changes; a bar that spans zero shows no connection."
)
GATES = (
    "What must hold for the figures to stand for this workload. A step that fails a gate is marked, and not compared "
    "unless it is only slower than the limits."
)
STEADINESS = (
    "Figures are those of a steady state or they depend on when they were taken. Shares are of the mean over the "
    "measured interval."
)
NO_ROW_WAITS = "No session was seen waiting for another’s row."
TRANSACTIONS = (
    "Latency in milliseconds from scheduled to ended, retries included. Rolled back: as the workload intends; failed: "
    "given up."
)
_AGREE = (
    f"Counts and bytes should agree within {percent(COUNTS_AGREE).replace(' ', NBSP)}; those that do not are marked."
)
AGREEMENT = (
    f"{_AGREE} Mean times are comparable only from 2{NBSP}ms and below 70{NBSP}% CPU: on a fast device the server’s "
    "clock also holds scheduling."
)
RATES = (
    "Rates are over the seconds between a source’s own first and last sample in the measured interval. Δ: device "
    "against server. Means without a name are volume-weighted (stall ÷ count of the measured interval); “of intervals” "
    "is the mean of per-second means, as monitoring tools draw it."
)
NO_AGREEMENT = "No step has both counters: agreement could not be checked."
NO_CALL_FAILED = "No call failed in any measured interval."
NOT_CHECKED = "No condition was checked."


def conditions_held(held: int, checked: int, names: Sequence[str]) -> str:
    return f"{held} of {checked} hold: {', '.join(names)}."


# Other tools' measurements. -----------------------------------------------------------------------------------

# Runs of queries, and probes. ---------------------------------------------------------------------------------

PARALLEL = "Each query with 1, 2 and more processes or threads at work on it, as far as the server gave them to it."
STREAM_WAITS = (
    "What the sessions of the streams were doing, seen several times a second; the workers of a query are not among "
    "them."
)
PLANS = "Plans are in the folder “plans” of each record, by query and hash."
AGREEMENT_OF_QUERIES = f"{_AGREE} On the embedded engine temporary files are not direct: their reads are in neither."
NO_QUERY_FAILED = "No query failed, and none took longer than its timeout."
PROBE_CURVES = (
    "A closed loop for each point: so many I/Os are under way all the time. Once the rate no longer grows, more of "
    "them only wait longer."
)

# Terminals. ---------------------------------------------------------------------------------------------------


def much_the_same(others: int) -> str:
    return f"Much the same in {others} other run{'s' * (others > 1)} of it."


def not_shown(columns: Sequence[str]) -> str:
    return f"Not shown at this width: {', '.join(columns)}."
