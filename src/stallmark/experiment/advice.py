"""What can be run, and will not say what is asked: said before it is run, and kept in the record."""

from stallmark.scenarios.model import AnyScenario, Scenario
from stallmark.transactions import find_workload


def advice(scenario: AnyScenario, machines: int) -> list[str]:
    """As sentences. The load comes from so many machines."""
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
