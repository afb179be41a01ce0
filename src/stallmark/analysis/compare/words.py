"""The sentences of a comparison."""

from collections.abc import Sequence

from stallmark.analysis.compare.metrics import Metric
from stallmark.analysis.compare.summary import Check, Ratio, Verdict, WithinRun
from stallmark.format import listed, percent
from stallmark.stats.thresholds import CONFIDENCE, POWER, REPLICATES


def amount(share: float) -> str:
    """A difference in percent without its sign: two significant digits, whole percents from 10 on; "18", "4.3"."""
    value = abs(share) * 100
    if value >= 9.95:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 0.095 or value == 0 else f"{value:.2g}"


def signed(share: float) -> str:
    """The same with its sign, "+4.3", "−1.2"; what is written as zero has none."""
    text = amount(share)
    return text if not float(text.replace(",", "")) else f"{'+' if share > 0 else '−'}{text}"


def interval(found: Ratio | WithinRun) -> str:
    """ "+12 to +24 %" of a ratio."""
    if found.low is None or found.high is None:
        return ""
    return f"{signed(found.low - 1)} to {signed(found.high - 1)} %"


def found_out(verdict: Verdict, what: Metric, a: str, b: str, primary: Ratio, because: str | None) -> str:
    """Of "better" or "worse": by how much, with the interval, and why."""
    assert primary.ratio is not None and primary.low is not None and primary.high is not None
    up = primary.ratio > 1
    # Of a fall the ends change places: 0.76 to 0.88 is 12 to 24 % less.
    ends = sorted((primary.low - 1, primary.high - 1) if up else (1 - primary.high, 1 - primary.low))
    by, reach = amount(primary.ratio - 1), f"{amount(ends[0])} to {amount(ends[1])}"
    if what.key == "tps":
        said = (
            f"{b} beats {a} by {by} % ({reach})" if verdict == "better" else f"{b} falls behind {a} by {by} % ({reach})"
        )
    else:
        said = f"{b} has a {what.title} {by} % {'higher' if up else 'lower'} than {a} ({reach})"
    return f"{said}, {because}." if because else f"{said}."


def no_difference(what: Metric, a: str, b: str, primary: Ratio) -> str:
    """With what these runs could have shown: without it, "no difference" says nothing."""
    assert primary.ratio is not None
    by = f"{signed(primary.ratio - 1)} % ({interval(primary)})"
    sentence = f"No difference shown between {a} and {b}: {what.title} {by}"
    if primary.family > 1 and primary.p is not None and primary.p <= 1 - CONFIDENCE:
        sentence += f", which one in {primary.family} comparisons may show by chance"
    if primary.detectable is not None:
        sentence += f"; these runs could have shown {amount(primary.detectable)} % or more ({percent(POWER)} power)"
    return f"{sentence}."


def indicative(what: Metric, a: str, b: str, primary: Ratio, within: WithinRun | None) -> str:
    fewest = min(primary.runs_a, primary.runs_b)
    runs = "one run" if fewest == 1 else f"{fewest} runs"
    if primary.ratio is None:
        return f"Indicative only: {what.title} of {a} and {b} is not known."
    sentence = f"Indicative only, of {runs}: {what.title} of {b} was {signed(primary.ratio - 1)} % against {a}"
    if within:
        sentence += f" ({interval(within)} by the scatter of seconds, which is not that of runs)"
    elif primary.low is not None:
        sentence += f" ({interval(primary)})"
    return f"{sentence}; a verdict needs {REPLICATES} runs of each."


def not_comparable(a: str, b: str, failed: Sequence[Check]) -> str:
    """With at most two reasons; the rest is among the checks."""
    reasons = listed([check.sentence for check in failed[:2]])
    more = f" ({len(failed) - 2} more)" if len(failed) > 2 else ""
    return f"{a} and {b} are not comparable: {reasons}{more}."


def method(paired: bool, sentence: str, primary: Ratio) -> str:
    """How the figures of a pair were computed."""
    said = f"Ratios of geometric means over runs, {sentence}"
    if primary.df is None:
        return f"{said}; no interval of fewer than two runs of each."
    test = "paired t" if paired else "Welch’s t"
    return f"{said}; {percent(CONFIDENCE)} intervals by {test} of ln ratios, {primary.df:.3g} degrees of freedom."
