"""The tables of steadiness and of the service level."""

from collections.abc import Sequence

from stallmark import format
from stallmark.analysis.experiment import ExperimentSummary
from stallmark.analysis.steady import Steadiness
from stallmark.analysis.step_summary import StepSummary
from stallmark.analysis.validity.service_level import MEAN_ONLY, LevelOutcome, ServiceLevel
from stallmark.format import signed
from stallmark.report.document import Block, Note, Notes, Section, Words, shown
from stallmark.report.labels import step_labels, step_rows
from stallmark.report.table import Cell, Table, number, word
from stallmark.report.text import reading, sentence
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
    rows = step_rows(experiment, _tested)
    return rows.table_if_any(
        word("verdict", lambda found: Cell(term(found.verdict), "bad" if found.incomparable else "")),
        word("judged by", lambda found: term(found.of)),
        number("s", lambda found: found.seconds, format.count),
        number("drift", lambda found: signed(found.drift or 0.0)),
        number("95 % interval", lambda found: f"{signed(found.drift_low or 0.0)} to {signed(found.drift_high or 0.0)}"),
        number("per hour", _per_hour),
        number("p", lambda found: found.trend_p, _p),
        number("largest step", lambda found: signed(found.change or 0.0)),
        number("at s", lambda found: found.change_at_s, format.count),
        number("p", lambda found: found.change_p, _p),
        notes=dict.fromkeys(map(method, rows.items)),
    )


def _tested(step: StepSummary) -> list[Steadiness]:
    found = step.validity.steadiness
    return [found] if found and found.drift is not None else []


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
    rows = step_rows(experiment, lambda step: [step] if step.interval.end_s and step.validity.steadiness else [])
    return rows.table_if_any(
        word("figures over", lambda step: f"{step.interval.begin_s} to {step.interval.end_s} s"),
        number("s", lambda step: step.interval.end_s - step.interval.begin_s, format.count),
        number("measured s", _measured_s, format.count),
        word("whole checkpoint cycles", _cycles),
        word("waited before", _waited),
        word("warm-up still inside", _warm_up),
        notes=_cycle_notes(experiment),
    )


def service_levels(experiment: ExperimentSummary) -> Table | None:
    """Return the outcome of the service level by step; None where the scenario sets none."""
    rows = step_rows(experiment, lambda step: filter(None, [step.validity.slo]))
    return rows.table_if_any(
        word("service level", lambda level: f"{level.percentile} ≤ {level.limit_ms:g} ms"),
        word("outcome", lambda level: Cell(term(level.outcome), OUTCOMES[level.outcome])),
        word("judged by", lambda level: term(level.figure)),
        number("read ms", lambda level: level.figure_ms),
        number("reads", lambda level: level.reads, format.count),
        word("ideal", _ideal),
        word("source", lambda level: term(level.source)),
        notes=[steady_words.MEAN_ONLY] if any(level.figure == MEAN_ONLY for level in rows.items) else [],
    )


def outcomes(experiment: ExperimentSummary) -> list[Block]:
    """Return the outcome of every step's service level and its sentence, for a terminal; none where none is set."""
    labels = step_labels(experiment)
    items = [
        Note(
            Cell(f"SLO {term(level.outcome)}", OUTCOMES[level.outcome] or "good"),
            f"{labels[step.key]}: {sentence(level.finding)}",
        )
        for step in experiment.steps
        if (level := step.validity.slo)
    ]
    return [Notes(items)] if items else []


def _per_hour(found: Steadiness) -> str:
    return signed(found.slope_per_h or 0.0) if found.seconds >= AN_HOUR_IS_NEAR_S else format.NONE


def _p(value: float | None) -> str:
    if value is None:
        return format.NONE
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def _measured_s(step: StepSummary) -> int:
    cycles = step.interval.cycles
    return cycles.measured_s if cycles else step.interval.end_s - step.interval.begin_s


def _warm_up(step: StepSummary) -> str:
    found = step.validity.steadiness
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


def _ideal(level: ServiceLevel) -> str:
    if level.ideal_ms is None:
        return format.NONE
    return f"{level.ideal_ms:g} ms" + {True: ", met", False: ", not met", None: ""}[level.ideal_met]


def section(experiment: ExperimentSummary) -> Section:
    verdicts = brief(experiment)
    over = shown(
        seconds(experiment),
        "Seconds measured, checkpoint cycles and waiting, by step",
        "Which seconds the figures are over",
    )
    blocks = [
        Words(reading.STEADINESS, "lead"),
        *(Words(f"{steps}: {text}") for steps, text in untold(experiment)),
        *shown(steadiness(experiment), "Steadiness of every step"),
        *over,
    ]
    return Section("steadiness", "Was it steady?", blocks if verdicts else [], verdicts)


def service_level_section(experiment: ExperimentSummary, lead: str) -> Section:
    return Section("slo", "Service level", shown(service_levels(experiment), "Service level", lead=lead))
