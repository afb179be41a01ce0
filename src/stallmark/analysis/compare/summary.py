"""The values that a comparison returns, as the report, the terminal, Markdown and `--json` show them.

B against A throughout, A the baseline. Ratios are B ÷ A of the geometric means of runs.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from stallmark.analysis.cause_evidence import Cause
from stallmark.analysis.finding import Finding, Kind, Severity
from stallmark.analysis.metrics import Direction
from stallmark.analysis.rules import Rule
from stallmark.stats.thresholds import CONFIDENCE


class Verdict(StrEnum):
    BETTER = "better"
    WORSE = "worse"
    NO_DIFFERENCE = "no_difference_shown"
    INDICATIVE = "indicative_only"
    NOT_COMPARABLE = "not_comparable"


@dataclass(frozen=True)
class Claim:
    """The statement on B against A that a report may make, as compare/claims.py decides it."""

    verdict: Verdict
    ratio: float | None = None  # B ÷ A; None if they must not be compared
    reasons: tuple[Finding, ...] = ()  # why they must not be compared

    @property
    def comparable(self) -> bool:
        return self.verdict is not Verdict.NOT_COMPARABLE

    @property
    def decided(self) -> bool:
        """Return True if there are runs enough for a verdict, and they may be compared."""
        return self.verdict not in (Verdict.NOT_COMPARABLE, Verdict.INDICATIVE)


class CheckKind(Kind):
    """Conditions for a comparison of two sides. The facts are the observed values."""

    METRIC_DECLARED = "metric_declared"
    SETTINGS = "settings_alike"
    RUNS = "runs_valid"
    DRIVER = "driver_no_bottleneck"
    CONSISTENCY = "data_right"
    FOREIGN_IO = "little_foreign_io"
    FOREIGN_CPU = "little_foreign_cpu"
    CLOCK = "clock_in_order"
    GROWTH = "data_not_grown"
    READS = "reads_alike"
    PLANS = "plans_alike"
    STEADINESS = "runs_steady"
    DEVICES = "devices_of_one_kind"
    STORAGE = "storage_unchanged"
    AGAIN = "first_side_again"
    METRIC_MEASURED = "metric_measured"


class ReasonKind(Kind):
    """Reasons why two sides must not be compared."""

    METRICS_DIFFER = "metrics_differ"
    SETTINGS_DIFFER = "settings_differ"
    RUNS_INVALID = "runs_invalid"
    DRIVER_BOUND = "driver_was_the_bottleneck"
    DATA_WRONG = "data_wrong_after_runs"
    FOREIGN_IO = "foreign_io_in_runs"
    FOREIGN_CPU = "foreign_cpu_in_runs"
    CLOCK_WENT_BACK = "clock_went_back"
    DATA_GREW = "data_grew"
    READS_DIFFER = "reads_differ"
    PLANS_DIFFER = "plans_differ"
    NOT_STEADY = "runs_not_steady"
    DEVICES_DIFFER = "devices_differ"
    PROBE_OF_OTHER_DEVICE = "probe_of_other_device"
    STORAGE_CHANGED = "storage_itself_changed"
    DRIFTED = "first_side_drifted"
    NOT_MEASURED = "metric_not_measured"


class PairKind(Kind):
    """The verdict on a pair, its method, and its cautions."""

    DIFFERENCE = "difference_shown"
    NO_DIFFERENCE = "no_difference_shown"
    INDICATIVE = "indicative_only"
    NOT_COMPARABLE = "not_comparable"
    METHOD = "comparison_method"
    ONE_SIDE_FIRST = "one_side_ran_first"
    CAME_BACK = "one_side_ran_before_and_after"
    SEVERAL_PAIRS = "several_pairs"
    ONLY_ONE_SIDE = "steps_of_one_side"
    FLASH_WARMING = "flash_of_sides_warming_up"
    CHECKS_UNKNOWN = "checks_unknown"
    READS_WITHIN_SCATTER = "reads_differ_within_scatter"
    INCOMPLETE = "run_left_out"
    NO_PARTNER = "side_without_partner"
    POOLED = "experiments_taken_together"
    NO_COMMON_STEP = "sides_without_common_step"
    PLAN_LEFT_OUT = "runs_left_out_of_plan"


@dataclass(frozen=True)
class Ratio:
    """B ÷ A with its interval (CONFIDENCE). Interval, p and degrees of freedom are None with too few runs."""

    name: str
    unit: str
    better: Direction | None  # None: neither, it only explains
    a: float | None  # geometric mean of the runs; None if a run has no value, or 0
    b: float | None
    runs_a: int
    runs_b: int
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    df: float | None = None
    p: float | None = None  # this metric alone
    p_adjusted: float | None = None  # Holm's correction among `family` metrics
    family: int = 1
    detectable: float | None = None  # smallest ratio less 1 that these runs show with the power of POWER

    @property
    def is_shown(self) -> bool | None:
        """Return True if a difference is shown, or None if that cannot be judged."""
        return None if self.p_adjusted is None else self.p_adjusted <= 1 - CONFIDENCE

    @property
    def without_ratio(self) -> "Ratio":
        """Return the values of both sides alone, of sides that must not be compared."""
        return Ratio(self.name, self.unit, self.better, self.a, self.b, self.runs_a, self.runs_b)


@dataclass(frozen=True)
class WithinRun:
    """Ratio of the primary metric of one run each, its interval from means of batches of seconds.

    The interval covers variation of seconds within a run, not between runs, which is usually larger: no verdict follows
    from it.
    """

    low: float
    high: float
    batches: int
    batch_s: int


@dataclass(frozen=True)
class Check:
    """A condition for a comparison of two sides."""

    found: Finding
    passed: bool | None  # None if the record lacks the values
    reason: Finding | None = None  # explains a check that failed; a caution for others

    @property
    def kind(self) -> Kind:
        return self.found.kind


def check(kind: CheckKind, passed: bool | None, reason: Finding | None = None, **facts: Any) -> Check:
    severity = {True: Severity.INFO, None: Severity.CAUTION, False: Severity.INVALID}[passed]
    return Check(Finding(kind, severity, facts), passed, reason)


@dataclass(frozen=True)
class SideSummary:
    """One side: a variant, or a variant of one experiment, with its runs in the order they were made."""

    name: str
    runs: list[str]  # folders
    again: list[str]  # runs repeated at the end (A′)
    differs: list[Finding]  # intended differences
    emulated: bool


@dataclass(frozen=True)
class TransactionRatios:
    """One type of transaction: committed per second, and mean latency."""

    transaction: str
    rate: Ratio
    latency: Ratio

    @property
    def without_ratio(self) -> "TransactionRatios":
        return TransactionRatios(self.transaction, self.rate.without_ratio, self.latency.without_ratio)


@dataclass(frozen=True)
class PairComparison:
    a: str
    b: str
    step: str
    users: int
    verdict: Verdict
    finding: Finding  # the verdict with its figures
    primary: Ratio
    others: list[Ratio]
    transactions: list[TransactionRatios]
    checks: list[Check]
    cautions: list[Finding]
    method: Finding  # how runs were paired, and what the interval is
    order: str  # order of the runs as letters: "ABBAAB"
    confounded: bool  # true if all runs of one side came first, so that time may explain the difference
    within_run: WithinRun | None = None
    cause: Cause | None = None

    @property
    def failed(self) -> list[Check]:
        return [check for check in self.checks if check.passed is False]

    @property
    def claim(self) -> Claim:
        return Claim(self.verdict, self.primary.ratio, tuple(check.reason for check in self.failed if check.reason))


@dataclass(frozen=True)
class ComparisonSummary:
    """The pairs of a comparison. `primary` is the metric that the scenario declared before anything ran."""

    primary: str
    baseline: str
    sides: list[SideSummary]
    pairs: list[PairComparison] = field(default_factory=list)
    left_out: list[Finding] = field(default_factory=list)  # runs and sides that are not compared


def applies(rule: Rule, pair: PairComparison) -> bool | None:
    """Return True if a rule applies to a pair, or the pair has no verdict; None if these runs cannot show it."""
    primary = pair.primary
    if not pair.claim.decided:
        return True
    if not rule.metric:  # `not within 5 %`
        if primary.low is None or primary.high is None:
            return None
        if primary.low > 1 + rule.limit or primary.high < 1 - rule.limit:
            return True
        return False if primary.low >= 1 - rule.limit and primary.high <= 1 + rule.limit else None
    amount = abs(pair.claim.ratio - 1) if pair.claim.ratio is not None else 0.0
    if (pair.verdict == rule.metric and amount >= rule.limit) != rule.negated:
        return True
    unseen = pair.verdict == Verdict.NO_DIFFERENCE and 0 < rule.limit < (primary.detectable or 0.0)
    return None if unseen else False
