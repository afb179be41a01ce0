"""Scenario files, and the model of such files. Here: the base of all sections, and the types that several have."""

import ast
import inspect
from collections.abc import Callable, Iterator
from functools import wraps
from itertools import pairwise
from textwrap import dedent
from typing import Annotated, Any, ClassVar, ParamSpec, Self, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Discriminator, Field, GetJsonSchemaHandler, model_validator

from stallmark.errors import StallmarkError

P = ParamSpec("P")
T = TypeVar("T")

MOST_VARIANTS = 100
VariantName = Annotated[str, Field(min_length=1, max_length=60)]


class Section(BaseModel):
    """Base of all sections: has no keys but its own, and is not changed."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    @model_validator(mode="after")
    def _refuse_mistakes(self) -> Self:
        for mistake in self.mistakes():
            raise ValueError(mistake)
        return self

    def mistakes(self) -> Iterator[str]:
        """Yield the mistakes in keys that are right by themselves. Only the first is looked at."""
        yield from ()

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: Any, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Return the JSON schema, in which each key has the docstring behind it.

        pydantic's own `use_attribute_docstrings` parses all sources whenever the models are imported.
        """
        schema = handler(core_schema)
        keys = handler.resolve_ref_schema(schema)["properties"]
        for name, text in _docstrings(cls):
            if field := cls.model_fields.get(name):
                keys[field.alias or name].setdefault("description", text)
        return schema


def _docstrings(section: type[Section]) -> Iterator[tuple[str, str]]:
    """Yield the fields of a section and its bases, each with the docstring behind it."""
    for kind in section.__mro__[: section.__mro__.index(Section)]:
        [tree] = ast.parse(dedent(inspect.getsource(kind))).body
        for field, text in pairwise(tree.body):  # type: ignore[attr-defined]
            match field, text:
                case ast.AnnAssign(target=ast.Name(name)), ast.Expr(ast.Constant(str(docstring))):
                    yield name, docstring


class Titled(Section):
    """A scenario of any kind: a scenario file's own words."""

    heading: ClassVar[str]
    """The name of this kind of scenario in the reference."""
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
        """Ignore `takes`, which old files have and which is computed now."""
        return {key: value for key, value in data.items() if key != "takes"} if isinstance(data, dict) else data


WORD, MAPPING = "word", "mapping"
WordOrMapping = Discriminator(lambda given: MAPPING if isinstance(given, (dict, BaseModel)) else WORD)
"""The type of a key that is a word (or another single value) or a mapping: errors refer only to the written form."""


def refusing(check: Callable[P, T]) -> Callable[P, T]:
    """Return a function whose StallmarkError is the ValueError that pydantic takes for a mistake."""

    @wraps(check)
    def checked(*arguments: P.args, **keys: P.kwargs) -> T:
        try:
            return check(*arguments, **keys)
        except StallmarkError as error:
            raise ValueError(str(error)) from None

    return checked


def _each_once(given: list[T]) -> list[T]:
    if twice := [item for item in given if given.count(item) > 1]:
        raise ValueError(f"{twice[0]} is there twice: write it once")
    return given


def _rising(given: list[int]) -> list[int]:
    if given != sorted(set(given)):
        raise ValueError(f"the numbers must rise: write {sorted(set(given))}")
    return given


def _names_apart(given: list[T]) -> list[T]:
    names = [item.name for item in given]  # type: ignore[attr-defined]
    if twice := [name for name in names if names.count(name) > 1]:
        raise ValueError(f"two variants have the same name, {twice[0]!r}: give each its own")
    return given


EachOnce, Rising = AfterValidator(_each_once), AfterValidator(_rising)
NamedApart = AfterValidator(_names_apart)
"""The check that the names of variants differ."""
