"""The base class of every section of a scenario file."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Discriminator, Field, model_validator

MOST_VARIANTS = 100


class Section(BaseModel):
    """Base of all sections: has no keys but its own, and is not changed."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class Titled(Section):
    """A scenario file's own words."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]*$", max_length=60)]
    """The scenario's name: small letters, digits and hyphens. It ends the names of the folders of its runs."""
    title: str = ""
    """One line for lists and reports; by default the name."""
    answers: str = ""
    """The question that it answers."""
    needs: str = ""
    """Its needs of the machine."""

    @model_validator(mode="before")
    @classmethod
    def _without_takes(cls, data: Any) -> Any:
        """Pass over `takes`, which files once said by hand and which is computed now."""
        return {key: value for key, value in data.items() if key != "takes"} if isinstance(data, dict) else data


WORD, MAPPING = "word", "mapping"
WordOrMapping = Discriminator(lambda given: MAPPING if isinstance(given, (dict, BaseModel)) else WORD)
"""For a key that takes either a word (or another single value) or a mapping: only what was written is judged."""


def no_twins(names: list[str]) -> None:
    """Raise ValueError where two variants have one name."""
    if twice := [name for name in names if names.count(name) > 1]:
        raise ValueError(f"two variants have the same name, {twice[0]!r}: give each its own")
