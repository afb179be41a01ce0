"""The tables on the use of figures: validity gates, steadiness, the service level and thresholds."""

import math

from stallmark import format
from stallmark.analysis.experiment import ExperimentSummary, GateVerdict, gate_verdicts
from stallmark.analysis.metrics import METRICS, SHARE, group
from stallmark.analysis.rules import Threshold, verdicts_over_steps
from stallmark.analysis.service_level import MEAN_ONLY, LevelOutcome, ServiceLevel
from stallmark.analysis.steady import Steadiness
from stallmark.analysis.step_summary import StepSummary
from stallmark.analysis.validity_gates import Gate
from stallmark.format import signed
from stallmark.report.columns import by_reason, step_labels, step_rows
from stallmark.report.document import Block, Fold, Note, Notes, Section, Shown, Words, table_blocks
from stallmark.report.table import Cell, Rows, Table, number, word
from stallmark.report.text import reading, sentence, term
from stallmark.report.text import steady as steady_words
from stallmark.report.text import validity as gate_words
from stallmark.report.text.steady import GIVEN_UP, method, missing_verdict_reason, not_known, threshold_missed
from stallmark.report.text.validity import allowed, asks, figure

# The validity gates as a table: the requirement of each, and its figures in each step.

_WORDS = {True: "passed", False: "FAILED", None: "not known"}
_KINDS = {True: "", False: "bad", None: "none"}


def gates(experiment: ExperimentSummary) -> Table | None:
    """Return the verdict on each gate, or None without gates."""
    labels, several = step_labels(experiment), len(experiment.steps) > 1

    def verdict_cell(verdict: GateVerdict) -> Cell:
        where = ", ".join(labels[step.key] for step in verdict.failed)
        return Cell(_WORDS[verdict.passed] + f" in {where}" * bool(where and several), _KINDS[verdict.passed])

    return Rows(gate_verdicts(experiment.steps)).table_if_any(
        word("gate", lambda verdict: term(verdict.gate.kind)),
        word("verdict", verdict_cell),
        word("found", lambda verdict: figure(verdict.gate)),
        word("allowed", lambda verdict: allowed(verdict.gate)),
        word("requirement", lambda verdict: asks(verdict.gate)),
        notes=[gate_words.NEAREST_TO_FAILING] * several,
    )


def gates_brief(experiment: ExperimentSummary) -> str:
    """Return the number of gates that passed, and the names of the others, in a line."""
    verdicts = gate_verdicts(experiment.steps)
    counted = f"{sum(verdict.passed is True for verdict in verdicts)} of {len(verdicts)} passed"
    failed, unknown = (
        [term(verdict.gate.kind) for verdict in verdicts if verdict.passed is passed] for passed in (False, None)
    )
    more = [f"{', '.join(names)} {word}" for names, word in ((failed, "FAILED"), (unknown, "not known")) if names]
    return "; ".join([counted, *more])


def gates_in_brief(experiment: ExperimentSummary) -> Table | None:
    """Return the verdicts for a terminal, each with its figure in the step nearest to failing; None without gates."""
    labels, steps = step_labels(experiment), experiment.steps

    def figure_text(verdict: GateVerdict) -> str:
        names = [labels[step.key] for step in verdict.failed] if len(verdict.failed) < len(steps) else []
        return figure(verdict.gate) + (f", in {', '.join(names)}" if names else "")

    return Rows(gate_verdicts(steps)).table_if_any(
        word("verdict", lambda verdict: Cell(_WORDS[verdict.passed], _KINDS[verdict.passed] or "good")),
        word("gate", lambda verdict: term(verdict.gate.kind)),
        word("found", figure_text),
        word("allowed", lambda verdict: Cell(allowed(verdict.gate), "quiet")),
    )


def by_step(experiment: ExperimentSummary) -> Table:
    """Return the figure of every gate in every step."""
    labels, steps = step_labels(experiment), experiment.steps
    kinds = [verdict.gate.kind for verdict in gate_verdicts(experiment.steps)]
    gates_by_step = [{gate.kind: gate for gate in step.validity.gates} for step in steps]
    return Table(
        ["gate", *(labels[step.key] for step in steps)],
        [[term(kind), *(_cell(gates.get(kind)) for gates in gates_by_step)] for kind in kinds],
        frozenset(range(len(steps) + 1)),
    )


