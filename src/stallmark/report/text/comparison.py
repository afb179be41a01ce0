"""The wording of comparisons, and the form of their figures, the same in the terminal, in Markdown and in HTML."""

from collections.abc import Mapping, Sequence
from typing import Any

from stallmark import format
from stallmark.analysis.compare.plan import RunsPlan
from stallmark.analysis.compare.sides import Unpaired
from stallmark.analysis.compare.summary import ComparisonSummary, PairComparison, PairKind, Ratio, Verdict
from stallmark.analysis.finding import Finding, Kind
from stallmark.analysis.metrics import SHARE
from stallmark.errors import as_reason
from stallmark.format import listed, percent, short
from stallmark.report.text import Format, Template, says, sentence, term
from stallmark.report.text.cause import because_of
from stallmark.report.text.checks import CHECKS, MOST_REASONS, metric_title
from stallmark.stats.thresholds import CONFIDENCE, POWER, REPLICATES

METHODS = (
    "Throughput counts committed transactions per second of the measured interval (of the primary transaction, if the "
    "workload has one). Latency is from scheduled to ended, retries included. Read and write time, IOPS and bandwidth "
    "are of data files as the server counts them; times are volume-weighted (stall ÷ I/Os); MB are 10⁶ bytes. CPU is "
    "of the server’s machine."
)

# How figures are written. ------------------------------------------------------------------------------------


_NEGLIGIBLE = 0.001
"""Differences below this percentage are written as 0.0: their digits are those of rounding."""


def amount(share: float) -> str:
    """Return a difference in percent without its sign: two significant digits, whole percents from 10 on."""
    value = abs(share) * 100
    if value >= 9.95:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 0.095 or value < _NEGLIGIBLE else short(value, 2)


def signed(share: float) -> str:
    """Return the difference with its sign, "+4.3", "−1.2"; without one if it is written as zero."""
    text = amount(share)
    return text if not float(text.replace(",", "")) else f"{'+' if share > 0 else '−'}{text}"


def interval(low: float | None, high: float | None) -> str:
    """Return the interval of a ratio, "+12 to +24 %"."""
    return "" if low is None or high is None else f"{signed(low - 1)} to {signed(high - 1)} %"


def change(ratio: Ratio) -> str:
    """Return "+18 %"; a dash where a side has no such value, or is zero."""
    return format.NONE if ratio.ratio is None else f"{signed(ratio.ratio - 1)} %"


def reach(ratio: Ratio) -> str:
    return interval(ratio.low, ratio.high) or format.NONE


def p_value(value: float | None) -> str:
    if value is None:
        return format.NONE
    return "<0.001" if value < 0.001 else f"{value:.3f}" if value < 0.1 else f"{value:.2f}"


def value(ratio: Ratio, value_of_side: float | None) -> str:
    """Return the value of side A or B."""
    return format.share(value_of_side) if ratio.unit == SHARE else format.number(value_of_side)


def metric_with_unit(ratio: Ratio) -> str:
    """Return the metric with its unit; shares carry theirs with the figure."""
    return ratio.name if ratio.unit == SHARE else f"{ratio.name}, {ratio.unit}"


def adjustment(pair: PairComparison) -> str:
    """Return the method behind the p-values of the table, as a sentence."""
    primary, others = pair.primary, [other.family for other in pair.others if other.p is not None]
    if primary.p is None and min(primary.runs_a, primary.runs_b) > 1:
        return f"No p-values: {primary.name} was not measured in every run, or it was zero."
    if primary.p is None:
        return f"No p-values with fewer than 2 runs of each side (here {primary.runs_a} and {primary.runs_b})."
    adjusted = f", adjusted by Holm’s method for {primary.family} pairs" if primary.family > 1 else ""
    own = f"p of {primary.name}: two-sided{adjusted}"
    return (
        f"{own}; p of the {max(others, default=0)} others: adjusted by Holm’s method among them. The "
        f"{percent(CONFIDENCE)} intervals are not adjusted."
    )


def method(pair: PairComparison) -> str:
    """Return the whole method of a pair: its test, the order of its runs, and the adjustment of p-values."""
    ran = f"Order of the runs: {pair.order} (A: {pair.a}, B: {pair.b})."
    if not pair.claim.comparable:
        return f"Figures are means over the runs of each side; sides that are not comparable have no ratio. {ran}"
    return f"{sentence(pair.method)} {ran} {adjustment(pair)}"


checks_passed = Template("{passed} of {checks} checks hold.")


def headline(comparison: ComparisonSummary) -> str:
    """Return the verdict in one sentence; of several pairs how many had each verdict."""
    if len(comparison.pairs) == 1:
        return sentence(comparison.pairs[0].finding)
    counted = dict.fromkeys(pair.verdict for pair in comparison.pairs)
    words = ", ".join(f"{sum(p.verdict == word for p in comparison.pairs)} {term(word)}" for word in counted)
    return f"{len(comparison.pairs)} pairs against {comparison.baseline}: {words}."


# Verdicts. ---------------------------------------------------------------------------------------------------


