"""StorageIO, 2014, part two: mail, a bank and a brokerage on one disk, with and without a read cache in the host."""

from collections.abc import Mapping, Sequence

from benchmarks.published.chart import Claim, Figures, Run, lines

from stallmark.analysis.loads import summarise_loads
from stallmark.record.reader import Record

RUNS = {"blender": Run("io-blender-emulated", ("order=alternating", "repeats=1"))}
DISKS, CACHED = "disks", "with a cache"
LOADS = ("mail", "bank", "brokerage")
LESS, LONGER = 0.8, 1.25
"""Times as much, or as long, from which on a load does less and takes longer."""
_SPARED = "it reads little that is not in memory, so that it shares little with the others"
_IDLE = (
    "mail alone leaves the disks idle for two thirds of the time, which the others then use. What each feels is real: "
    "it is one of 110 users who wait for the same disks"
)
_BOTH_READ = "a bank's transaction reads the pages that it changes, and their write goes past the cache unnoticed"
_EIGHT = "these are eight disks: on one, as theirs, a cache of this size does not fill within the minutes of a run"


def claims(records: Mapping[str, Sequence[Record]]) -> list[Claim]:
    figures = _figures(records["blender"])
    made, kept_of, gains = [], {}, {}
    for load in LOADS:
        alone, together, cached = figures[DISKS, load, True], figures[DISKS, load, False], figures[CACHED, load, False]
        kept, longer, gain = together.rate / alone.rate, together.mean_ms / alone.mean_ms, cached.rate / together.rate
        kept_of[load], gains[load] = kept, gain
        made += [
            Claim(
                f"{load} does less beside the others than alone, and takes longer",
                "aggregation hurts, by how much is not at hand",
                f"{kept:.2f} × as much, {longer:.1f} × as long", kept < LESS and longer > LONGER, _SPARED,
            ),
            Claim(
                f"with a read cache {load} does more beside the others", "not at hand by load", f"{gain:.2f} ×", None,
                _EIGHT,
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
