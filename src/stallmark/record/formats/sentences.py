"""Sentences on files: refusals and notes, as `sentences.yaml` has them."""

from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import Any

from stallmark.errors import StallmarkError

_NAMED = 8  # maximum names in a sentence


@cache
def load_yaml(name: str) -> dict[str, Any]:
    """Return the content of a YAML file of this room."""
    from ruamel.yaml import YAML

    return YAML(typ="safe", pure=True).load(resources.files(__package__) / f"{name}.yaml")


def refusal(kind: str, path: object = "", **facts: object) -> StallmarkError:
    """Return the error with the sentence of that kind on the file at `path`."""
    table = load_yaml("sentences")
    return StallmarkError(table["refusals"][kind].format(path=path, **table["commands"], **facts))


def note(kind: str, **facts: object) -> str:
    return load_yaml("sentences")["notes"][kind].format(**facts)


def first_names(names: Sequence[str]) -> str:
    """Return the first names, for a sentence."""
    return ", ".join(names[:_NAMED]) + (", …" if len(names) > _NAMED else "")


def in_quotes(text: str) -> str:
    """Return a text of a file for a place between single quotes of a shell's command, which it cannot end."""
    return text.replace("'", r"'\''")


def count_with_noun(count: int, noun: str) -> str:
    """Return a number with its noun: 1 time, 3 times."""
    return f"{count} {noun}{'s' * (count != 1)}"
