"""The wording: every sentence that a reader sees, the same in HTML, terminal and Markdown.

Each module of this package has `SENTENCES`, a template for each kind of finding; `templates.py` reads them. The names
in braces are the finding’s facts, followed by a colon and a format:

    ValidityKind.FOREIGN_CPU: "Other programs kept {share:percent} of the CPUs busy."

`MARKS` has the word of a kind that marks steps in tables. If a sentence needs a branch, its kind has a function
instead, whose parameters are the facts:

    @says(RunKind.UNFINISHED)
    def _(transactions: int) -> str:
        return "One transaction did not end." if transactions == 1 else f"{transactions:,} transactions did not end."
"""

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType
from typing import TypeVar

from stallmark import capabilities
from stallmark.analysis.finding import Finding, Kind, Severity
from stallmark.analysis.gates import GateKind
from stallmark.errors import as_reason

Writer = Callable[..., str]
Function = TypeVar("Function", bound=Writer)
_WRITERS: dict[Kind, Writer] = {}


class NameFirst(str):
    """A sentence that begins with a name, as Trade-Results or CPU, which keeps its capital letter within another."""


def says(kind: Kind) -> Callable[[Function], Function]:
    """Register the decorated function as the wording of `kind`; raise ValueError if there is one already."""

    def register(function: Function) -> Function:
        if kind in _WRITERS:
            raise ValueError(f"{kind!r} has its wording already")
        _WRITERS[kind] = function
        return function

    return register


def sentence(finding: Finding) -> str:
    """Return the sentence of a finding."""
    return writers()[finding.kind](**finding.facts)


def clause(finding: Finding) -> str:
    """Return the sentence of a finding as the end of another one: in lower case, without its full stop."""
    whole = sentence(finding)
    text = as_reason(whole)
    return text if isinstance(whole, NameFirst) else text[0].lower() + text[1:]


@cache
def writers() -> Mapping[Kind, Writer]:
    """Return the template or function that words each kind, of all modules of this package, and of
    capabilities."""
    from stallmark.report.text.templates import Template  # it imports this module

    for module in _modules():
        for kind, text in getattr(module, "SENTENCES", {}).items():
            says(kind)(Template(text, getattr(module, "FORMATS", {})))
    return _WRITERS


def mark_word(finding: Finding) -> str:
    """Return the word for a mark of a step: a gate's name unless it forbids a comparison; "invalid" without one."""
    if isinstance(finding.kind, GateKind) and finding.severity is not Severity.INVALID:
        return finding.kind.replace("_", " ")
    return _marks().get(finding.kind, "invalid")


@cache
def _marks() -> Mapping[Kind, str]:
    return {kind: word for module in _modules() for kind, word in getattr(module, "MARKS", {}).items()}


def _modules() -> list[ModuleType]:
    modules = [import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__)]
    return [*modules, *capabilities.wordings()]
