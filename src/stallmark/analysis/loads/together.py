"""Loads together against each of them alone: what the others cost it, in the runs of one variant.

Both are steps of the same run, so they are pairs, and the run is the replicate as in every comparison.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from stallmark.analysis.compare.metrics import ratio_of
from stallmark.analysis.compare.summary import Ratio
from stallmark.analysis.loads.points import LoadPoint
from stallmark.analysis.loads.step import LoadStep


@dataclass(frozen=True)
class Penalty:
    """A load beside the others against itself alone: together ÷ alone. `left_out`: runs with a doubt about either;
    where there are no others, the figures are of these, and `doubtful`."""

    variant: str
    load: str
    step: str  # of all loads
    primary: str | None
    open_loop: bool
    emulated: bool
    runs: int
    left_out: int
    doubtful: bool
    rate: Ratio
    latency: Ratio


def penalties(found: Sequence[LoadPoint]) -> list[Penalty]:
    """Return the penalty of every load that also ran alone, in as many users or streams, by variant and step."""
    alone = {(one.first.variant, one.first.load, one.first.count): one for one in found if one.first.alone}
    return [
        _penalty(before, point)
        for point in found
        if not point.first.alone and (before := alone.get((point.first.variant, point.first.load, point.first.count)))
    ]


def _penalty(alone: LoadPoint, together: LoadPoint) -> Penalty:
    by_run = {one.run: one for one in alone.runs}
    pairs = [(by_run[one.run], one) for one in together.runs if one.run in by_run]
    sound = [(a, b) for a, b in pairs if not a.doubts and not b.doubts]
    unit = {"users": "per s", "streams": "per h", "raw": "IOPS"}[together.first.kind]

    def ratio(title: str, unit: str, better: str, of: Callable[[LoadStep], float | None]) -> Ratio:
        a, b = ([of(pair[side]) for pair in sound or pairs] for side in (0, 1))
        return ratio_of(title, unit, "higher" if better == "higher" else "lower", a, b, paired=True)

    first = together.first
    return Penalty(
        variant=first.variant,
        load=first.load,
        step=first.step,
        primary=first.primary,
        open_loop=first.open_loop,
        emulated=any(one.emulated for one in together.runs),
        runs=len(sound or pairs),
        left_out=len(pairs) - len(sound),
        doubtful=not sound,
        rate=ratio("throughput", unit, "higher", lambda one: one.rate),
        latency=ratio("mean latency", "ms", "lower", lambda one: one.mean_ms),
    )
