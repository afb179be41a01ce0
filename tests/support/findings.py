"""Findings by their kind, for tests that assert on facts."""

from collections.abc import Iterable, Mapping
from typing import Any

from stallmark.analysis.finding import Finding, Kind


def of_kind(findings: Iterable[Finding], kind: Kind) -> list[Finding]:
    return [one for one in findings if one.kind == kind]


def facts_of(findings: Iterable[Finding], kind: Kind) -> list[Mapping[str, Any]]:
    """Return the facts of every finding of a kind."""
    return [one.facts for one in of_kind(findings, kind)]


def kinds_of(findings: Iterable[Finding]) -> list[Kind]:
    return [one.kind for one in findings]
