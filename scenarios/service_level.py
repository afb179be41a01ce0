"""The service level of a scenario: how long a read may take (analysis/validity/service_level.py judges it)."""

from typing import Annotated, Literal

from pydantic import Field, Tag

from stallmark.analysis.validity.service_level import PERCENTILES, declared
from stallmark.quantities import Seconds
from stallmark.record.manifest.storage import ServiceLevelObjective
from stallmark.scenarios.section import MAPPING, WORD, Section, WordOrMapping


class ReadLimit(Section):
    """A limit of one's own."""

    read: Annotated[Seconds, Field(gt=0)]
    """The longest that a read may take."""
    percentile: Literal[PERCENTILES] = "p95"  # type: ignore[valid-type]
    """The share of reads that must keep it; the mean where only that is known."""


ReadyMade = Literal["oltp", "dss", "mail"]
ServiceLevelChoice = Annotated[Annotated[ReadyMade, Tag(WORD)] | Annotated[ReadLimit, Tag(MAPPING)], WordOrMapping]


def described(choice: ServiceLevelChoice) -> ServiceLevelObjective:
    """Return the service level for the manifest."""
    if isinstance(choice, ReadLimit):
        return declared(None, choice.read * 1000, choice.percentile)
    return declared(choice, None, PERCENTILES[0])
