"""The base class of every section of a scenario file."""

from pydantic import BaseModel, ConfigDict, Discriminator


class Section(BaseModel):
    """Base of all sections: has no keys but its own, and is not changed."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


WORD, MAPPING = "word", "mapping"
WordOrMapping = Discriminator(lambda given: MAPPING if isinstance(given, (dict, BaseModel)) else WORD)
"""For a key that takes either a word (or another single value) or a mapping: only what was written is judged."""


def no_twins(names: list[str]) -> None:
    """Raise ValueError where two variants have one name."""
    if twice := [name for name in names if names.count(name) > 1]:
        raise ValueError(f"two variants have the same name, {twice[0]!r}: give each its own")
