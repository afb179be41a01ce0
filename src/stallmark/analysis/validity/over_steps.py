"""The verdict on each gate over all steps of an experiment."""

from collections.abc import Sequence
from dataclasses import dataclass

from stallmark.analysis.step_summary import Gate, StepSummary


@dataclass(frozen=True)
class GateVerdict:
    """One gate over all steps: the steps in which it failed, and the gate of the step nearest to failing, or furthest
    beyond."""

    gate: Gate
    failed: list[StepSummary]
    passed: bool | None  # in every step in which it was judged; None where in none


def gate_verdicts(steps: Sequence[StepSummary]) -> list[GateVerdict]:
    """Return verdicts in the order of the gates; none where the record does not say what its workload requires."""
    found = []
    for kind in dict.fromkeys(gate.kind for step in steps for gate in step.validity.gates):
        held = [(step, gate) for step in steps for gate in step.validity.gates if gate.kind == kind]
        worst = max((gate for _, gate in held), key=_nearness)
        failed = [step for step, gate in held if gate.passed is False]
        known = any(gate.passed is not None for _, gate in held)
        found.append(GateVerdict(worst, failed, not failed if known else None))
    return found


def _nearness(gate: Gate) -> tuple[bool, float]:
    if gate.value is None or gate.limit is None:
        return gate.passed is False, -1.0
    return gate.passed is False, abs(gate.value) / gate.limit if gate.limit else abs(gate.value)