def _cell(gate: Gate | None) -> Cell | str:
    if gate is None:
        return format.NONE
    return Cell(f"{figure(gate)}; {allowed(gate)}", _KINDS[gate.passed])


def gates_section(experiment: ExperimentSummary) -> Section:
    blocks = table_blocks(gates(experiment), "Validity gates", lead=reading.GATES)
    if blocks and len(experiment.steps) > 1:
        blocks.append(Fold("Every step", [Shown(by_step(experiment), "Validity gates by step")]))
    return Section("validity", "Validity", blocks, gates_brief(experiment))


# The tables of steadiness and of the service level.

AN_HOUR_IS_NEAR_S = 1800  # a slope over fewer seconds is not extrapolated to an hour
OUTCOMES = {
    LevelOutcome.MET: "",
    LevelOutcome.NOT_MET: "bad",
    LevelOutcome.MEAN_ONLY: "apart",
    LevelOutcome.NOT_KNOWN: "none",
}


def steadiness(experiment: ExperimentSummary) -> Table | None:
    """Return the verdict on every step that was tested, with the tests, or None if none was."""
    rows = step_rows(experiment, _tested)
    return rows.table_if_any(
        word("verdict", lambda tested: Cell(term(tested.verdict), "bad" if tested.incomparable else "")),
        word("judged by", lambda tested: term(tested.of)),
        number("s", lambda tested: tested.seconds, format.count),
        number("drift", lambda tested: signed(tested.drift or 0.0)),
        number(
            "95 % interval", lambda tested: f"{signed(tested.drift_low or 0.0)} to {signed(tested.drift_high or 0.0)}"
        ),
        number("per hour", _per_hour),
        number("p", lambda tested: tested.trend_p, _p),
        number("largest shift", lambda tested: signed(tested.change or 0.0)),
        number("at s", lambda tested: tested.change_at_s, format.count),
        number("p", lambda tested: tested.change_p, _p),
        notes=[method(same) for same in group(rows.items, lambda tested: (tested.batches, tested.batch_s))],
    )


def _tested(step: StepSummary) -> list[Steadiness]:
    tested = step.validity.steadiness
    return [tested] if tested and tested.drift is not None else []


def _untested(step: StepSummary) -> list[str]:
    tested = step.validity.steadiness
    return [sentence(tested.finding)] if tested and tested.drift is None else []


def steadiness_brief(experiment: ExperimentSummary) -> str:
    """Return the verdicts in a line such as "3 of 5 steady, 2 too short to judge"; empty if none was judged."""
    verdicts = [step.validity.steadiness.verdict for step in experiment.steps if step.validity.steadiness]
    counted = [f"{verdicts.count(verdict)} of {len(verdicts)} {term(verdict)}" for verdict in dict.fromkeys(verdicts)]
    return ", ".join(counted)


def seconds(experiment: ExperimentSummary) -> Table | None:
    """Return the seconds behind every step's figures, and the warm-up before them, or None if they are not known."""
    rows = step_rows(experiment, lambda step: [step] if step.interval.end_s and step.validity.steadiness else [])
    return rows.table_if_any(
        word("figures over", lambda step: f"{step.interval.begin_s} to {step.interval.end_s} s"),
        number("s", lambda step: step.interval.end_s - step.interval.begin_s, format.count),
        number("measured s", _measured_s, format.count),
        word("complete checkpoint cycles", _cycles),
        word("warm-up", _waited),
        word("warm-up measured", _warm_up),
        notes=_cycle_notes(experiment),
    )


def service_levels(experiment: ExperimentSummary) -> Table | None:
    """Return the outcome of the service level by step, or None if the scenario sets none."""
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
    """Return the outcome and the sentence of every step's service level, for a terminal; empty if no level is set."""
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


def _per_hour(tested: Steadiness) -> str:
    return signed(tested.slope_per_h or 0.0) if tested.seconds >= AN_HOUR_IS_NEAR_S else format.NONE


def _p(value: float | None) -> str:
    if value is None:
        return format.NONE
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def _measured_s(step: StepSummary) -> int:
    cycles = step.interval.cycles
    return cycles.measured_s if cycles else step.interval.end_s - step.interval.begin_s


