"""A finding: what an analysis concludes, as data. `report/text` writes the sentences; no code reads them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Severity(StrEnum):
    """How much weight a reader must give to a finding."""

    INFO = "info"
    CAUTION = "caution"
    """It limits what the figures say."""
    INVALID = "invalid"
    """The figures it is about must not be compared."""


class Kind(StrEnum):
    """Base of the kinds of findings. Each room of the analysis has an enum of its own beside the code that finds them;
    the values are unique over all of them."""


@dataclass(frozen=True)
class Finding:
    """One finding. The names of `facts` carry their units (`measured_s`, `read_ms`, `share`); values are numbers, names
    that the user gave, enum members, or lists of these: never a sentence."""

    kind: Kind
    severity: Severity = Severity.INFO
    facts: Mapping[str, Any] = field(default_factory=dict)
