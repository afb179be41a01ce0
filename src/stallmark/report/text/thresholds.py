"""Why the thresholds of a scenario make a command fail."""

from stallmark.analysis.step_summary import StepSummary
from stallmark.report.text import clause

GIVEN_UP = "given up"


def missed(text: str, measured: str) -> str:
    return f"{text} was not kept ({measured})"


def not_known(text: str, name: str, why: str, steps: int) -> str:
    more = f" and {steps - 1} more" if steps > 1 else ""
    return f"{text} is not known in {name}{more}: {why}"


def why_not_judged(step: StepSummary, measured: bool, incomplete_because: str | None) -> str:
    """Return why a threshold has no verdict in a step."""
    if not measured:
        return "it was not measured there"
    if step.validity.invalid:
        return clause(step.validity.invalid[0])
    return incomplete_because or "the step ended early"
