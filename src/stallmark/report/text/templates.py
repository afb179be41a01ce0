"""Sentences as templates: names of facts in braces, and behind a colon how each is written.

    "In {steps:named} {share:percent} of the CPUs were busy, of {SCHEDULING_CPU:percent} allowed."

A name in capitals is a threshold of `stats/thresholds.py`; `{facts:rate}` hands all facts to a format. A format is a
function of `stallmark/format.py`, one of `FORMATS` here or in the module of the sentence, or Python’s own, as `,.0f`.
"""

from collections.abc import Callable, Mapping
from inspect import isfunction
from string import Formatter
from typing import Any

from stallmark import format
from stallmark.errors import as_reason
from stallmark.report.text import clause, sentence
from stallmark.report.text.terms import first_three, in_brackets, indicative, scope, term
from stallmark.stats import thresholds

Format = Callable[[Any], str]
FORMATS: Mapping[str, Format] = {
    **{name: function for name, function in vars(format).items() if isfunction(function)},
    "as_reason": as_reason,
    "clause": clause,
    "first_three": first_three,
    "in_brackets": in_brackets,
    "indicative": indicative,
    "named": scope,
    "sentence": sentence,
    "term": term,
}


class Template(Formatter):
    """The sentence of a kind with its facts left open: called with them, it returns the sentence."""

    def __init__(self, text: str, formats: Mapping[str, Format]) -> None:
        self.text = text
        self.formats = {**FORMATS, **formats}

    def __call__(self, **facts: Any) -> str:
        known = {**vars(thresholds), **facts, "facts": facts}
        return type(self.text)(self.vformat(self.text, (), known))

    def format_field(self, value: Any, format_spec: str) -> str:
        write = self.formats.get(format_spec)
        return write(value) if write else super().format_field(value, format_spec)
