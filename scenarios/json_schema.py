"""The JSON schema of scenario files, for editors and validators, and the reference page that is made of it."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic.json_schema import models_json_schema

from stallmark import capabilities
from stallmark.quantities import PoolSize, write_duration
from stallmark.scenarios.model import LoadsScenario, ProbeScenario, QueryScenario, Scenario
from stallmark.scenarios.section import Titled

FILE = "scenario.schema.json"
"""The schema as a file beside the scenarios: editors find it by the first line of each."""


def kinds() -> list[type[Titled]]:
    """Return the models of all kinds of scenario files; those of capabilities have loads, too."""
    return [Scenario, LoadsScenario, *capabilities.parts("scenario"), QueryScenario, ProbeScenario]


def json_schema() -> dict[str, Any]:
    """Return the schema of all kinds of scenario files (JSON Schema 2020-12)."""
    models = kinds()
    references, schema = models_json_schema([(kind, "validation") for kind in models])
    named = json.dumps([schema["$defs"], *references.values()])
    definitions = {name: _plain(one) for name, one in schema["$defs"].items() if f'/{name}"' in named}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A scenario of Stallmark",
        "anyOf": [references[kind, "validation"] for kind in models],
        "$defs": dict(sorted(definitions.items())),
    }


def reference() -> str:
    """Return the reference of all keys in Markdown: a table for each kind of file, and one for each section in it."""
    definitions = json_schema()["$defs"]
    parts = [
        "# What may a scenario file say?",
        "A scenario is a YAML file. `stallmark new FILE --from buffer-pool` makes one to change. `stallmark schema` "
        "prints the JSON schema by which editors complete and check it; this page is made from the same model.",
    ]
    told: dict[str, Any] = {}
    for kind in kinds():
        parts += [f"## {kind.heading}", *_table(definitions[kind.__name__], told)]
        told |= definitions[kind.__name__]["properties"]
    of_kinds = {kind.__name__ for kind in kinds()}
    for name, definition in definitions.items():
        if name not in of_kinds and "properties" in definition:
            parts += [f"### {_title(name)}", *_table(definition, {})]
    return "\n\n".join(parts) + "\n"


def _plain(schema: Any) -> Any:
    """Return a schema without the names of Python's fields, its durations and sizes written as a scenario has them."""
    if isinstance(schema, list):
        return [_plain(one) for one in schema]
    if not isinstance(schema, Mapping):
        return schema
    plain: dict[str, Any] = {
        key: {name: _plain(one) for name, one in value.items()} if key == "properties" else _plain(value)
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


def _table(definition: Mapping[str, Any], told: Mapping[str, Any]) -> Iterator[str]:
    """Yield a paragraph of the keys that an earlier table has `told`, and a table of the others."""
    required = definition.get("required", ())
    if same := [f"`{name}`" for name, one in definition["properties"].items() if told.get(name) == one]:
        yield f"As above: {', '.join(same)}."
    rows = ["| key | value | default | meaning |", "|---|---|---|---|"]
    for name, one in definition["properties"].items():
        if told.get(name) != one:
            default = "required" if name in required else _yaml(one["default"]) if "default" in one else ""
            rows.append(f"| `{name}` | {' or '.join(_values(one))} | {default} | {one.get('description', '')} |")
    yield "\n".join(rows)


def _values(one: Mapping[str, Any]) -> list[str]:
    """Return how a value is written: its words, an example, or the section that holds its keys."""
    if "$ref" in one:
        name = _title(one["$ref"].rpartition("/")[2])
        return [f"[{name}](#{name.lower()})"]
    if alternatives := one.get("anyOf") or one.get("oneOf"):
        return [said for each in alternatives if each.get("type") != "null" for said in _values(each)]
    if "const" in one:
        return [_yaml(one["const"])]
    if "enum" in one:
        return [_yaml(word) for word in one["enum"]]
    if "examples" in one:
        return [_yaml(one["examples"][0])]
    if one.get("type") == "array":
        each = " or ".join(_values(one["items"]))
        return [f"a list of {each}s" if each.endswith("number") else f"a list of {each}"]
    return [{"integer": "whole number", "number": "number", "boolean": "`true`, `false`", "object": "mapping"}.get(
        one.get("type", ""), "text"
    )]  # fmt: skip


def _title(name: str) -> str:
    return name.removesuffix("Choice")


def _yaml(value: Any) -> str:
    return "" if value in ([], {}) else f"`{'true' if value is True else 'false' if value is False else value}`"
