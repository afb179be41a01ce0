"""The kinds of scenario files, one model for each. Everything is checked before anything starts."""

from collections.abc import Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from stallmark import capabilities
from stallmark.errors import StallmarkError
from stallmark.scenarios.base import AnyScenario, Observation
from stallmark.scenarios.database import WorkloadChoice
from stallmark.scenarios.loads import LoadsScenario
from stallmark.scenarios.probe import ProbeScenario, ProbeVariant
from stallmark.scenarios.queries import QueryScenario
from stallmark.scenarios.timed import Scenario, TimedScenario
from stallmark.scenarios.variant import Hook, PlaceChoice, Variant

# A scenario on several devices: each of its variants once on each.

Database = TypeVar("Database", bound=AnyScenario)


def on_devices(scenario: Database, devices: Sequence[str]) -> Database:
    """Return the scenario with its variants on each of the devices, given as `NAME=FOLDER` or `NAME=FOLDER,LOG`.

    Raises StallmarkError for one that is written otherwise, and for a scenario that cannot be placed.
    """
    variants = [
        variant.model_dump(mode="json") for device in devices for variant in _variants_on(scenario.variants, device)
    ]
    try:
        return type(scenario).model_validate(scenario.model_dump(mode="json") | {"variants": variants})
    except ValidationError as error:
        reason = error.errors(include_url=False)[0]["msg"].removeprefix("Value error, ")
        raise StallmarkError(f"--device: {reason}.") from None


def _variants_on(variants: Sequence[Variant], device: str) -> Iterator[Variant]:
    name, equals, folders = device.partition("=")
    data, _, log = folders.partition(",")
    if not (name and equals and data):
        raise StallmarkError(f"--device {device}: write it as NAME=FOLDER, or NAME=FOLDER,LOG for a log of its own.")
    place = PlaceChoice(data=data, log=log or None)
    for variant in variants:
        named = name if len(variants) == 1 else f"{name}, {variant.name}"
        yield variant.model_copy(update={"name": named, "place": place})


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
        return next(
            (kind for kind in capabilities.parts("scenario") if _added_keys(kind) & document.keys()), LoadsScenario
        )
    if "workload" not in document and ("probe" in document or "raw" in document):
        return ProbeScenario
    return QueryScenario if "queries" in document else Scenario


def _added_keys(kind: type[LoadsScenario]) -> Set[str]:
    return kind.model_fields.keys() - LoadsScenario.model_fields.keys()