def _warm_up(step: StepSummary) -> str:
    tested = step.validity.steadiness
    if tested is None:
        return format.NONE
    return f"{tested.warm_up_s} s, {signed(tested.warm_up_shift)}" if tested.warm_up_s else "none"


def _waited(step: StepSummary) -> str:
    if not step.interval.waited:
        return "as planned"
    ended = "steady" if step.interval.waited.steady else "not steady"
    return f"{step.interval.waited.seconds:.0f} s, {ended}"


def _cycles(step: StepSummary) -> str:
    cycles = step.interval.cycles
    if cycles is None:
        return "not known"
    return f"exactly {cycles.count}" if cycles.whole else f"{cycles.count}: too few, or irregular"


def _cycle_notes(experiment: ExperimentSummary) -> list[str]:
    """Return notes on how checkpoint cycles were recognised, and their effect on the figures."""
    known = [step.interval.cycles for step in experiment.steps if step.interval.cycles]
    notes = [steady_words.cycles_shown(by=cycles.shown_by, resolution_s=cycles.resolution_s) for cycles in known[:1]]
    return notes + list(dict.fromkeys(sentence(cycles.finding) for cycles in known if cycles.whole))


def _ideal(level: ServiceLevel) -> str:
    if level.ideal_ms is None:
        return format.NONE
    return f"{level.ideal_ms:g} ms" + {True: ", met", False: ", not met", None: ""}[level.ideal_met]


def steadiness_section(experiment: ExperimentSummary) -> Section:
    # Without a verdict, as for queries, the section is omitted.
    verdicts = steadiness_brief(experiment)
    over = table_blocks(
        seconds(experiment),
        "Seconds measured, checkpoint cycles and waiting, by step",
        "Measured time behind the figures",
    )
    blocks = [
        Words(reading.STEADINESS, "lead"),
        *(Words(f"{steps}: {text}") for steps, text in by_reason(experiment, _untested, "Every step")),
        *table_blocks(steadiness(experiment), "Steadiness of every step"),
        *over,
    ]
    return Section("steadiness", "Steadiness", blocks if verdicts else [], verdicts)


def service_level_section(experiment: ExperimentSummary, lead: str) -> Section:
    return Section("slo", "Service level", table_blocks(service_levels(experiment), "Service level", lead=lead))


# The scenario's thresholds as a table: each with the step that kept it least.


def thresholds(experiment: ExperimentSummary) -> Table | None:
    """Return a row for each threshold, or None if the scenario has none."""
    names = step_labels(experiment)
    return Rows(verdicts_over_steps(experiment.thresholds)).table_if_any(
        word("verdict", lambda verdict: Cell(_WORDS[verdict.passed], _KINDS[verdict.passed])),
        word("threshold", lambda verdict: verdict.text),
        word("measured", lambda verdict: _measured(verdict.steps, names)),
    )


def failures(experiment: ExperimentSummary) -> list[str]:
    """Return the reasons why thresholds make the run fail, one for each that does not hold in every step."""
    names, steps = step_labels(experiment), {step.key: step for step in experiment.steps}
    incomplete = {step.key: run.incomplete_because for run in experiment.runs for step in run.steps}
    reasons = []
    for verdict in verdicts_over_steps(experiment.thresholds):
        # All steps of a verdict share its outcome, so the first one gives the reason.
        first = verdict.steps[0]
        if verdict.passed is False:
            reasons.append(threshold_missed(text=verdict.text, measured=_measured(verdict.steps, names)))
        elif verdict.passed is None:
            reason = missing_verdict_reason(steps[first.step], first.value is not None, incomplete[first.step])
            reasons.append(not_known(verdict.text, names[first.step], reason, len(verdict.steps)))
    return reasons


def _measured(judged: list[Threshold], names: dict[str, str]) -> str:
    return "; ".join(f"{_value(threshold)} in {names[threshold.step]}" for threshold in judged)


def _value(threshold: Threshold) -> str:
    if threshold.value == math.inf:
        return GIVEN_UP
    unit, written = METRICS[threshold.metric].limit_unit, format.number(threshold.value)
    return format.share(threshold.value) if unit == SHARE else f"{written} ms" if unit == "ms" else written


def thresholds_section(experiment: ExperimentSummary) -> Section:
    blocks = table_blocks(thresholds(experiment), "Thresholds", lead=reading.THRESHOLDS)
    return Section("thresholds", "Thresholds", blocks)