@says(PairKind.DIFFERENCE)
def _(
    a: str,
    b: str,
    step: list[Any] | None,
    metric: str,
    ratio: float,
    low: float,
    high: float,
    verdict: Verdict,
    because: Finding | None,
    plans_changed: list[str] | None = None,
) -> str:
    up = ratio > 1
    # Of a fall the ends change places: 0.76 to 0.88 is 12 to 24 % less.
    ends = sorted((low - 1, high - 1) if up else (1 - high, 1 - low))
    by, reach = amount(ratio - 1), f"{amount(ends[0])} to {amount(ends[1])}"
    if metric == "tps":
        verb = "beats" if verdict == Verdict.BETTER else "falls behind"
        text = f"{b} {verb} {a} by {by} % ({reach})"
    else:
        text = f"{b} has a {metric_title(metric)} {by} % {'higher' if up else 'lower'} than {a} ({reach})"
    cause = because_of(because) if because else None
    return f"{_prefix(step)}{text}{f', {cause}' if cause else ''}.{_plans(plans_changed)}"


def _plans(changed: list[str] | None) -> str:
    if not changed:
        return ""
    more = f" and of {len(changed) - 1} more procedure{'s' * (len(changed) > 2)}" if len(changed) > 1 else ""
    return f" The plan of {changed[0]}{more} changed, which is not an effect of storage."


@says(PairKind.INDICATIVE)
def _(
    a: str,
    b: str,
    step: list[Any] | None,
    metric: str,
    ratio: float | None,
    low: float | None,
    high: float | None,
    runs: int,
    interval_within_run: bool,
    plans_changed: list[str] | None = None,
) -> str:
    title = metric_title(metric)
    if ratio is None:
        return f"{_prefix(step)}Indicative only: {title} of {a} and {b} is not known."
    title = title if step else f"{title[0].upper()}{title[1:]}"
    by = f"{signed(ratio - 1)} %"
    if reach := interval(low, high):
        by += f" ({reach}{' by the variation of seconds within a run' if interval_within_run else ''})"
    return (
        f"{_prefix(step)}{title} of {b} differed from that of {a} by {by}, based on "
        f"{'one run' if runs == 1 else f'{runs} runs'}, so indicative only: a verdict needs {REPLICATES} runs of each."
        f"{_plans(plans_changed)}"
    )


@says(PairKind.NOT_COMPARABLE)
def _(a: str, b: str, step: list[Any] | None, reasons: list[Finding]) -> str:
    more = f" Further reasons: {len(reasons) - MOST_REASONS}." if len(reasons) > MOST_REASONS else ""
    text = " ".join(map(_not_comparable_because, reasons[:MOST_REASONS]))
    return f"{_prefix(step)}{a} and {b} are not comparable. {text}{more}"


def _not_comparable_because(reason: Finding) -> str:
    # Both sides have just been named.
    return "They have no step in common." if reason.kind == PairKind.NO_COMMON_STEP else sentence(reason)


def _prefix(step: Sequence[Any] | None) -> str:
    """Return "50 users: " where the pair is one of several steps."""
    return f"{step_name(*step)}: " if step else ""


def step_name(name: str, users: int) -> str:
    """Return "50 users", "50 users (2)", "steady with 30 users"."""
    users_text = format.users(users)
    if name in ("", f"{users} users"):
        return users_text
    return name if name.startswith(users_text) else f"{name} with {users_text}"


_UNPAIRED = {
    Unpaired.BLOCKS: "each side ran as a block of its own, so no run has a partner",
    Unpaired.FEW_REPEATS: "too few repeats contain a run of both",
    Unpaired.EXPERIMENTS: "the sides are different experiments, so no run has a partner",
}


@says(PairKind.METHOD)
def _(paired: bool, runs: list[int], unpaired: Unpaired | None, left_out: int, df: float | None) -> str:
    if unpaired:
        how = f"not paired, {runs[0]} and {runs[1]} runs: {_UNPAIRED[unpaired]}"
    else:
        without = f"; {left_out} without a partner omitted" if left_out else ""
        how = f"paired by repeat, {runs[0]} pair{'s' * (runs[0] != 1)} of runs{without}"
    text = f"Ratios of geometric means over runs, {how}"
    if df is None:
        return f"{text}; no interval with fewer than two runs of each side."
    test = "paired t" if paired else "Welch’s t"
    return f"{text}; {percent(CONFIDENCE)} intervals by {test} of ln ratios, {short(df)} degrees of freedom."


# What to be careful about. -----------------------------------------------------------------------------------


