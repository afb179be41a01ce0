"""The kinds of scenario files, one model for each, their JSON schema for editors, and the reference page made from it.

Everything is checked before anything starts.
"""

import json
from collections.abc import Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError
from pydantic.json_schema import models_json_schema

from stallmark import capabilities
from stallmark.errors import StallmarkError
from stallmark.quantities import PoolSize, write_duration
from stallmark.scenarios import Section, Titled
from stallmark.scenarios.base import AnyScenario, Observation
from stallmark.scenarios.database import WorkloadChoice
from stallmark.scenarios.queries import QueryScenario
from stallmark.scenarios.storage import ProbeScenario, ProbeVariant
from stallmark.scenarios.timed import LoadsScenario, Scenario, TimedScenario
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


FILE = "scenario.schema.json"
"""The schema as a file beside the scenarios: editors find it by the first line of each."""


def kinds() -> list[type[Titled]]:
    """Return the models of all kinds of scenario files; those of capabilities have loads, too."""
    return [Scenario, LoadsScenario, *capabilities.parts("scenario"), QueryScenario, ProbeScenario]


def json_schema() -> dict[str, Any]:
    """Return the schema of all kinds of scenario files (JSON Schema 2020-12)."""
    return schema_of(kinds(), "A scenario of Stallmark")


def schema_of(models: Sequence[type[Section]], title: str) -> dict[str, Any]:
    """Return the schema of files that one of these models reads."""
    references, schema = models_json_schema([(model, "validation") for model in models])
    named = json.dumps([schema["$defs"], *references.values()])
    definitions = {name: _plain(definition) for name, definition in schema["$defs"].items() if f'/{name}"' in named}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": title,
        "anyOf": [references[model, "validation"] for model in models],
        "$defs": dict(sorted(definitions.items())),
    }


def reference() -> str:
    """Return the reference of all keys in Markdown: a table for each kind of file, and one for each section in it."""
    definitions = json_schema()["$defs"]
    parts = [
        "# Scenario reference",
        "A scenario is a YAML file. `stallmark new FILE --from buffer-pool` makes one to change. `stallmark schema` "
        "prints the JSON schema by which editors complete and check it; this page is made from the same model.",
    ]
    known: dict[str, Any] = {}
    for kind in kinds():
        parts += [f"## {kind.heading}", *_table(definitions[kind.__name__], known)]
        known |= definitions[kind.__name__]["properties"]
    of_kinds = {kind.__name__ for kind in kinds()}
    for name, definition in definitions.items():
        if name not in of_kinds and "properties" in definition:
            parts += [f"### {_title(name)}", *_table(definition, {})]
    return "\n\n".join(parts) + "\n"


def _plain(schema: Any) -> Any:
    """Return a schema without the names of Python's fields, its durations and sizes written as a scenario has them."""
    if isinstance(schema, list):
        return [_plain(part) for part in schema]
    if not isinstance(schema, Mapping):
        return schema
    plain: dict[str, Any] = {
        key: {name: _plain(part) for name, part in value.items()} if key == "properties" else _plain(value)
        for key, value in schema.items()
        if key != "title" and not (key == "default" and value in (None, ""))
    }
    if "description" in plain:
        plain["description"] = " ".join(plain["description"].split())
    if isinstance(plain.get("default"), float) and "90s" in str(plain):
        plain["default"] = write_duration(plain["default"])
    if plain.get("default") and any("iB" in str(example) for example in plain.get("examples", ())):
        size = plain["default"]
        plain["default"] = str(PoolSize(**size) if isinstance(size, Mapping) else PoolSize(size))
    return plain


def _table(definition: Mapping[str, Any], known: Mapping[str, Any]) -> Iterator[str]:
    """Yield a paragraph of the keys that an earlier table has (`known`), and a table of the others."""
    required = definition.get("required", ())
    if same := [f"`{name}`" for name, property in definition["properties"].items() if known.get(name) == property]:
        yield f"As above: {', '.join(same)}."
    rows = ["| key | value | default | meaning |", "|---|---|---|---|"]
    for name, property in definition["properties"].items():
        if known.get(name) != property:
            default = "required" if name in required else _yaml(property["default"]) if "default" in property else ""
            rows.append(
                f"| `{name}` | {' or '.join(_values(property))} | {default} | {property.get('description', '')} |"
            )
    yield "\n".join(rows)


def _values(schema: Mapping[str, Any]) -> list[str]:
    """Return the ways to write a value: its words, an example, or the section that holds its keys."""
    if "$ref" in schema:
        name = _title(schema["$ref"].rpartition("/")[2])
        return [f"[{name}](#{name.lower()})"]
    if alternatives := schema.get("anyOf") or schema.get("oneOf"):
        return [
            text for alternative in alternatives if alternative.get("type") != "null" for text in _values(alternative)
        ]
    if "const" in schema:
        return [_yaml(schema["const"])]
    if "enum" in schema:
        return [_yaml(word) for word in schema["enum"]]
    if "examples" in schema:
        return [_yaml(schema["examples"][0])]
    if schema.get("type") == "array":
        item = " or ".join(_values(schema["items"]))
        return [f"a list of {item}s" if item.endswith("number") else f"a list of {item}"]
    return [{"integer": "whole number", "number": "number", "boolean": "`true`, `false`", "object": "mapping"}.get(
        schema.get("type", ""), "text"
    )]  # fmt: skip


def _title(name: str) -> str:
    return name.removesuffix("Choice")


def _yaml(value: Any) -> str:
    return "" if value in ([], {}) else f"`{'true' if value is True else 'false' if value is False else value}`"
