"""StorageIO, 2014, part two: mail, a bank and a brokerage on one disk, with and without a read cache in the host."""

from collections.abc import Mapping, Sequence

from benchmarks.published.chart import lines
from benchmarks.published.claims import Claim, Figures, Run

from stallmark.analysis.loads.summary import summarise_loads
from stallmark.record.reader import Record

RUNS = {"blender": Run("io-blender-emulated", ("order=alternating", "repeats=1"))}
DISKS, CACHED = "disks", "with a cache"
LOADS = ("mail", "bank", "brokerage")
LESS, LONGER, MORE = 0.9, 1.1, 1.1
"""Times as much, or as long, from which on a load does less, takes longer, or does more."""
_SPARED = "it reads little that is not in memory, so that it shares little with the others"
_UNCACHED = "it reads too evenly over its data for a cache of half of all, or mostly writes, which go past the cache"


def claims(records: Mapping[str, Sequence[Record]]) -> list[Claim]:
    figures = _figures(records["blender"])
    made = []
    for load in LOADS:
        alone, together, cached = figures[DISKS, load, True], figures[DISKS, load, False], figures[CACHED, load, False]
        kept, longer, gain = together.rate / alone.rate, together.mean_ms / alone.mean_ms, cached.rate / together.rate
        made += [
            Claim(f"{load} does less beside the others than alone", "yes", f"{kept:.2f} ×", kept < LESS, _SPARED),
            Claim(f"its transactions take longer ({load})", "yes", f"{longer:.2f} ×", longer > LONGER, _SPARED),
            Claim(
                f"with a read cache it does more beside the others ({load})", "yes", f"{gain:.2f} ×", gain > MORE,
                _UNCACHED,
            ),
        ]  # fmt: skip
    return made


def chart(records: Mapping[str, Sequence[Record]]) -> str:
    figures = _figures(records["blender"])
    series = {
        name: [figures[variant, load, alone].rate for load in LOADS]
        for name, variant, alone in (
            ("alone", DISKS, True), ("alone, cached", CACHED, True),
            ("together", DISKS, False), ("together, cached", CACHED, False),
        )
    }  # fmt: skip
    return lines("Transactions per second", "per s", LOADS, series, joined=False)


def _figures(records: Sequence[Record]) -> dict[tuple[str, str, bool], Figures]:
    """Return the figures by variant, load, and if it ran alone."""
    return {
        (step.variant, load, not step.beside): Figures.of_step(step)
        for load, summary in summarise_loads(records).loads.items()
        for step in summary.steps
    }
