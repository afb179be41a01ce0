"""The `before:` of a variant: what is done to the array before it is measured."""

from typing import Annotated, Self

from pydantic import Field, field_validator, model_validator

from stallmark.quantities import Seconds
from stallmark.redact import has_secret
from stallmark.scenarios.part import Part


class Hook(Part):
    """A `command`, a program and its arguments, which has `timeout` to end (DEFAULT_TIMEOUT_S); or what to `ask` the
    operator, who does it and says so."""

    command: Annotated[list[str], Field(min_length=1)] | None = None
    timeout: Annotated[Seconds, Field(ge=1)] | None = None
    ask: Annotated[str, Field(min_length=1)] | None = None

    @field_validator("command")
    @classmethod
    def _no_secrets(cls, given: list[str] | None) -> list[str] | None:
        if any(map(has_secret, given or ())):
            raise ValueError("a password in it would be in every record: let the command read it from a file")
        return given

    @model_validator(mode="after")
    def _one_of_two(self) -> Self:
        if (self.command is None) == (self.ask is None):
            raise ValueError("write either a command ({command: [program, argument]}) or what to ask ({ask: …})")
        if self.ask and self.timeout:
            raise ValueError("timeout is of a command: an operator takes as long as he needs")
        return self
