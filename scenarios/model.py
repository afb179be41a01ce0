"""The kinds of scenario files, one model for each, their JSON schema for editors, and the reference page made from it.

Everything is checked before anything starts.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BeforeValidator, Field, ValidationError, model_validator
from pydantic.json_schema import models_json_schema

from stallmark import capabilities
from stallmark.errors import WrongOption
from stallmark.quantities import PoolSize, Seconds, write_duration
from stallmark.scenarios import EachOnce, Section, Titled
from stallmark.scenarios.base import AnyScenario, Observation
from stallmark.scenarios.database import WorkloadChoice
from stallmark.scenarios.load import StreamCount
from stallmark.scenarios.timed import LoadsScenario, Scenario, TimedScenario
from stallmark.scenarios.variant import Hook, PlaceChoice, Variant
from stallmark.transactions import find_workload
from stallmark.transactions.warehouse import QUERIES
from stallmark.transactions.workload import QueryStreams

# A scenario in which streams execute the warehouse's queries to their end, in place of users and their time.
#
# queries: {run: power}                            # refresh, 22 queries in one stream, refresh
# queries: {run: throughput, streams: 4}           # streams at once, and one that refreshes
# queries: {run: both}                             # one after the other
# queries: {run: each, only: [1, 6, 18], dop: [1, 2, all]}   # queries alone, at each degree of parallelism

Phase = Literal["power", "throughput", "each"]
QueryNumber = Annotated[int, Field(ge=QUERIES[0], le=QUERIES[-1], strict=True)]


def _dop(given: Any) -> Any:
    if given != "all" and (type(given) is not int or given < 1):
        raise ValueError("write a whole number from 1, or all: the number of processes or threads for a query")
    return given


Dop = Annotated[int | Literal["all"], BeforeValidator(_dop)]


class QueriesChoice(Section):
    """The `queries:` section: queries run alone, in streams, or each by itself."""

    run: Literal["power", "throughput", "both", "each"]
    """The kind of run. `power`: one query after the other. `throughput`: streams at once, and one that refreshes.
    `both`: power, then throughput. `each`: every query by itself."""
    streams: StreamCount | None = None
    """The number of streams of a throughput run; by default that for the scale."""
    only: Annotated[list[QueryNumber], Field(min_length=1), EachOnce] | None = None
    """The numbers of the queries of an `each` run; by default all."""
    dop: Annotated[list[Dop], Field(min_length=1), EachOnce] | None = None
    """The degrees of parallelism of an `each` run: numbers of processes or threads for one query, or `all` for the
    number of the server's cores."""
    refresh: Annotated[bool, Field(strict=True)] | None = None
    """Run the refresh functions; by default in power and throughput runs."""
    timeout: Annotated[Seconds, Field(ge=1)] = 120.0
    """The time a query has; one that takes longer is cancelled and counted."""

    def mistakes(self) -> Iterator[str]:
        for name in ("only", "dop"):
            if getattr(self, name) and self.run != "each":
                yield f"{name} belongs to `run: each`: remove it, or write that"
        if self.streams and self.run not in ("throughput", "both"):
            yield "streams belong to `run: throughput` or `run: both`: remove them, or write one of these"
        if self.refresh and self.run == "each":
            yield "refresh belongs to a power or throughput run: remove it"

    @property
    def phases(self) -> tuple[Phase, ...]:
        """Return the phases, in order."""
        return ("power", "throughput") if self.run == "both" else (self.run,)

    @property
    def refreshes(self) -> bool:
        """True if the refresh functions are run: by default in power and throughput runs."""
        return self.run != "each" if self.refresh is None else self.refresh


_OF_USERS = set(Scenario.model_fields) - set(AnyScenario.model_fields) - {"workload"}


class QueryScenario(AnyScenario):
    """Streams execute queries, to their end."""

    heading = "Streams of queries"
    workload: WorkloadChoice
    """The database and its load."""
    queries: QueriesChoice
    """Streams of queries, in place of users."""

    @model_validator(mode="before")
    @classmethod
    def _refuse_users(cls, data: dict) -> dict:
        if isinstance(data, dict) and (unwanted := sorted(_OF_USERS & set(data))):
            raise ValueError(
                f"{unwanted[0]} belongs to users who execute transactions, and `queries` has streams in their place: "
                "remove one of the two"
            )
        return data

    def mistakes(self) -> Iterator[str]:
        yield from super().mistakes()
        if not find_workload(self.workload.name).streams:
            yield (
                f"{self.workload.name} has no queries for streams: write users, warm_up and measure in place of "
                "`queries`, or set workload.name: warehouse"
            )
        yield from self.without_mistakes()
        yield from self.curve_mistakes("it is of reads per transaction, which queries have none of")

    @property
    def contents(self) -> WorkloadChoice:
        return self.workload

    @property
    def query_streams(self) -> QueryStreams:
        own_streams = find_workload(self.workload.name).streams
        assert own_streams
        return own_streams

    @property
    def streams(self) -> int:
        """Return the streams of a throughput run."""
        return self.queries.streams or self.query_streams.at_scale(self.workload.scale)


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
        raise WrongOption(f"--device: {reason}.") from None


def _variants_on(variants: Sequence[Variant], device: str) -> Iterator[Variant]:
    name, equals, folders = device.partition("=")
    data, _, log = folders.partition(",")
    if not (name and equals and data):
        raise WrongOption(f"--device {device}: write it as NAME=FOLDER, or NAME=FOLDER,LOG for a log of its own.")
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
    "QueryScenario",
    "Scenario",
    "TimedScenario",
    "Variant",
    "WorkloadChoice",
    "model_for",
]

SHIPPED = Path(__file__).parent


def model_for(document: Mapping[str, Any]) -> type[Titled]:
    """Return the model of the kind of scenario that a file means."""
    own: type[Titled] | None = next((kind for kind in capabilities.parts("scenario") if kind.is_meant(document)), None)
    if own:
        return own
    if "loads" in document:
        return LoadsScenario
    return QueryScenario if "queries" in document else Scenario


FILE = "scenario.schema.json"
"""The schema as a file beside the scenarios: editors find it by the first line of each."""


def kinds() -> list[type[Titled]]:
    """Return the models of all kinds of scenario files; those that add keys to another follow it."""
    added = capabilities.parts("scenario")
    of_loads = [kind for kind in added if issubclass(kind, LoadsScenario)]
    return [Scenario, LoadsScenario, *of_loads, QueryScenario, *(kind for kind in added if kind not in of_loads)]


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
