"""The claims and the chart of an experiment that is published."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import chain, pairwise, repeat
from math import floor, log10
from typing import NamedTuple

from stallmark.analysis.step_summary import StepSummary
from stallmark.report.figures import COLOURS, FONT

# A claim of a publication beside what was measured here.

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


# Charts of the experiments, as SVG without a script: a few series over the same points, on a logarithmic axis.

WIDTH, PLOT, LEFT, RIGHT, LINE = 520, 220, 62, 12, 20
"""px. The text is large enough to be read on a telephone, where the picture is a third narrower."""
NAMES_IN_A_ROW = 2
DASHES = ("none", "10 6", "2 5")
"""Of lines in turn, so that those on top of each other are all seen."""


def lines(
    title: str, unit: str, points: Sequence[str], series: Mapping[str, Sequence[float | None]], *, joined: bool = True
) -> str:
    """Return a chart; None is not drawn. Marks of a series are `joined` by a line, unless points have no order."""
    known = [value for values in series.values() for value in values if value]
    low, high = _axis(min(known), max(known))
    rows = -(-len(series) // NAMES_IN_A_ROW)
    top = LINE * (rows + 3)
    bottom = top + PLOT

    def x(place: int) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * (place + 0.5) / len(points)

    def y(value: float) -> float:
        return bottom - PLOT * log10(value / low) / log10(high / low)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {bottom + 2 * LINE}" '
        f'font-family="{escape(FONT)}" font-size="14" fill="#1f2328">',
        f'<rect width="{WIDTH}" height="{bottom + 2 * LINE}" fill="#fff"/>',
        f'<text x="8" y="{LINE}" font-size="16" font-weight="600">{escape(title)}</text>',
        f'<text x="{LEFT - 8}" y="{top - LINE // 2}" text-anchor="end" fill="#57606a">{escape(unit)}</text>',
    ]
    for tick in _ticks(low, high):
        parts.append(f'<path d="M{LEFT} {y(tick):.1f}H{WIDTH - RIGHT}" stroke="#d0d7de"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y(tick) + 5:.1f}" text-anchor="end">{tick:,g}</text>')
    for place, point in enumerate(points):
        parts.append(f'<text x="{x(place):.1f}" y="{bottom + LINE + 4}" text-anchor="middle">{escape(point)}</text>')
    for number, (name, values) in enumerate(series.items()):
        colour = COLOURS[number]
        row, column = divmod(number, NAMES_IN_A_ROW)
        left, height = 8 + column * WIDTH // NAMES_IN_A_ROW, LINE * (row + 2) + 4
        parts.append(f'<circle cx="{left + 6}" cy="{height - 5}" r="5" fill="{colour}"/>')
        parts.append(f'<text x="{left + 18}" y="{height}">{escape(name)}</text>')
        marks = [(x(place), y(value)) for place, value in enumerate(values) if value]
        if joined:
            path = "L".join(f"{across:.1f} {down:.1f}" for across, down in marks)
            parts.append(
                f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="2.5" '
                f'stroke-dasharray="{DASHES[number % len(DASHES)]}"/>'
            )
        parts += [f'<circle cx="{across:.1f}" cy="{down:.1f}" r="4" fill="{colour}"/>' for across, down in marks]
    return "\n".join([*parts, "</svg>\n"])


def _axis(least: float, most: float) -> tuple[float, float]:
    """Return the ends of an axis with some room below and above, at least a factor of three apart."""
    low, high = least / 1.15, most * 1.15
    return (low, high) if high / low > 3 else (low / 1.5, high * 1.5)


def _ticks(low: float, high: float) -> list[float]:
    """Return 1, 10, 100, … between these, with more of each if there are few."""
    steps = (1, 2, 3, 4, 5) if high / low < 8 else (1, 2, 5) if high / low < 200 else (1,)
    decades = range(floor(log10(low)), floor(log10(high)) + 1)
    return [step * 10.0**decade for decade in decades for step in steps if low <= step * 10.0**decade <= high]
