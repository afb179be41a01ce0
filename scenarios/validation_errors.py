"""Make sentences of pydantic's errors in a scenario: where, what is wrong, what to write instead."""

import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from stallmark.errors import as_sentence, mistake
from stallmark.quantities import PoolSize, in_yaml, write_duration
from stallmark.scenarios.model import model_for

Keys = tuple[str | int, ...]

_REPEATED = 100
"""Characters of what was given that a sentence repeats."""

_RENAMED = {"device": "emulated_array", "raw": "probe"}
"""Keys of earlier versions, with their present names."""

_REMOVED = {
    "profile": "is no key any more: write arrivals: {kind: poisson, rate: …}, or search: {of: rate, from: …, to: …} "
    "for the highest rate within slo; the report shows how many mailboxes of 0.12 I/Os per second do as much"
}
"""Keys of earlier versions that nothing replaces by itself, and what to write."""

OWN_WORDS = "own_words"
"""The type of a custom error whose message is a sentence of ours."""
_UNKNOWN = ("extra_forbidden", "unexpected_keyword_argument")
_MISSING = ("missing", "missing_argument")
_NO_MAPPING = ("model_type", "model_attributes_type", "dataclass_type")


def sentences(
    error: ValidationError, document: Any, path: Path, overrides: Mapping[Keys, str], model: type | None = None
) -> list[str]:
    """Return a sentence for each mistake in `document`, which was read from `path`; by default it is a scenario.

    `overrides` has the keys that came from the command line, each with the option that was written there.
    """
    root = model or model_for(document)
    problems = [_Problem(item, document, root) for item in error.errors()]
    meant = {(*problem.keys[:-1], problem.near) for problem in problems if problem.kind in _UNKNOWN}
    reasons = (
        as_sentence(f"{_place(problem.keys, document, path, overrides)}: {problem.sentence()}")
        for problem in problems
        if not (problem.kind in _MISSING and problem.keys in meant)  # misspelt: said already
    )
    return list(dict.fromkeys(reasons))


class _Problem:
    """A pydantic error. `keys` lead to it in the file, without the alternatives pydantic tried."""

    def __init__(self, item: Any, document: Any, root: type):
        self.kind: str = item["type"]
        self.given = item["input"]
        self.models = _models_at(root, item["loc"][: -1 if self.kind in _UNKNOWN else None])
        self.keys = tuple(_keys(item["loc"], document, keep_last=self.kind in _MISSING))
        self._context = item.get("ctx", {})
        self._message: str = mistake(item)

    @property
    def choices(self) -> list[str]:
        """The keys there are in this place."""
        return list(dict.fromkeys(str(name) for model in self.models for name in _annotations(model)))

    @property
    def near(self) -> str | None:
        """The key that was probably meant: one that was renamed, or spelt nearly so."""
        if (renamed := _RENAMED.get(str(self.keys[-1]))) in self.choices:
            return renamed
        return next(iter(difflib.get_close_matches(str(self.keys[-1]), self.choices, 1)), None)

    def sentence(self) -> str:
        where = ".".join(map(str, self.keys))
        if self.kind in _UNKNOWN:
            if removed := _REMOVED.get(str(self.keys[-1])):
                return f"{where} {removed}"
            if self.near and self.near == _RENAMED.get(str(self.keys[-1])):
                return f"{where} is called {self.near} now: rename it"
            hint = f"did you mean {self.near}?" if self.near else f"there are {', '.join(self.choices)}"
            return f"unknown key {where}: {hint}"
        if self.kind in _MISSING:
            return f"{where} is missing: add it"
        if self.kind in ("value_error", OWN_WORDS):
            return f"{where}: {self._message}" if where else self._message
        return f"{where} {self._must()}, not {_given_in_words(self.given)}"

    def _must(self) -> str:
        mapping = f"{{{', '.join(f'{name}: …' for name in self.choices) or '…'}}}"
        if self.kind in _NO_MAPPING:
            return f"must be written as {mapping}"
        if self.kind == "dict_type":  # the models are those of its values
            return "must be written as {…}"
        if self.kind == "literal_error":
            words = self._context["expected"].replace("'", "").replace("True", "true").replace("False", "false")
            return f"must be {words} or {mapping}" if self.models else f"must be {words}"
        must = _MUST.get(self.kind, lambda _: "must be something else")
        return must(self._context | {"given": self.given})


def _limit(word: str, name: str) -> Callable[[dict[str, Any]], str]:
    def must(context: dict[str, Any]) -> str:
        return f"must be {word} {_in_unit(context[name], context['given'])}"

    return must


