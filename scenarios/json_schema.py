"""The JSON schema of scenario files, for editors and validators, and the reference page made from the schema."""

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
    definitions = {name: _plain(definition) for name, definition in schema["$defs"].items() if f'/{name}"' in named}
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
