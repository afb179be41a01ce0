"""The kinds of records, each with the functions that make its report.

A kind stands beside its document. A new one is files of its own and a line in KINDS, or a part of its capability.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from stallmark import capabilities
from stallmark.analysis.experiment import ExperimentSummary
from stallmark.report.document import Document


@dataclass(frozen=True)
class RecordKind:
    """The functions that make a report of records of one kind, and what such a report may have."""

    summarise: Callable[..., Any]
    """A function of runs and a `map`; for a profile or a sizing, of its folder."""
    document: Callable[[Any], Document]
    in_json: Callable[[Any], dict[str, Any]]
    experiments: Callable[[Any], Mapping[str, ExperimentSummary]] = lambda _: {}
    """The experiments in a summary whose demands are judged, by load; a single load has no name."""
    has_curves: bool = False
    """True if they may have memory curves, for `--fail-if`."""
    has_slide: bool = False
    alone: str = "name it alone"
    """The remedy if a profile or a sizing is named together with others."""


KINDS = {
    "transactions": "stallmark.report.experiment:TRANSACTIONS",
    "queries": "stallmark.report.experiment:QUERIES",
    "loads": "stallmark.report.loads:LOADS",
    "profile": "stallmark.report.profile:PROFILE",
}


def find_kind(name: str) -> RecordKind | None:
    """Return a kind by its name, or None if it is of a capability that is not there."""
    kind: RecordKind | None = capabilities.load(KINDS[name]) if name in KINDS else capabilities.part(name, "report")
    return kind
