"""StorageIO, 2014, part two: mail, a bank and a brokerage on one disk, with and without a read cache in the host."""

from collections.abc import Sequence

from benchmarks.published.chart import lines
from benchmarks.published.claims import Claim

from stallmark.analysis.loads.summary import LoadsSummary, summarise_loads
from stallmark.record.reader import Record

SCENARIO, SETTINGS = "io-blender-emulated", ()
DISKS, CACHED = "disks", "with a cache"
LOADS = ("mail", "bank", "brokerage")


def claims(records: Sequence[Record]) -> list[Claim]:
    found = summarise_loads(records)
    beside = {(one.variant, one.load): one.rate.ratio for one in found.penalties}
    made = []
    for load in LOADS:
        lost = beside.get((DISKS, load))
        made.append(
            Claim(
                f"{load}: together with the others it does less than alone", "yes",
                "–" if lost is None else f"{lost - 1:+.0%}", None if lost is None else lost < 0.9, "",
            )
        )  # fmt: skip
    gains = {load: _gain(found, load) for load in LOADS}
    made += [
        Claim(
            f"{load}: a write-through read cache gives back much of it", "yes",
            "–" if gain is None else f"{gain:.2f} × of without", None if gain is None else gain > 1.1,
            "its writes wait for the disks as before" if gain is not None and gain <= 1.1 else "",
        )
        for load, gain in gains.items()
    ]  # fmt: skip
    return made


def chart(records: Sequence[Record]) -> str:
    found = summarise_loads(records)
    series = {
        name: [_rate(found, variant, load, alone=alone) for load in LOADS]
        for name, variant, alone in (
            ("alone", DISKS, True), ("together", DISKS, False), ("together, cached", CACHED, False),
        )
    }  # fmt: skip
    return lines("Transactions per second", "per s", LOADS, series)


def _rate(found: LoadsSummary, variant: str, load: str, *, alone: bool) -> float | None:
    return next(
        (
            point.rate for point in found.points
            if (point.first.variant, point.first.load, point.first.alone) == (variant, load, alone)
        ),
        None,
    )  # fmt: skip


def _gain(found: LoadsSummary, load: str) -> float | None:
    before, after = (_rate(found, variant, load, alone=False) for variant in (DISKS, CACHED))
    return after / before if before and after else None
