"""StorageIO, 2014, part two: mail, a bank and a brokerage on one disk, with and without a read cache in the host."""

from collections.abc import Mapping, Sequence

from benchmarks.published.chart import lines
from benchmarks.published.claims import Claim, Figures, Run

from stallmark.analysis.loads.summary import summarise_loads
from stallmark.record.reader import Record

RUNS = {"blender": Run("io-blender-emulated", ("order=alternating", "repeats=1"))}
DISKS, CACHED = "disks", "with a cache"
LOADS = ("mail", "bank", "brokerage")
LESS, LONGER, MORE = 0.8, 1.25, 1.1
"""Times as much, or as long, from which on a load does less, takes longer, or does more."""
_SPARED = "it reads little that is not in memory, so that it shares little with the others"
_IDLE = (
    "mail alone leaves the disks idle for two thirds of the time, which the others then use. What each feels is real: "
    "it is one of 110 users who wait for the same disks"
)
_BOTH_READ = "a bank's transaction reads the pages that it changes, and their write goes past the cache unnoticed"
_UNCACHED = "it reads too evenly over its data for a cache of half of all, or mostly writes, which go past the cache"


def claims(records: Mapping[str, Sequence[Record]]) -> list[Claim]:
    figures = _figures(records["blender"])
    made, kept_of, gains = [], {}, {}
    for load in LOADS:
        alone, together, cached = figures[DISKS, load, True], figures[DISKS, load, False], figures[CACHED, load, False]
        kept, longer, gain = together.rate / alone.rate, together.mean_ms / alone.mean_ms, cached.rate / together.rate
        kept_of[load], gains[load] = kept, gain
        made += [
            Claim(f"{load} does less beside the others than alone", "yes", f"{kept:.2f} ×", kept < LESS, _SPARED),
            Claim(f"its transactions take longer ({load})", "yes", f"{longer:.2f} ×", longer > LONGER, _SPARED),
            Claim(
                f"with a read cache it does more beside the others ({load})", "yes, by load not at hand",
                f"{gain:.2f} ×", gain > MORE, _UNCACHED,
            ),
        ]  # fmt: skip
    return [
        *made,
        Claim(
            "all at once do less than in turns: their shares of alone sum to less than 1",
            "aggregation hurts",
            " + ".join(f"{share:.2f}" for share in kept_of.values()) + f" = {sum(kept_of.values()):.2f}",
            sum(kept_of.values()) < 1,
            _IDLE,
        ),
        Claim(
            "the brokerage, which reads, gains more from the cache than the bank, which writes",
            "not at hand",
            f"{gains['brokerage']:.2f} × and {gains['bank']:.2f} ×",
            None,
            _BOTH_READ,
        ),
    ]


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
