"""The service level of a scenario: how long a read may take (analysis/validity/service_level.py judges it)."""

from typing import Annotated, Literal

from pydantic import Field

from stallmark.analysis.validity.service_level import PERCENTILES, declared
from stallmark.quantities import Seconds
from stallmark.record.manifest import ServiceLevelObjective
from stallmark.scenarios.part import Part


class ReadLimit(Part):
    """A limit of one's own."""

    read: Annotated[Seconds, Field(gt=0)]
    percentile: Literal[PERCENTILES] = "p95"  # type: ignore[valid-type]


ReadyMade = Literal["oltp", "dss", "mail"]
ServiceLevelChoice = ReadyMade | ReadLimit


def described(choice: ServiceLevelChoice) -> ServiceLevelObjective:
    """Return it as the manifest has it."""
    if isinstance(choice, ReadLimit):
        return declared(None, choice.read * 1000, choice.percentile)
    return declared(choice, None, PERCENTILES[0])
