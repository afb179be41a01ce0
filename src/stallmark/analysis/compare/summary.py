"""What a comparison says: plain values, as the report, the terminal, Markdown and `--json` show them.

B against A throughout, A the baseline. Ratios are B ÷ A of the geometric means of runs.
"""

from dataclasses import dataclass, field
from typing import Literal

from stallmark.analysis.cause.summary import Cause
from stallmark.stats.thresholds import CONFIDENCE

Verdict = Literal["better", "worse", "no difference shown", "indicative only", "not comparable"]
Direction = Literal["higher", "lower"]
PRIMARIES = ("tps", "latency", "p99", "read_ms")
"""Metrics a scenario may declare as its primary one: they are better in one direction."""


@dataclass(frozen=True)
class Ratio:
    """B ÷ A with its interval (CONFIDENCE). Interval, p and degrees of freedom are None with too few runs for them.

    `p` is of this metric alone, `p_adjusted` by Holm among its family (`family` metrics).
    """

    name: str
    unit: str
    better: Direction | None  # None: neither, it only explains
    a: float | None  # geometric mean of the runs; None where a run has no such value, or 0
    b: float | None
    runs_a: int
    runs_b: int
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    df: float | None = None
    p: float | None = None
    p_adjusted: float | None = None
    family: int = 1
    detectable: float | None = None  # smallest ratio less 1 that these runs show with the power of POWER

    @property
    def shown(self) -> bool | None:
        """Whether a difference is; None where that cannot be judged."""
        return None if self.p_adjusted is None else self.p_adjusted <= 1 - CONFIDENCE


@dataclass(frozen=True)
class WithinRun:
    """Ratio of the primary metric of one run each, its interval from means of batches of seconds.

    It holds the scatter of seconds within a run and not that between runs, which is usually larger: no verdict follows.
    """

    low: float
    high: float
    batches: int
    batch_s: int


@dataclass(frozen=True)
class Check:
    """Something that must hold for two sides to be compared. `passed` is None where the record does not tell."""

    name: str
    asks: str
    passed: bool | None
    figure: str
    sentence: str = ""  # why not, for one that failed; of another, what to be careful about


@dataclass(frozen=True)
class SideSummary:
    """One side: a variant, or a variant of one experiment, with its runs in the order they were made."""

    name: str
    runs: list[str]  # folders
    again: list[str]  # of them, those made again at the end (A′)
    differs: list[str]  # by intent: "buffer pool 64 MiB", "device …"
    emulated: bool


@dataclass(frozen=True)
class TransactionRatios:
    """One type of transaction: committed per second, and mean latency."""

    transaction: str
    rate: Ratio
    latency: Ratio


@dataclass(frozen=True)
class PairComparison:
    a: str
    b: str
    step: str
    users: int
    verdict: Verdict
    sentence: str
    primary: Ratio
    others: list[Ratio]
    transactions: list[TransactionRatios]
    checks: list[Check]
    cautions: list[str]
    method: str  # how runs were paired, and what the interval is
    order: str  # of the runs, as letters: "ABBAAB"
    confounded: bool  # with time: all runs of one side came first
    within_run: WithinRun | None = None
    cause: Cause | None = None

    @property
    def failed(self) -> list[Check]:
        return [check for check in self.checks if check.passed is False]


@dataclass(frozen=True)
class ComparisonSummary:
    """All pairs of a comparison. `primary` is the metric that the scenario declared before anything ran."""

    primary: str
    baseline: str
    sides: list[SideSummary]
    pairs: list[PairComparison] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)  # sentences: runs that count for nothing, and why
