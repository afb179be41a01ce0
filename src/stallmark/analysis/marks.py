"""The marks of a step: the findings that a reader must know before believing its figures."""

from stallmark.analysis.finding import Finding, Severity, invalid
from stallmark.analysis.steady.steadiness import Judgement
from stallmark.analysis.step_summary import StepSummary
from stallmark.analysis.summary import ExperimentSummary, RunSummary
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
