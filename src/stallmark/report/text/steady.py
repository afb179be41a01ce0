"""The wording of steadiness while the load was measured, and of rules that were not kept."""

from collections.abc import Iterable, Mapping, Sequence

from stallmark.analysis.ceiling import CeilingKind, ceiling_answers
from stallmark.analysis.compare.summary import ComparisonSummary, PairComparison, applies
from stallmark.analysis.finding import Finding, Kind
from stallmark.analysis.pool_curve import enough_bytes
from stallmark.analysis.rules import Rule
from stallmark.analysis.steady import CycleKind, Rate, Steadiness, SteadyKind
from stallmark.analysis.step_summary import StepSummary
from stallmark.format import percent, short, signed, size
from stallmark.report.text import Format, Template, clause, says, term
from stallmark.report.text.ceiling import level
from stallmark.stats.thresholds import DRIFT, NO_RANGE, UNSTEADY_P

# The wording of steadiness while the load was measured, and of the checkpoint cycles that figures are over.


def method(judged: Sequence[Steadiness]) -> str:
    """Return the method of judging steps with the same batches."""
    first = judged[0]
    alike = _ends(f"{step.alike:.2f}" for step in sorted(judged, key=lambda step: step.alike))
    raised = _ends(f"{step.inflation:.1f}" for step in sorted(judged, key=lambda step: step.inflation))
    return (
        f"Means of {first.batches} batches of {first.batch_s} s each (correlation of neighbours {alike}, which raises "
        f"the variance {raised}-fold): Mann-Kendall test for a trend with Sen’s slope and "
        "its 95 % interval, Pettitt’s test for a change of level, MSER-5 for a warm-up at the beginning. A step is "
        f"unsteady if a test is significant (p < {UNSTEADY_P:g} each) and the mean moves by more than {percent(DRIFT)} "
        "over the interval."
    )


def _ends(texts: Iterable[str]) -> str:
    """Return the first and the last of sorted values: "0.00 to 0.03"."""
    values = list(dict.fromkeys(texts))
    return values[0] if len(values) == 1 else f"{values[0]} to {values[-1]}"


SENTENCES: Mapping[Kind, str] = {
    SteadyKind.TOO_FEW_SECONDS: ("{seconds} s is too short to judge steadiness: at least {needed_s} s are needed."),
    SteadyKind.STEADY_LATE: (
        "It became steady only {warm_up_s} s into the {seconds} s measured, which moved the mean of {of:term} by "
        "{shift:signed}."
    ),
    SteadyKind.TREND: (
        "It never became steady: {of:term} {drift:change_text} (95 % interval {drift_low:signed} to "
        "{drift_high:signed}) over the {seconds} s measured ({p:chance})."
    ),
    SteadyKind.LEVEL_CHANGED: (
        "It never became steady: {of:term} {change:change_text} after {at_s} s of the {seconds} s measured "
        "({p:chance})."
    ),
    CycleKind.NO_CHECKPOINT: (
        "No checkpoint was counted in the {measured_s} s measured: writes per transaction and reads per write are "
        "from part of a checkpoint cycle, and a longer interval would give other values."
    ),
    CycleKind.WHOLE: (
        "Figures are over {cycles} complete checkpoint cycles of {mean_s:.0f} s on average: {facts:covered} s of the "
        "{measured_s} s measured, from {begin_s} s to {end_s} s."
    ),
    CycleKind.IRREGULAR: (
        "The {cycles} complete checkpoint cycles in the {measured_s} s measured cover only {covered_s} s: checkpoints "
        "came too irregularly to measure over complete cycles, so the figures are over all seconds."
    ),
}


@says(SteadyKind.NOTHING_DONE)
def _(of: Rate) -> str:
    observed = f"{term(of)} was 0" if of == Rate.TPS else "no transaction was committed or rolled back"
    return f"Steadiness cannot be judged: {observed}."


@says(SteadyKind.NOT_TOLD)
def _(of: Rate, seconds: int, drift: float, drift_low: float, drift_high: float) -> str:
    may = f"may have changed by anything from {signed(drift_low)} to {signed(drift_high)}"
    if max(-drift_low, drift_high) > NO_RANGE:
        may = "varies too much"
    return f"{seconds} s is too short to judge steadiness: {term(of)} {may}."


@says(SteadyKind.STEADY)
def _(
    of: Rate, seconds: int, drift: float, drift_low: float, drift_high: float, warm_up_s: int, shift: float
) -> str:  # fmt: skip
    after = f", after a warm-up of {warm_up_s} s that moved the mean by {signed(shift)}" if warm_up_s else ""
    return (
        f"Steady: {term(of)} changed by {signed(drift)} (95 % interval {signed(drift_low)} to {signed(drift_high)}) "
        f"over the {seconds} s measured{after}."
    )


@says(CycleKind.TOO_FEW)
def _(cycles: int, measured_s: int, needed: int) -> str:
    held = f"{cycles or 'no'} complete checkpoint cycle{'s' * (cycles > 1)}"
    return (
        f"The {measured_s} s measured contained {held}, and at least {needed} are needed: the amount and time of "
        "writes partly depend on where measuring began."
    )


