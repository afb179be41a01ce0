"""How a scenario says how long to warm up: for a time, or until the load is steady."""

from typing import Annotated, Literal, Self

from pydantic import Field, Tag, model_validator

from stallmark.driver.plan import Patience
from stallmark.quantities import Seconds, write_duration
from stallmark.scenarios.section import MAPPING, WORD, Section, WordOrMapping


class UntilSteady(Section):
    """Every step of a run waits by itself, after its ramp."""

    until: Literal["steady"]
    at_least: Annotated[Seconds, Field(ge=0)] = 30.0
    at_most: Annotated[Seconds, Field(ge=1)]

    @model_validator(mode="after")
    def _a_while(self) -> Self:
        if self.at_most <= self.at_least:
            raise ValueError(
                f"at_most {write_duration(self.at_most)} leaves no time to wait after at_least "
                f"{write_duration(self.at_least)}: raise it"
            )
        return self

    def patience(self) -> Patience:
        return Patience(self.at_least, self.at_most)


WarmUp = Annotated[Annotated[Seconds, Field(ge=0), Tag(WORD)] | Annotated[UntilSteady, Tag(MAPPING)], WordOrMapping]
