"""The words for the analysis’ own names and for scales, as tables and sentences show them."""

from enum import StrEnum

from stallmark.analysis.compare.summary import Verdict
from stallmark.analysis.probe_comparison import DriftVerdict
from stallmark.analysis.read.times import CyclesBy
from stallmark.analysis.service_level import ReadSource
from stallmark.format import exact, factor, listed, number, per_second, percent, plural, quoted, size
from stallmark.record.manifest.workload import TradeHistory
from stallmark.stats.thresholds import REPLICATES

# The words for the analysis’ own names, as tables and sentences show them.

_WORDS: dict[StrEnum, str] = {
    CyclesBy.COUNT: "the server’s count of checkpoints",
    CyclesBy.BURSTS: "bursts of pages that checkpoints wrote",
    ReadSource.HISTOGRAM: "the server’s histogram of single reads",
    ReadSource.FILE_COUNTERS: "the server’s counters of its data files",
    DriftVerdict.UNKNOWN: "inconclusive",
}

UNSURE = {Verdict.NO_DIFFERENCE: "no difference shown", Verdict.INDICATIVE: "indicative only"}
"""The words next to a ratio whose verdict does not show a difference."""

PART_NAMES = {
    "read": "reads of data files",
    "log": "writing the log",
    "other_io": "writes and other I/O of files",
    "unknown": "I/O or waiting for a CPU",
    "lock": "locks",
    "cpu": "CPU",
    "client": "driver and network",
    "queue": "waiting for a free user",
    "rest": "everything else",
}
"""The words for the parts of the response time, PARTS of analysis/step_summary.py."""


def term(member: str) -> str:
    """Return the words for a member of an enum: its value with spaces, or words of its own."""
    own = _WORDS.get(member) if isinstance(member, StrEnum) else None
    return own or member.replace("_", " ")


def times(ratio: float, verdict: Verdict | None) -> str:
    """Return a ratio with the doubt in its verdict: "1.5×", "1.5×, indicative only"."""
    return f"{factor(ratio)}, {UNSURE[verdict]}" if verdict in UNSURE else factor(ratio)


def indicative(fewest_runs: int) -> str:
    """Return the doubt in figures of too few runs, as the end of a sentence; empty if there are enough of each."""
    return "" if fewest_runs >= REPLICATES else "; too few runs, so indicative only"


def scope(steps: list[str] | None) -> str:
    """Return the names of steps, quoted; None is every step."""
    return quoted(steps) if steps else "every step"


def in_brackets(detail: str | None) -> str:
    """Return a detail in brackets, to follow its subject: " (ext4)"; empty if unknown."""
    return f" ({detail})" if detail else ""


def first_three(names: list[str]) -> str:
    """List the first three of many names, and how many more there are."""
    return f"{listed(names[:3])}{f' and {len(names) - 3:,} more' if len(names) > 3 else ''}"


def rate(per_s: float, primary: str | None) -> str:
    """Return a rate with its unit: "45.0/s" of all transactions, "4.50 Trade-Results/s" of one type."""
    return f"{number(per_s)} {plural(primary)}/s" if primary else per_second(per_s)


def commit_rate(per_s: float, primary: str | None) -> str:
    """Return a rate of commits with its unit: "45.0 transactions/s", "4.50 Trade-Results/s" of one type."""
    return f"{number(per_s)} {plural(primary) if primary else 'transactions'}/s"


def pool(pool_bytes: int | None, pool_share: float | None) -> str:
    """Return "64 MiB (20 % of the data)"."""
    if pool_bytes is None:
        return "a buffer pool of unknown size"
    if pool_share is None:
        return size(pool_bytes)
    return f"{size(pool_bytes)} ({'all' if pool_share >= 1 else percent(pool_share)} of the data)"


# The words for the scale of a database.


def depth(days: float, trades_per_account: float) -> str:
    """Return the depth of a brokerage's history: "40 initial trade days (461 trades per account)"."""
    return f"{exact(days)} initial trade day{'s' * (days != 1)} ({number(trades_per_account)} trades per account)"


def history_line(history: TradeHistory) -> str:
    """Return the depth with the customers that it is of."""
    return f"{history.customers:,} customers, {depth(history.days, history.trades_per_account)}"
