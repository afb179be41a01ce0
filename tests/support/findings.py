"""Findings by their kind, for tests that assert on facts."""

from collections.abc import Iterable, Mapping
from typing import Any

from stallmark.analysis.finding import Finding, Kind


def facts_of(findings: Iterable[Finding], kind: Kind) -> list[Mapping[str, Any]]:
    """Return the facts of every finding of a kind."""
    return [one.facts for one in findings if one.kind == kind]


def kinds_of(findings: Iterable[Finding]) -> list[Kind]:
    return [one.kind for one in findings]