def _in_unit(limit: float, given: Any) -> str:
    """Write a limit in the unit of what was given."""
    if not isinstance(given, str) or "/" in given:  # a rate: its limit is a number
        return f"{limit:,g}"
    if given.strip().endswith("%"):
        return str(PoolSize(share=limit))
    return str(PoolSize(int(limit))) if given.strip()[-1:] in ("B", "b") else write_duration(limit)


def _letters_in_words(pattern: str) -> str:
    """Return the characters that a pattern takes."""
    signs = pattern.rpartition("0-9")[2].partition("]")[0]
    if pattern.startswith(r"^\w"):
        return "two names with a point between them"
    words = ["small letters", "digits"] + ["underscores"] * ("_" in signs) + ["hyphens"] * ("-" in signs)
    return f"{', '.join(words[:-1])} and {words[-1]}"


_MUST: dict[str, Callable[[dict[str, Any]], str]] = {
    "greater_than_equal": _limit("at least", "ge"),
    "greater_than": _limit("more than", "gt"),
    "less_than_equal": _limit("at most", "le"),
    "multiple_of": _limit("a multiple of", "multiple_of"),
    "finite_number": lambda _: "must be a number",
    "too_long": lambda context: f"must have at most {context['max_length']} items",
    "too_short": lambda _: "must have at least one item",
    "string_too_short": lambda _: "must not be empty",
    "string_too_long": lambda context: f"must have at most {context['max_length']} characters",
    "string_pattern_mismatch": lambda context: f"must be {_letters_in_words(context['pattern'])}",
    "string_type": lambda _: "must be a text (put it in quotes)",
    "list_type": lambda _: "must be a list (a line beginning with `-` for each item)",
    **dict.fromkeys(("bool_type", "bool_parsing"), lambda _: "must be true or false"),
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), lambda _: "must be a whole number"),
    **dict.fromkeys(("float_type", "float_parsing"), lambda _: "must be a number"),
}


def _given_in_words(given: Any) -> str:
    if given is None:
        return "empty"
    if isinstance(given, Mapping):
        return "a mapping" if given else "an empty mapping"
    if isinstance(given, list):
        return "a list" if given else "an empty list"
    return repr(shortened(given)) if isinstance(given, str) else in_yaml(given)


def shortened(text: str) -> str:
    """Return a text as a sentence can repeat it."""
    return text if len(text) <= _REPEATED else f"{text[:_REPEATED]}…"


def _place(keys: Keys, document: Any, path: Path, overrides: Mapping[Keys, str]) -> str:
    for length in range(len(keys), 0, -1):
        if keys[:length] in overrides:
            return overrides[keys[:length]]
    if everything := overrides.get(()):
        below = [option for changed, option in overrides.items() if changed and changed[: len(keys)] == keys]
        return ", ".join(below) or everything
    line = _line(document, keys)
    return f"{path}, line {line}" if line else str(path)


def _line(document: Any, keys: Keys) -> int | None:
    """Return the line of the innermost key that is in the file, from 1."""
    place: Any = document
    line = None
    for key in keys:
        try:
            line = 1 + (place.lc.item(key) if isinstance(key, int) else place.lc.key(key))[0]
            place = place[key]
        except (KeyError, IndexError, AttributeError, TypeError):
            break
    return line


def _keys(location: Sequence[str | int], document: Any, keep_last: bool) -> Iterator[str | int]:
    """Return the parts of pydantic's location that lead through the document, and the last one if it is to be kept."""
    place = document
    for index, part in enumerate(location):
        if isinstance(place, dict) and part in place:
            place = place[part]
        elif isinstance(place, list) and isinstance(part, int):
            place = place[part]
        elif not (keep_last and index == len(location) - 1):
            continue  # the name of an alternative, or the only item of what need not be a list
        yield part


def _models_at(root: type, location: Sequence[str | int]) -> list[type]:
    """Return the models whose keys may be in a place."""
    models: list[type] = [root]
    for part in location:
        here = [annotations for model in models if part in (annotations := _annotations(model))]
        if here:  # list positions and names of alternatives lead nowhere else
            models = [model for annotations in here for model in _models_in(annotations[part])]
    return models


def _annotations(model: type) -> dict[str | int, Any]:
    if issubclass(model, BaseModel):
        return {field.alias or name: field.annotation for name, field in model.model_fields.items()}
    return {field.name: field.type for field in fields(model)}  # type: ignore[arg-type]


def _models_in(annotation: Any) -> Iterator[type]:
    if isinstance(annotation, type) and (is_dataclass(annotation) or issubclass(annotation, BaseModel)):
        yield annotation
    for inner in get_args(annotation):
        yield from _models_in(inner)
