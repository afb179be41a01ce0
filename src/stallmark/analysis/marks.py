"""The findings that a reader must know before believing figures: the marks of a step, and each gate over all steps."""

from collections.abc import Sequence
from dataclasses import dataclass

from stallmark.analysis.experiment import ExperimentSummary
from stallmark.analysis.finding import Finding, Severity, invalid
from stallmark.analysis.run import RunSummary
from stallmark.analysis.steady.steadiness import Judgement
from stallmark.analysis.step_summary import StepSummary
from stallmark.analysis.validity.gates import Gate
from stallmark.analysis.validity.kinds import ValidityKind


def marks(run: RunSummary, step: StepSummary) -> list[Finding]:
    """Return the marks of a step of `run`. Their severity tells which of them forbid a comparison."""
    judged = step.validity
    found = []
    if run.incomplete_because:
        found.append(invalid(ValidityKind.RUN_INCOMPLETE, said=run.incomplete_because))
    if judged.steadiness and judged.steadiness.verdict in (Judgement.NEVER, Judgement.LATE):
        found.append(judged.steadiness.finding)
    found += judged.invalid
    found += [gate.failure for gate in judged.gates if gate.failure and not gate.voids]
    found += [*judged.bursts, *judged.gaps, *judged.driver_bound]
    if step.storage.writes_partial:
        found.append(step.storage.writes_partial)
    if step.bottleneck.device_verdict:
        found.append(step.bottleneck.device_verdict)
    return found


def doubtful(experiment: ExperimentSummary) -> set[str]:
    """Return the keys of the steps with a mark that forbids a comparison."""
    return {
        step.key
        for run in experiment.runs
        for step in run.steps
        if any(one.severity is Severity.INVALID for one in marks(run, step))
    }


@dataclass(frozen=True)
class GateVerdict:
    """One gate over all steps: the steps in which it failed, and the gate of the step nearest to failing, or
    furthest beyond."""

    gate: Gate
    failed: list[StepSummary]
    passed: bool | None  # in every step; None if it failed in none and was not judged in some


def gate_verdicts(steps: Sequence[StepSummary]) -> list[GateVerdict]:
    """Return verdicts in the order of the gates; none where the record does not say what its workload requires."""
    found = []
    for kind in dict.fromkeys(gate.kind for step in steps for gate in step.validity.gates):
        held = [(step, gate) for step in steps for gate in step.validity.gates if gate.kind == kind]
        worst = max((gate for _, gate in held), key=_nearness)
        failed = [step for step, gate in held if gate.passed is False]
        known = all(gate.passed is not None for _, gate in held)
        found.append(GateVerdict(worst, failed, False if failed else True if known else None))
    return found


def _nearness(gate: Gate) -> tuple[bool, float]:
    if gate.value is None or gate.limit is None:
        return gate.passed is False, -1.0
    return gate.passed is False, abs(gate.value) / gate.limit if gate.limit else abs(gate.value)