SENTENCES: Mapping[Kind, str] = {
    # Without the difference that these runs could have shown, "no difference" is empty.
    PairKind.NO_DIFFERENCE: (
        "{step:prefix}No difference shown between {a} and {b}: {metric:title} {ratio:change} % ({facts:interval})"
        "{by_chance_among:chance}{detectable_share:detectable}.{facts:plans}"
    ),
    PairKind.CAME_BACK: (
        "Confounded by order: {side} ran before and after {other}, so a temporary change in between would count as a "
        "difference."
    ),
    PairKind.ONE_SIDE_FIRST: (
        "Confounded by order: all runs of one side came before all of the other, so any change over time would count "
        "as a difference. Alternate them (order: abba), or run {a} again at the end."
    ),
    PairKind.SEVERAL_PAIRS: (
        "{pairs} pairs were compared: p-values are adjusted for that by Holm’s method, intervals are not."
    ),
    PairKind.ONLY_ONE_SIDE: "Only {side} ran {steps:steps}, which is not compared.",
    PairKind.FLASH_WARMING: "Flash was still warming up in {sides:listed}: it would have answered more reads later.",
    PairKind.CHECKS_UNKNOWN: "Unknown for these runs: {checks:titles}.",
    PairKind.READS_WITHIN_SCATTER: (
        "Reads per transaction differ by {share:percent} ({reads_per_transaction[0]:per_transaction} and "
        "{reads_per_transaction[1]:per_transaction}), within the run-to-run variation (p {p:.2f})."
    ),
    PairKind.NO_PARTNER: "{side} is not compared: {experiment} and another experiment would both need this variant.",
    PairKind.POOLED: (
        "Runs of {experiments:listed} were pooled as {sides:listed}: the experiments are not compared with each other "
        "(--between experiments does that)."
    ),
    PairKind.NO_COMMON_STEP: "{b} is not compared with {a}: they have no step in common.",
}
FORMATS: Mapping[str, Format] = {
    "chance": lambda among: f", which one in {among} comparisons may show by chance" if among else "",
    "change": lambda ratio: signed(ratio - 1),
    "detectable": lambda share: (
        "" if share is None else f"; these runs could have shown {amount(share)} % or more ({percent(POWER)} power)"
    ),
    "interval": lambda facts: interval(facts["low"], facts["high"]),
    "plans": lambda facts: _plans(facts.get("plans_changed")),
    "prefix": _prefix,
    "title": metric_title,
    "steps": lambda steps: listed([step_name(*step) for step in steps]),
    "titles": lambda checks: listed([CHECKS[kind][0] for kind in checks]),
}


@says(PairKind.INCOMPLETE)
def _(run: str, said: str | None) -> str:
    return f"{run} is omitted: {as_reason(said) if said else 'nothing was measured'}."


@says(PairKind.PLAN_LEFT_OUT)
def _(of: int, steps: bool, left_out: Mapping[str, int]) -> str:
    counted_things = "steps" if steps else f"run{'s' * (of != 1)}"
    reasons = {"driver_bound": "with the driver as the bottleneck"}
    counted = [f"{count} {reasons.get(reason, reason)}" for reason, count in left_out.items()]
    return f"Omitted from {of} {counted_things}: {listed(counted)}."


BARS = (
    "A bar is the geometric mean over runs, each over its measured interval; a dash is one run. Intervals of the "
    "difference are in the table of ratios."
)


time_chart_summary = Template("Throughput and read time of {runs} runs in {sides} sides, on common scales.")


time_chart_method = Template(
    "Per-second counts over the {unit} since measuring began, without warm-up; at most a few hundred points per "
    "run, each the mean of its seconds. The runs of a side have one colour, later runs a lighter one."
)


def ratios_method(pair: PairComparison) -> str:
    return f"{sentence(pair.method)} {adjustment(pair)} Transaction types: p-values adjusted among the types."


HOLLOW = "hollow: no difference shown, or too few runs"
RUNS = (
    "Each figure is over the run’s measured interval. Latency in ms from scheduled to ended; read time in ms "
    "is volume-weighted (stall ÷ reads) over data files; MB/s is 10⁶ bytes."
)


def enough_runs(plan: RunsPlan) -> str:
    """Return the number of runs that show the wanted difference."""
    wanted = f"{plan.difference * 100:g} %"
    if plan.runs is None:
        return f"No practical number of runs would show {wanted}: run-to-run variation is {amount(plan.spread)} %."
    text = f"{plan.runs} runs of each variant show a difference of {wanted} (power {percent(POWER)})."
    if plan.runs_low != plan.runs_high:
        most = plan.runs_high if plan.runs_high is not None else "far more"
        text += f" If the variation is at an end of its interval, the number is {plan.runs_low} or {most}."
    return text


def scatter(plan: RunsPlan) -> str:
    """Return the run-to-run variation behind a plan of runs, and its method."""
    test = f"Welch’s t-test ({_UNPAIRED[plan.unpaired]})" if plan.unpaired else "Paired t-test"
    return (
        f"Run-to-run variation of {plan.primary}: {amount(plan.spread)} % (standard deviation of ln; "
        f"{percent(CONFIDENCE)} interval {amount(plan.spread_low)} to {amount(plan.spread_high)} %), pooled over "
        f"{plan.runs_seen} runs with {plan.df} degrees of freedom. {test}, two-sided {percent(1 - CONFIDENCE)}, by the "
        f"noncentral t distribution; a verdict needs {REPLICATES} runs of each in any "
        f"case.{f' {sentence(plan.left_out)}' if plan.left_out else ''}"
    )
