"""The kinds of scenario files, one model for each. Everything is checked before anything starts."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stallmark.scenarios.base import AnyScenario, Observation
from stallmark.scenarios.loads import LoadsScenario
from stallmark.scenarios.probe import ProbeScenario, ProbeVariant
from stallmark.scenarios.queries import QueryScenario
from stallmark.scenarios.sizing import SizingScenario
from stallmark.scenarios.users import Scenario, TimedScenario
from stallmark.scenarios.variant import Hook, Variant
from stallmark.scenarios.workload import WorkloadChoice

__all__ = [
    "SHIPPED",
    "AnyScenario",
    "Hook",
    "LoadsScenario",
    "Observation",
    "ProbeScenario",
    "ProbeVariant",
    "QueryScenario",
    "Scenario",
    "SizingScenario",
    "TimedScenario",
    "Variant",
    "WorkloadChoice",
    "model_for",
]

SHIPPED = Path(__file__).parent


def model_for(
    document: Mapping[str, Any],
) -> type[Scenario] | type[LoadsScenario] | type[QueryScenario] | type[ProbeScenario]:
    """Return the model of the kind of scenario that a file means.

    A `probe` without a workload probes storage alone; with one it is made around every run.
    """
    if "loads" in document:
        return SizingScenario if "replay" in document or "candidate" in document else LoadsScenario
    if "workload" not in document and ("probe" in document or "raw" in document):
        return ProbeScenario
    return QueryScenario if "queries" in document else Scenario
