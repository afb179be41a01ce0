"""The wording: every sentence that a reader sees, the same in HTML, terminal and Markdown.

Each module of this package has `SENTENCES`, a template for each kind of finding. The names in braces are the finding’s
facts, followed by a colon and a format:

    ValidityKind.FOREIGN_CPU: "Other programs kept {share:percent} of the CPUs busy."

A name in capitals is a threshold of `stats/thresholds.py`; `{facts:rate}` hands all facts to a format. A format is a
function of `stallmark/format.py`, one of `FORMATS` here or in the module of the sentence, or Python’s own, as `,.0f`.

A `Template` outside of `SENTENCES` words other facts than those of a finding; its caller names them.

`MARKS` has the word of a kind that marks steps in tables. If a sentence needs a branch, a format has it, or its kind
has a function instead, whose parameters are the facts:

    @says(RunKind.UNFINISHED)
    def _(transactions: int) -> str:
        return "One transaction did not end." if transactions == 1 else f"{transactions:,} transactions did not end."
"""

from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import cache
from importlib import import_module
from inspect import isfunction
from pkgutil import iter_modules
from string import Formatter
from types import ModuleType
from typing import Any, TypeVar

from stallmark import capabilities, format
from stallmark.analysis.compare.summary import Verdict
from stallmark.analysis.finding import Finding, Kind, Severity
from stallmark.analysis.probe_comparison import DriftVerdict
from stallmark.analysis.read.times import CyclesBy
from stallmark.analysis.service_level import ReadSource
from stallmark.analysis.validity_gates import GateKind
from stallmark.errors import as_reason
from stallmark.format import exact, factor, listed, number, per_second, percent, plural, quoted, size
from stallmark.record.manifest.workload import TradeHistory
from stallmark.stats import thresholds
from stallmark.stats.thresholds import REPLICATES

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


# The words for the analysis’ own names, as tables and sentences show them.

_WORDS: dict[StrEnum, str] = {
    CyclesBy.COUNT: "the server’s count of checkpoints",
    CyclesBy.BURSTS: "bursts of pages that checkpoints wrote",
    ReadSource.HISTOGRAM: "the server’s histogram of single reads",
    ReadSource.FILE_COUNTERS: "the server’s counters of its data files",
    DriftVerdict.UNKNOWN: "inconclusive",
}

UNSURE = {Verdict.NO_DIFFERENCE: "no difference shown", Verdict.INDICATIVE: "indicative only"}
"""The words next to a ratio whose verdict does not show a difference."""

PART_NAMES = {
    "read": "reads of data files",
    "log": "writing the log",
    "other_io": "writes and other I/O of files",
    "unknown": "I/O or waiting for a CPU",
    "lock": "locks",
    "cpu": "CPU",
    "client": "driver and network",
    "queue": "waiting for a free user",
    "rest": "everything else",
}
"""The words for the parts of the response time, PARTS of analysis/step_summary.py."""


def term(member: str) -> str:
    """Return the words for a member of an enum: its value with spaces, or words of its own."""
    own = _WORDS.get(member) if isinstance(member, StrEnum) else None
    return own or member.replace("_", " ")


def times(ratio: float, verdict: Verdict | None) -> str:
    """Return a ratio with the doubt in its verdict: "1.5×", "1.5×, indicative only"."""
    return f"{factor(ratio)}, {UNSURE[verdict]}" if verdict in UNSURE else factor(ratio)


def indicative(fewest_runs: int) -> str:
    """Return the doubt in figures of too few runs, as the end of a sentence; empty if there are enough of each."""
    return "" if fewest_runs >= REPLICATES else "; too few runs, so indicative only"


def scope(steps: list[str] | None) -> str:
    """Return the names of steps, quoted; None is every step."""
    return quoted(steps) if steps else "every step"


def in_brackets(detail: str | None) -> str:
    """Return a detail in brackets, to follow its subject: " (ext4)"; empty if unknown."""
    return f" ({detail})" if detail else ""


def first_three(names: list[str]) -> str:
    """List the first three of many names, and how many more there are."""
    return f"{listed(names[:3])}{f' and {len(names) - 3:,} more' if len(names) > 3 else ''}"


def rate(per_s: float, primary: str | None) -> str:
    """Return a rate with its unit: "45.0/s" of all transactions, "4.50 Trade-Results/s" of one type."""
    return f"{number(per_s)} {plural(primary)}/s" if primary else per_second(per_s)


def commit_rate(per_s: float, primary: str | None) -> str:
    """Return a rate of commits with its unit: "45.0 transactions/s", "4.50 Trade-Results/s" of one type."""
    return f"{number(per_s)} {plural(primary) if primary else 'transactions'}/s"


def pool(pool_bytes: int | None, pool_share: float | None) -> str:
    """Return "64 MiB (20 % of the data)"."""
    if pool_bytes is None:
        return "a buffer pool of unknown size"
    if pool_share is None:
        return size(pool_bytes)
    return f"{size(pool_bytes)} ({'all' if pool_share >= 1 else percent(pool_share)} of the data)"


# The words for the scale of a database.


def depth(days: float, trades_per_account: float) -> str:
    """Return the depth of a brokerage's history: "40 initial trade days (461 trades per account)"."""
    return f"{exact(days)} initial trade day{'s' * (days != 1)} ({number(trades_per_account)} trades per account)"


def history_line(history: TradeHistory) -> str:
    """Return the depth with the customers that it is of."""
    return f"{history.customers:,} customers, {depth(history.days, history.trades_per_account)}"


# Sentences as templates: names of facts in braces, and behind a colon how each is written.

Format = Callable[[Any], str]
FORMATS: Mapping[str, Format] = {
    **{name: function for name, function in vars(format).items() if isfunction(function)},
    "as_reason": as_reason,
    "clause": clause,
    "first_three": first_three,
    "in_brackets": in_brackets,
    "indicative": indicative,
    "named": scope,
    "pool": lambda facts: pool(facts["pool_bytes"], facts["pool_share"]),
    "sentence": sentence,
    "term": term,
}


class Template(Formatter):
    """A sentence with its facts left open: called with them, it returns the sentence."""

    def __init__(self, text: str, formats: Mapping[str, Format] = FORMATS) -> None:
        self.text = text
        self.formats = {**FORMATS, **formats}

    def __call__(self, **facts: Any) -> str:
        known = {**vars(thresholds), **facts, "facts": facts}
        return type(self.text)(self.vformat(self.text, (), known))

    def format_field(self, value: Any, format_spec: str) -> str:
        write = self.formats.get(format_spec)
        return write(value) if write else super().format_field(value, format_spec)
