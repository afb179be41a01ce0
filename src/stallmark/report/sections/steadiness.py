"""The tables of steadiness and of the service level."""

from collections.abc import Sequence

from stallmark import format
from stallmark.analysis.experiment import ExperimentSummary
from stallmark.analysis.steady.steadiness import Steadiness
from stallmark.analysis.step_summary import StepSummary
from stallmark.analysis.validity.service_level import MEAN_ONLY, LevelOutcome
from stallmark.format import signed
from stallmark.report.labels import step_labels
from stallmark.report.table import Cell, Table
from stallmark.report.text import sentence
from stallmark.report.text import steady as steady_words
from stallmark.report.text.steady import method
from stallmark.report.text.terms import term

AN_HOUR_IS_NEAR_S = 1800  # a slope over fewer seconds is not extrapolated to an hour
OUTCOMES = {
    LevelOutcome.MET: "",
    LevelOutcome.NOT_MET: "bad",
    LevelOutcome.MEAN_ONLY: "apart",
    LevelOutcome.NOT_KNOWN: "none",
}


def steadiness(experiment: ExperimentSummary) -> Table | None:
    """Return the verdict on every step that was tested, with the tests; None where none was."""
    labels = step_labels(experiment)
    judged = [(step, one) for step in experiment.steps if (one := step.validity.steadiness) and one.drift is not None]
    if not judged:
        return None
    rows: list[Sequence[str | Cell]] = [
        [
            labels[step.key],
            Cell(term(found.verdict), "bad" if found.incomparable else ""),
            term(found.of),
            format.count(found.seconds),
            *_tests(found),
        ]
        for step, found in judged
    ]
    header = [
        "step",
        "verdict",
        "judged by",
        "s",
        "drift",
        "95 % interval",
        "per hour",
        "p",
        "largest step",
        "at s",
        "p",
    ]
    methods = list(dict.fromkeys(method(found) for _, found in judged))
    return Table(header, rows, frozenset({0, 1, 2}), methods)


def untold(experiment: ExperimentSummary) -> list[tuple[str, str]]:
    """Return why steps could not be tested, those with the same reason together: (steps, sentence)."""
    labels = step_labels(experiment)
    found: dict[str, list[str]] = {}
    for step in experiment.steps:
        if (one := step.validity.steadiness) and one.drift is None:
            found.setdefault(sentence(one.finding), []).append(labels[step.key])
    return [(_these(names, experiment), text) for text, names in found.items()]


def brief(experiment: ExperimentSummary) -> str:
    """Return the verdicts in a line: "3 of 5 steady, 2 too short to tell"; empty where none was judged."""
    verdicts = [step.validity.steadiness.verdict for step in experiment.steps if step.validity.steadiness]
    counted = [f"{verdicts.count(one)} of {len(verdicts)} {term(one)}" for one in dict.fromkeys(verdicts)]
    return ", ".join(counted)


def _these(names: Sequence[str], experiment: ExperimentSummary) -> str:
    return "Every step" if len(names) == len(experiment.steps) else ", ".join(names)


def seconds(experiment: ExperimentSummary) -> Table | None:
    """Return the seconds behind every step's figures, and the warm-up before them; None where they are not known."""
    labels = step_labels(experiment)
    rows: list[Sequence[str | Cell]] = [
        [
            labels[step.key],
            f"{step.interval.begin_s} to {step.interval.end_s} s",
            format.count(step.interval.end_s - step.interval.begin_s),
            format.count(
                step.interval.cycles.measured_s if step.interval.cycles else step.interval.end_s - step.interval.begin_s
            ),
            _cycles(step),
            _waited(step),
            _warm_up(step.validity.steadiness),
        ]
        for step in experiment.steps
        if step.interval.end_s and step.validity.steadiness
    ]
    if not rows:
        return None
    header = [
        "step",
        "figures over",
        "s",
        "measured s",
        "whole checkpoint cycles",
        "waited before",
        "warm-up still inside",
    ]
    return Table(header, rows, frozenset({0, 1, 4, 5, 6}), _cycle_notes(experiment))


def service_levels(experiment: ExperimentSummary) -> Table | None:
    """Return the outcome of the service level by step; None where the scenario sets none."""
    labels = step_labels(experiment)
    rows: list[Sequence[str | Cell]] = [
        [
            labels[step.key],
            f"{level.percentile} ≤ {level.limit_ms:g} ms",
            Cell(term(level.outcome), OUTCOMES[level.outcome]),
            term(level.figure),
            format.number(level.figure_ms),
            format.count(level.reads),
            _ideal(level.ideal_ms, level.ideal_met),
            term(level.source),
        ]
        for step in experiment.steps
        if (level := step.validity.slo)
    ]
    if not rows:
        return None
    header = ["step", "service level", "outcome", "judged by", "read ms", "reads", "ideal", "source"]
    notes = (
        [steady_words.MEAN_ONLY]
        if any(step.validity.slo and step.validity.slo.figure == MEAN_ONLY for step in experiment.steps)
        else []
    )
    return Table(header, rows, frozenset({0, 1, 2, 3, 6, 7}), notes)


def outcomes(experiment: ExperimentSummary) -> list[tuple[Cell, str]]:
    """Return the outcome of every step's service level and its sentence, for a terminal; none where none is set."""
    labels = step_labels(experiment)
    return [
        (
            Cell(f"SLO {term(level.outcome)}", OUTCOMES[level.outcome] or "good"),
            f"{labels[step.key]}: {sentence(level.finding)}",
        )
        for step in experiment.steps
        if (level := step.validity.slo)
    ]


def _tests(found: Steadiness) -> list[str]:
    return [
        signed(found.drift or 0.0),
        f"{signed(found.drift_low or 0.0)} to {signed(found.drift_high or 0.0)}",
        signed(found.slope_per_h or 0.0) if found.seconds >= AN_HOUR_IS_NEAR_S else format.NONE,
        _p(found.trend_p),
        signed(found.change or 0.0),
        format.count(found.change_at_s),
        _p(found.change_p),
    ]


def _p(value: float | None) -> str:
    if value is None:
        return format.NONE
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def _warm_up(found: Steadiness | None) -> str:
    if found is None:
        return format.NONE
    return f"{found.warm_up_s} s, {signed(found.warm_up_shift)}" if found.warm_up_s else "none seen"


def _waited(step: StepSummary) -> str:
    if not step.interval.waited:
        return "as planned"
    ended = "steady" if step.interval.waited.steady else "not steady by then"
    return f"{step.interval.waited.seconds:.0f} s, {ended}"


def _cycles(step: StepSummary) -> str:
    cycles = step.interval.cycles
    if cycles is None:
        return "not known"
    return f"{cycles.count}, and nothing else" if cycles.whole else f"{cycles.count}: too few, or irregular"


def _cycle_notes(experiment: ExperimentSummary) -> list[str]:
    """Return notes on how checkpoint cycles were recognised, and their effect on the figures."""
    known = [step.interval.cycles for step in experiment.steps if step.interval.cycles]
    notes = [steady_words.cycles_shown(cycles.shown_by, cycles.resolution_s) for cycles in known[:1]]
    return notes + list(dict.fromkeys(sentence(cycles.finding) for cycles in known if cycles.whole))


def _ideal(ideal_ms: float | None, met: bool | None) -> str:
    if ideal_ms is None:
        return format.NONE
    return f"{ideal_ms:g} ms" + {True: ", met", False: ", not met", None: ""}[met]
