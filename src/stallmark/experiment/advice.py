"""Advice on a scenario that can be run but will not show what it asks for. Given before the run, kept in the record."""

from stallmark.scenarios.model import AnyScenario, Scenario
from stallmark.transactions import find_workload


def advice(scenario: AnyScenario, machines: int) -> list[str]:
    """Return the advice as sentences. `machines`: how many machines the load comes from."""
    if not isinstance(scenario, Scenario):
        return []
    choice = scenario.workload
    crowded = find_workload(choice.name).crowded(choice.scale, max(scenario.users))
    sentences = [crowded] if crowded else []
    if choice.locality and machines < 2:
        sentences.append(
            f"locality {choice.locality:g} has no effect: the load comes from one machine, which has all customers; "
            "several machines (--expect-workers 2 or more) each have a part of them."
        )
    return sentences
