"""How a scenario says how long to warm up: for a time, or until the load is steady."""

from typing import Annotated, Any, Literal, Self

from pydantic import Discriminator, Field, Tag, model_validator

from stallmark.driver.timeline import WarmUpLimits
from stallmark.quantities import Seconds, write_duration
from stallmark.scenarios.part import Part


class UntilSteady(Part):
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

    def limits(self) -> WarmUpLimits:
        return WarmUpLimits(self.at_least, self.at_most)


def _kind(given: Any) -> str:
    return "until steady" if isinstance(given, (dict, UntilSteady)) else "duration"


WarmUp = Annotated[
    Annotated[Seconds, Field(ge=0), Tag("duration")] | Annotated[UntilSteady, Tag("until steady")], Discriminator(_kind)
]
