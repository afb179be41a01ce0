"""How the figures of a comparison are written, alike in the terminal, in Markdown and in HTML."""

from stallmark import format
from stallmark.analysis.compare.metrics import SHARE
from stallmark.analysis.compare.summary import ComparisonSummary, PairComparison, Ratio
from stallmark.analysis.compare.words import interval, signed
from stallmark.format import percent
from stallmark.stats.thresholds import CONFIDENCE


def change(found: Ratio) -> str:
    """ "+18 %"; a dash where a side has no such value, or is zero."""
    return format.NONE if found.ratio is None else f"{signed(found.ratio - 1)} %"


def reach(found: Ratio) -> str:
    return interval(found) or format.NONE


def p_value(value: float | None) -> str:
    if value is None:
        return format.NONE
    return "<0.001" if value < 0.001 else f"{value:.3f}" if value < 0.1 else f"{value:.2f}"


def judged(found: Ratio) -> str:
    """Whether a difference is shown, in a word."""
    return {True: "differs", False: "not shown", None: format.NONE}[found.shown]


def value(found: Ratio, of: float | None) -> str:
    """Of side A or B."""
    return format.share(of) if found.unit == SHARE else format.number(of)


def named(found: Ratio) -> str:
    """With its unit; of a share the figures carry it."""
    return found.name if found.unit == SHARE else f"{found.name}, {found.unit}"


def runs(found: Ratio) -> str:
    return f"{found.runs_a} and {found.runs_b} runs"


def adjustment(pair: PairComparison) -> str:
    """What stands behind the p-values of the table."""
    primary, others = pair.primary, [one.family for one in pair.others if one.p is not None]
    if primary.p is None and min(primary.runs_a, primary.runs_b) > 1:
        return f"No p-values: {primary.name} was not measured in every run, or it was zero."
    if primary.p is None:
        return f"No p-values of fewer than 2 runs of each side (here {runs(primary)})."
    own = f"p of {primary.name}: two-sided" + (f", by Holm among {primary.family} pairs" if primary.family > 1 else "")
    return (
        f"{own}; p of the {max(others, default=0)} others: by Holm among them. Intervals are of {percent(CONFIDENCE)} "
        "and of each figure by itself."
    )


def headline(found: ComparisonSummary) -> str:
    """The verdict in one sentence, of the first pair; of several pairs how many came out how."""
    if len(found.pairs) == 1:
        return found.pairs[0].sentence
    counted = dict.fromkeys(pair.verdict for pair in found.pairs)
    words = ", ".join(f"{sum(p.verdict == word for p in found.pairs)} {word}" for word in counted)
    return f"{len(found.pairs)} pairs against {found.baseline}: {words}."
