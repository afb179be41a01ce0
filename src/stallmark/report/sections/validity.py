"""The validity gates as a table: the requirement of each, and its figures in each step."""

from collections.abc import Sequence

from stallmark import format
from stallmark.analysis.experiment import ExperimentSummary, gate_verdicts
from stallmark.analysis.validity.gates import Gate
from stallmark.report.document import Fold, Section, Shown, shown
from stallmark.report.labels import step_labels
from stallmark.report.table import Cell, Table
from stallmark.report.text import gates as gate_words
from stallmark.report.text import reading
from stallmark.report.text.gates import allowed, asks, figure
from stallmark.report.text.terms import term

_WORDS = {True: "passed", False: "FAILED", None: "not known"}


def gates(experiment: ExperimentSummary) -> Table | None:
    """Return the verdict on each gate; None where there are no gates."""
    labels = step_labels(experiment)
    rows: list[Sequence[str | Cell]] = []
    for verdict in gate_verdicts(experiment.steps):
        kind = {False: "bad", True: "", None: "none"}[verdict.passed]
        where = ", ".join(labels[step.key] for step in verdict.failed)
        some = f" in {where}" if where and len(experiment.steps) > 1 else ""
        gate = verdict.gate
        rows.append(
            [term(gate.kind), Cell(_WORDS[verdict.passed] + some, kind), figure(gate), allowed(gate), asks(gate)]
        )
    if not rows:
        return None
    header = ["gate", "verdict", "found", "allowed", "what must hold"]
    several = [gate_words.NEAREST_TO_FAILING]
    return Table(header, rows, frozenset(range(5)), several if len(experiment.steps) > 1 else [])


def brief(experiment: ExperimentSummary) -> str:
    """Return how many gates hold, and those that do not, in a line."""
    verdicts = gate_verdicts(experiment.steps)
    counted = f"{sum(one.passed is True for one in verdicts)} of {len(verdicts)} hold"
    failed, unknown = ([term(one.gate.kind) for one in verdicts if one.passed is what] for what in (False, None))
    more = [f"{', '.join(names)} {word}" for names, word in ((failed, "FAILED"), (unknown, "not known")) if names]
    return "; ".join([counted, *more])


def gates_in_brief(experiment: ExperimentSummary) -> Table | None:
    """Return the verdicts for a terminal, each with its figure in the step nearest to failing; None without gates."""
    names, steps = step_labels(experiment), experiment.steps
    rows: list[Sequence[str | Cell]] = []
    for verdict in gate_verdicts(experiment.steps):
        kind = {False: "bad", True: "good", None: "none"}[verdict.passed]
        some = [names[step.key] for step in verdict.failed] if len(verdict.failed) < len(steps) else []
        found = figure(verdict.gate) + (f", in {', '.join(some)}" if some else "")
        rows.append(
            [Cell(_WORDS[verdict.passed], kind), term(verdict.gate.kind), found, Cell(allowed(verdict.gate), "quiet")]
        )
    return Table(["verdict", "gate", "found", "allowed"], rows, frozenset(range(4))) if rows else None


def by_step(experiment: ExperimentSummary) -> Table:
    """Return the figure of every gate in every step."""
    labels, steps = step_labels(experiment), experiment.steps
    kinds = [verdict.gate.kind for verdict in gate_verdicts(experiment.steps)]
    found = [{gate.kind: gate for gate in step.validity.gates} for step in steps]
    return Table(
        ["gate", *(labels[step.key] for step in steps)],
        [[term(kind), *(_cell(gates.get(kind)) for gates in found)] for kind in kinds],
        frozenset(range(len(steps) + 1)),
    )


def _cell(gate: Gate | None) -> Cell | str:
    if gate is None:
        return format.NONE
    return Cell(f"{figure(gate)}; {allowed(gate)}", {True: "", False: "bad", None: "none"}[gate.passed])


def section(experiment: ExperimentSummary) -> Section:
    blocks = shown(gates(experiment), "Validity gates", lead=reading.GATES)
    if blocks and len(experiment.steps) > 1:
        blocks.append(Fold("Every step", [Shown(by_step(experiment), "Validity gates by step")]))
    return Section("validity", "Validity", blocks, brief(experiment))