def _chance(p: float) -> str:
    return "p < 0.001" if p < 0.001 else f"p = {short(p, 2)}"


FORMATS: Mapping[str, Format] = {"chance": _chance, "covered": lambda facts: f"{facts['end_s'] - facts['begin_s']}"}


# How to read the tables of steadiness and of the service level. -----------------------------------------------

MEAN_ONLY = "Mean only: no percentile of single reads is known, and a mean does not imply one."


cycles_shown = Template(
    "Checkpoint cycles: from {by:term}, read every {resolution_s:g} s. Figures are over complete cycles if there "
    "are three or more."
)


# Why a rule makes a command fail: a threshold of a scenario, or one of `--fail-if`.

GIVEN_UP = "given up"
_MORE = "make more runs (`stallmark plan` computes how many)"
_UNITS = {"users": "users", "rate": "rates per second", "load": "multiples of the load"}


threshold_missed = Template("{text} was not met ({measured})")


def not_known(text: str, name: str, reason: str, steps: int) -> str:
    more = f" and {steps - 1} more" if steps > 1 else ""
    return f"{text} is not known in {name}{more}: {reason}"


def missing_verdict_reason(step: StepSummary, measured: bool, incomplete_because: str | None) -> str:
    """Return the reason why a threshold has no verdict in a step."""
    if not measured:
        return "it was not measured there"
    if step.validity.invalid:
        return clause(step.validity.invalid[0])
    return incomplete_because or "the step ended early"


def comparison_failures(rule: Rule, comparison: ComparisonSummary) -> list[str]:
    """Return the reasons why a comparison fails by a rule; empty if it does not."""
    compared = {name for pair in comparison.pairs for name in (pair.a, pair.b)}
    alone = [side.name for side in comparison.sides if side.name not in compared]
    failed = [_pair_failure(rule, pair) for pair in comparison.pairs if applies(rule, pair)]
    return [*failed, *(f"{name} was not compared" for name in alone)]


def comparison_doubts(rule: Rule, comparison: ComparisonSummary) -> list[str]:
    """Return the reasons why the runs cannot show whether a rule applies; empty if they can."""
    return [_pair_doubt(rule, pair) for pair in comparison.pairs if applies(rule, pair) is None]


def run_failure(rule: Rule, findings: Sequence[Finding]) -> str | None:
    """Return the reason why runs fail by a rule, or None if they do not."""
    if rule.metric == "enough":
        if (enough := enough_bytes(findings)) is None:
            return "no size of the buffer pool is shown to be enough"
        return f"{size(enough)} is enough, which is above {size(rule.limit)}" if rule.holds(enough) else None
    if not (searches := ceiling_answers(findings)):
        return "no run searched for a ceiling"
    if unlike := [search.facts["of"] for search in searches if search.facts["of"] != rule.unit]:
        return f"the runs searched for a ceiling in {_UNITS[unlike[0]]}, but the rule gives it in {_UNITS[rule.unit]}"
    if any(search.kind not in (CeilingKind.FOUND, CeilingKind.AT_LEAST, CeilingKind.NONE) for search in searches):
        return "a search found no ceiling"
    lowest = min(search.facts["holds"] or 0.0 for search in searches)
    carried = f"{level(rule.unit, lowest)} are carried" if lowest else "the lowest level is not carried"
    return f"{carried}, which is below {level(rule.unit, rule.limit)}" if rule.holds(lowest) else None


def _pair_failure(rule: Rule, pair: PairComparison) -> str:
    if not pair.claim.decided:
        return f"{pair.b} against {pair.a}: no verdict ({term(pair.verdict)})"
    by = f" by {_percent(rule.limit)}" if rule.limit else ""
    named = f"within {_percent(rule.limit)}" if not rule.metric else f"{rule.metric}{by}"
    return f"{pair.b} against {pair.a} is {'not ' if rule.negated else ''}{named}"


def _pair_doubt(rule: Rule, pair: PairComparison) -> str:
    names, low, high = f"{pair.b} against {pair.a}", pair.primary.low, pair.primary.high
    if rule.metric:
        least = _percent(pair.primary.detectable)
        return (
            f"{names}: these runs can only show {least} or more, and --fail-if asks for {_percent(rule.limit)}: {_MORE}"
        )
    if low is None or high is None:
        return f"{names}: the interval of the difference is not known"
    return (
        f"{names}: the difference is between {_signed(low)} and {_signed(high)}, which does not show that it is within "
        f"{_percent(rule.limit)}: {_MORE}"
    )


def _percent(share: float | None) -> str:
    return f"{short((share or 0.0) * 100)} %"


def _signed(ratio: float) -> str:
    return f"{'−' if ratio < 1 else '+'}{_percent(abs(ratio - 1))}"


MARKS: Mapping[Kind, str] = {
    SteadyKind.TREND: "never steady",
    SteadyKind.LEVEL_CHANGED: "never steady",
    SteadyKind.STEADY_LATE: "steady late",
    CycleKind.NO_CHECKPOINT: "writes partial",
}
