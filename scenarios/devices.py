"""A scenario on several devices: each of its variants once on each."""

from collections.abc import Iterator, Sequence
from typing import TypeVar

from pydantic import ValidationError

from stallmark.errors import StallmarkError
from stallmark.scenarios.base import AnyScenario
from stallmark.scenarios.variant import PlaceChoice, Variant

Database = TypeVar("Database", bound=AnyScenario)


def on_devices(scenario: Database, devices: Sequence[str]) -> Database:
    """Return the scenario with its variants on each of the devices, given as `NAME=FOLDER` or `NAME=FOLDER,LOG`.

    Raises StallmarkError for one that is written otherwise, and for a scenario that cannot be placed.
    """
    variants = [variant.model_dump(mode="json") for device in devices for variant in _on(scenario.variants, device)]
    try:
        return type(scenario).model_validate(scenario.model_dump(mode="json") | {"variants": variants})
    except ValidationError as error:
        why = error.errors(include_url=False)[0]["msg"].removeprefix("Value error, ")
        raise StallmarkError(f"--device: {why}.") from None


def _on(variants: Sequence[Variant], device: str) -> Iterator[Variant]:
    name, equals, folders = device.partition("=")
    data, _, log = folders.partition(",")
    if not (name and equals and data):
        raise StallmarkError(f"--device {device}: write it as NAME=FOLDER, or NAME=FOLDER,LOG for a log of its own.")
    place = PlaceChoice(data=data, log=log or None)
    for variant in variants:
        named = name if len(variants) == 1 else f"{name}, {variant.name}"
        yield variant.model_copy(update={"name": named, "place": place})
