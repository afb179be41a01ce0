"""The wording: every sentence that a reader sees, in HTML, terminal and Markdown alike.

Each module of this package registers one function for each kind of finding. Its parameters are the finding's facts:

    @says(ValidityKind.FOREIGN_IO)
    def _(share: float) -> str:
        return f"Other programs caused {percent(share)} of the I/O on this storage."
"""

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import TypeVar

from stallmark.analysis.finding import Finding, Kind
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
    said = sentence(finding)
    text = as_reason(said)
    return text if isinstance(said, NameFirst) else text[0].lower() + text[1:]


@cache
def writers() -> Mapping[Kind, Writer]:
    """Return the function that words each kind, of all modules of this package."""
    for module in iter_modules(__path__):
        import_module(f"{__name__}.{module.name}")
    return _WRITERS
