"""The validity gates as a table: the requirement of each, and its figures in each step."""

from collections.abc import Sequence
from dataclasses import dataclass

from stallmark import format
from stallmark.analysis.summary import ExperimentSummary, Gate, StepSummary
from stallmark.report.labels import emulated_label, step_labels
from stallmark.report.table import Cell, Table
from stallmark.report.text.gates import allowed, asks, figure


@dataclass(frozen=True)
class Verdict:
    """One gate over all steps: the steps in which it failed, and the gate of the step nearest to failing, or furthest
    beyond."""

    gate: Gate
    failed: list[StepSummary]
    known: bool

    @property
    def word(self) -> str:
        return "FAILED" if self.failed else "passed" if self.known else "not known"


def verdicts(experiment: ExperimentSummary) -> list[Verdict]:
    """Return verdicts in the order of the gates; none where the record does not say what its workload requires."""
    names = dict.fromkeys(gate.name for step in experiment.steps for gate in step.gates)
    found = []
    for name in names:
        held = [(step, gate) for step in experiment.steps for gate in step.gates if gate.name == name]
        worst = max((gate for _, gate in held), key=_nearness)
        failed = [step for step, gate in held if gate.passed is False]
        found.append(Verdict(worst, failed, any(gate.passed is not None for _, gate in held)))
    return found


def gates(experiment: ExperimentSummary) -> Table | None:
    """Return the verdict on each gate; None where there are no gates."""
    labels = step_labels(experiment)
    rows: list[Sequence[str | Cell]] = []
    for verdict in verdicts(experiment):
        kind = {"FAILED": "bad", "passed": ""}.get(verdict.word, "none")
        where = ", ".join(emulated_label(step, labels) for step in verdict.failed)
        some = f" in {where}" if where and len(experiment.steps) > 1 else ""
        gate = verdict.gate
        rows.append([gate.name, Cell(verdict.word + some, kind), figure(gate), allowed(gate), asks(gate)])
    if not rows:
        return None
    header = ["gate", "verdict", "found", "allowed", "what must hold"]
    several = ["Found: in the step that is nearest to failing the gate, or fails it by most."]
    return Table(header, rows, frozenset(range(5)), several if len(experiment.steps) > 1 else [])


def gates_in_brief(experiment: ExperimentSummary) -> Table | None:
    """Return the verdicts for a terminal, each with its figure in the step nearest to failing; None without gates."""
    names, steps = step_labels(experiment), experiment.steps
    rows: list[Sequence[str | Cell]] = []
    for verdict in verdicts(experiment):
        kind = {"FAILED": "bad", "passed": "good"}.get(verdict.word, "none")
        some = [names[step.key] for step in verdict.failed] if len(verdict.failed) < len(steps) else []
        found = figure(verdict.gate) + (f", in {', '.join(some)}" if some else "")
        rows.append([Cell(verdict.word, kind), verdict.gate.name, found, Cell(allowed(verdict.gate), "quiet")])
    return Table(["verdict", "gate", "found", "allowed"], rows, frozenset(range(4))) if rows else None


def by_step(experiment: ExperimentSummary) -> Table:
    """Return the figure of every gate in every step."""
    labels, steps = step_labels(experiment), experiment.steps
    names = [verdict.gate.name for verdict in verdicts(experiment)]
    found = [{gate.name: gate for gate in step.gates} for step in steps]
    return Table(
        ["gate", *(emulated_label(step, labels) for step in steps)],
        [[name, *(_cell(gates.get(name)) for gates in found)] for name in names],
        frozenset(range(len(steps) + 1)),
    )


def _cell(gate: Gate | None) -> Cell | str:
    if gate is None:
        return format.NONE
    return Cell(f"{figure(gate)}; {allowed(gate)}", {True: "", False: "bad", None: "none"}[gate.passed])


def _nearness(gate: Gate) -> tuple[bool, float]:
    if gate.value is None or gate.limit is None:
        return gate.passed is False, -1.0
    return gate.passed is False, abs(gate.value) / gate.limit if gate.limit else abs(gate.value)
