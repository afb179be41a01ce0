"""A claim of a publication beside what was measured here."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise, repeat
from typing import NamedTuple

from stallmark.analysis.step_summary import StepSummary

SAME = 2.0
"""A figure of theirs holds if ours is no less than its half and no more than its double. Scales, servers and
disks differ by more: the shape of a publication is held against ours, not its numbers."""


class Run(NamedTuple):
    """The arguments of a `stallmark run`."""

    scenario: str
    settings: tuple[str, ...] = ()


class Figures(NamedTuple):
    """Transactions per second, of all types, and their mean time."""

    rate: float
    mean_ms: float

    @classmethod
    def of_step(cls, step: StepSummary) -> "Figures":
        return cls(step.throughput.tps, step.latency.mean_ms or float("inf"))


@dataclass(frozen=True)
class Claim:
    """A claim. `holds`: None if it cannot be shown here. `why`: the reason if it does not hold or cannot be shown."""

    text: str
    theirs: str
    ours: str
    holds: bool | None
    why: str = ""

    @property
    def verdict(self) -> str:
        return {True: "yes", False: "**no**", None: "cannot be shown"}[self.holds]


def table(claims: Sequence[Claim], again: Sequence[Claim] = ()) -> Iterator[str]:
    """Yield the lines of a Markdown table; figures of the same claims in other runs, `again`, stand in brackets."""
    yield "| claim | theirs | ours | does it hold? | if not, why |"
    yield "|---|---|---|---|---|"
    for claim, other in zip(claims, chain(again, repeat(None)), strict=False):
        ours = claim.ours if other is None else f"{claim.ours} ({other.ours})"
        verdict = claim.verdict if other is None or other.holds == claim.holds else f"{claim.verdict} ({other.verdict})"
        why = "" if claim.holds and (other is None or other.holds) else claim.why
        yield f"| {claim.text} | {claim.theirs} | {ours} | {verdict} | {why} |"


def about(ours: float, theirs: float) -> bool:
    """Return whether a figure is theirs, as SAME says."""
    return theirs / SAME <= ours <= theirs * SAME


def rising(values: Iterable[float]) -> bool:
    return all(lower < higher for lower, higher in pairwise(values))
