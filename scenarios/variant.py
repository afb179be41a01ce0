"""The `variants:` of a scenario, and the `before:` hook that reconfigures the array for one."""

from typing import Annotated, Literal, Self

from pydantic import Field, Tag, field_validator, model_validator

from stallmark.quantities import Pool, Seconds
from stallmark.redact import holds_secret
from stallmark.scenarios.array import Array
from stallmark.scenarios.emulated_array import EmulatedArrays
from stallmark.scenarios.section import MAPPING, WORD, Section, WordOrMapping
from stallmark.transactions.warehouse.streams import MOST_STREAMS

VariantName = Annotated[str, Field(min_length=1, max_length=60)]


class Hook(Section):
    """A `command`, a program and its arguments, which has `timeout` to end (DEFAULT_TIMEOUT_S); or what to `ask` the
    operator, who does it and says so."""

    command: Annotated[list[str], Field(min_length=1)] | None = None
    timeout: Annotated[Seconds, Field(ge=1)] | None = None
    ask: Annotated[str, Field(min_length=1)] | None = None

    @field_validator("command")
    @classmethod
    def _no_secrets(cls, given: list[str] | None) -> list[str] | None:
        if any(map(holds_secret, given or ())):
            raise ValueError("a password in it would be in every record: let the command read it from a file")
        return given

    @model_validator(mode="after")
    def _one_of_two(self) -> Self:
        if (self.command is None) == (self.ask is None):
            raise ValueError("write either a command ({command: [program, argument]}) or what to ask ({ask: …})")
        if self.ask and self.timeout:
            raise ValueError("timeout is of a command: an operator takes as long as he needs")
        return self


EmulatedArraysOrBare = Annotated[
    Annotated[Literal["bare"], Tag(WORD)] | Annotated[EmulatedArrays, Tag(MAPPING)], WordOrMapping
]


class Variant(Section):
    """One side of a comparison. What it does not say is as the scenario says."""

    name: VariantName
    buffer_pool: Pool | None = None
    emulated_array: EmulatedArraysOrBare | None = None
    array: Array | None = None
    # What makes the array that of this variant, whenever another one ran before.
    before: Hook | None = None
    # Of queries at the same time as the users; 0: the users alone.
    streams: Annotated[int, Field(ge=0, le=MOST_STREAMS, strict=True)] | None = None
