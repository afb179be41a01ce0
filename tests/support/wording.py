"""Findings of a summary, and the golden wording of every kind (tests/report/text)."""

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import yaml

from stallmark.analysis.finding import Finding, Kind
from stallmark.capabilities import installed
from stallmark.record.devices import DeviceLabel
from stallmark.report.text import sentence, writers

TESTS = Path(__file__).parents[1]
GOLDEN = TESTS / "report" / "text"


def kinds() -> dict[str, Kind]:
    """Return every kind by its value."""
    writers()  # imports them
    return {str(kind): kind for room in Kind.__subclasses__() for kind in room}


def golden() -> Iterator[tuple[str, Finding, str]]:
    """Yield the module of each golden wording, a finding and its sentence. Those of a capability are in its folder."""
    files = {f"stallmark.report.text.{file.stem}": file for file in sorted(GOLDEN.glob("*.yaml"))}
    modules = [module for each in installed() for module in each.wording]
    own = {module: TESTS.joinpath(*module.split(".")[1:]).with_suffix(".yaml") for module in modules}
    known = kinds()
    for module, file in (files | own).items():
        for one in yaml.load(file.read_text(), yaml.CSafeLoader):
            yield module, _finding(one, known), one["says"]


def _finding(one: Mapping[str, Any], known: Mapping[str, Kind]) -> Finding:
    facts = {name: _fact(fact, known) for name, fact in (one.get("facts") or {}).items()}
    return Finding(known[one["kind"]], facts=facts)


def _fact(fact: Any, known: Mapping[str, Kind]) -> Any:
    """Return a fact, with the findings and the labels of devices in it."""
    if isinstance(fact, list):
        return [_fact(one, known) for one in fact]
    if isinstance(fact, dict):
        if fact.keys() == {"name", "emulated"}:
            return DeviceLabel(**fact)
        return _finding(fact, known) if "kind" in fact else {name: _fact(one, known) for name, one in fact.items()}
    return fact


def findings_in(value: Any) -> Iterator[Finding]:
    """Yield all findings of a summary, with those that are reasons of others."""
    if isinstance(value, Finding):
        yield value
        value = value.facts
    if is_dataclass(value) and not isinstance(value, type):
        failure = getattr(value, "failure", None)  # of a gate
        parts = [failure, *(getattr(value, field.name) for field in fields(value))]
    elif isinstance(value, Mapping):
        parts = list(value.values())
    else:
        parts = list(value) if isinstance(value, list | tuple) else []
    for part in parts:
        yield from findings_in(part)


def kinds_in(value: Any) -> set[Kind]:
    """Return the kinds of all findings of a summary; each must have the facts that its sentence names."""
    found = list(findings_in(value))
    assert all(map(sentence, found))
    return {finding.kind for finding in found}
