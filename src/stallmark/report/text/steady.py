"""The wording of steadiness while the load was measured, and of the checkpoint cycles that figures are over."""

from collections.abc import Mapping

from stallmark.analysis.finding import Kind
from stallmark.analysis.read.interval import CyclesBy
from stallmark.analysis.steady import CycleKind, Rate, Steadiness, SteadyKind
from stallmark.format import percent, short, signed
from stallmark.report.text import says
from stallmark.report.text.templates import Format
from stallmark.report.text.terms import term
from stallmark.stats.thresholds import DRIFT, NO_RANGE, UNSTEADY_P


def method(found: Steadiness) -> str:
    """Return the method of the judgement, as a sentence."""
    if found.drift is None:
        return "Not judged."
    return (
        f"Means of {found.batches} batches of {found.batch_s} s each (correlation of neighbours {found.alike:.2f}, "
        f"which raises the variance {found.inflation:.1f}-fold): Mann-Kendall test for a trend with Sen’s slope "
        "and its 95 % interval, Pettitt’s test for a change of level, MSER-5 for a warm-up at the beginning. "
        f"Unsteady is what is significant (p < {UNSTEADY_P:g} each) and moves the mean by more than "
        f"{percent(DRIFT)} over the interval."
    )


SENTENCES: Mapping[Kind, str] = {
    SteadyKind.TOO_FEW_SECONDS: (
        "{seconds} s are too short to tell whether it was steady: at least {needed_s} s are needed."
    ),
    SteadyKind.STEADY_LATE: (
        "It became steady only {warm_up_s} s into the {seconds} s measured, which moved the mean of {of:term} by "
        "{shift:signed}."
    ),
    SteadyKind.TREND: (
        "It never became steady: {of:term} {drift:by} (95 % interval {drift_low:signed} to {drift_high:signed}) over "
        "the {seconds} s measured ({p:chance})."
    ),
    SteadyKind.LEVEL_CHANGED: (
        "It never became steady: {of:term} {change:by} after {at_s} s of the {seconds} s measured ({p:chance})."
    ),
    CycleKind.NO_CHECKPOINT: (
        "No checkpoint was counted in the {measured_s} s measured: writes per transaction and reads per write are "
        "of part of a checkpoint cycle, and a longer interval would have others."
    ),
    CycleKind.IRREGULAR: (
        "The {cycles} whole checkpoint cycles in the {measured_s} s measured cover only {covered_s} s: checkpoints "
        "came too irregularly to measure over whole cycles, so the figures are over all seconds."
    ),
}


@says(SteadyKind.NOTHING_DONE)
def _(of: Rate) -> str:
    what = f"{term(of)} was 0" if of == Rate.TPS else "no transaction was committed or rolled back"
    return f"It cannot be told whether it was steady: {what}."


@says(SteadyKind.NOT_TOLD)
def _(of: Rate, seconds: int, drift: float, drift_low: float, drift_high: float) -> str:
    may = f"may have changed by anything from {signed(drift_low)} to {signed(drift_high)}"
    if max(-drift_low, drift_high) > NO_RANGE:
        may = "scatters too much"
    return f"{seconds} s are too short to tell whether it was steady: {term(of)} {may}."


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
    held = f"{cycles} whole checkpoint cycle{'' if cycles == 1 else 's'}" if cycles else "no whole checkpoint cycle"
    return (
        f"The {measured_s} s measured held {held}, and at least {needed} are needed: how much was written, and when, "
        "partly depends on where measuring began."
    )


@says(CycleKind.WHOLE)
def _(cycles: int, measured_s: int, mean_s: float, begin_s: int, end_s: int) -> str:
    return (
        f"Figures are over {cycles} whole checkpoint cycles of {mean_s:.0f} s on average: {end_s - begin_s} s of the "
        f"{measured_s} s measured, from {begin_s} s to {end_s} s."
    )


def _chance(p: float) -> str:
    return "p < 0.001" if p < 0.001 else f"p = {short(p, 2)}"


FORMATS: Mapping[str, Format] = {"chance": _chance}


# How to read the tables of steadiness and of the service level. -----------------------------------------------

MEAN_ONLY = "Mean only: no percentile of single reads is known, and a mean shows no percentile."


def cycles_shown(by: CyclesBy, resolution_s: float) -> str:
    """Return how checkpoint cycles were recognised, and their effect on the figures."""
    return (
        f"Checkpoint cycles: from {term(by)}, read every {resolution_s:g} s. Figures are over whole cycles where there "
        "are three or more."
    )
