"""A finding: what an analysis concludes, as data. `report/text` writes the sentences; no code reads them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Severity(StrEnum):
    """The weight that a reader must give to a finding."""

    INFO = "info"
    CAUTION = "caution"
    """It limits what the figures say."""
    INVALID = "invalid"
    """The figures it is about must not be compared."""


class Kind(StrEnum):
    """The base of the kinds of findings. Each room of the analysis has an enum of its own, next to the code that finds
    them. The values are unique over all of them."""


@dataclass(frozen=True)
class Finding:
    """One finding. The names of `facts` carry their units (`measured_s`, `read_ms`, `share`); values are numbers, names
    that the user gave, device labels, enum members, other findings (a reason), or lists of these: never a sentence of
    ours. `said` holds the words of a server, a tool or an error, as they came."""

    kind: Kind
    severity: Severity = Severity.INFO
    facts: Mapping[str, Any] = field(default_factory=dict, hash=False)


def info(kind: Kind, **facts: Any) -> Finding:
    """Return a finding that limits nothing."""
    return Finding(kind, Severity.INFO, facts)


def caution(kind: Kind, **facts: Any) -> Finding:
    """Return a finding that limits what the figures say."""
    return Finding(kind, Severity.CAUTION, facts)


def invalid(kind: Kind, **facts: Any) -> Finding:
    """Return a finding whose figures must not be compared."""
    return Finding(kind, Severity.INVALID, facts)
