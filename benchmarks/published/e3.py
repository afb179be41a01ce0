"""StorageIO, 2014, part two: mail, a bank and a brokerage on one disk, with and without a read cache in the host."""

from collections.abc import Mapping, Sequence

from benchmarks.published.chart import lines
from benchmarks.published.claims import Claim, Run

from stallmark.analysis.loads.summary import LoadsSummary, summarise_loads
from stallmark.record.reader import Record

RUNS = {"blender": Run("io-blender-emulated", ("order=alternating", "repeats=1"))}
DISKS, CACHED = "disks", "with a cache"
LOADS = ("mail", "bank", "brokerage")


def claims(records: Mapping[str, Sequence[Record]]) -> list[Claim]:
    summary = summarise_loads(records["blender"])
    kept = {(penalty.variant, penalty.load): penalty.rate.ratio for penalty in summary.penalties}
    slower = {(penalty.variant, penalty.load): penalty.latency.ratio for penalty in summary.penalties}
    gains = {load: _gain(summary, load) for load in LOADS}
    made = [
        Claim(f"{load} does less together with the others than alone", "yes", _change(kept.get((DISKS, load))),
              _below(kept.get((DISKS, load)), 0.8), "")
        for load in LOADS
    ]  # fmt: skip
    made += [
        Claim(
            f"{load} takes longer", "yes", _times(slower.get((DISKS, load))), _above(slower.get((DISKS, load)), 1.25), ""
        )
        for load in LOADS
    ]
    made += [
        Claim(f"a read cache before the disk gives {load} more, all together", "yes", _times(gains[load]),
              _above(gains[load], 1.1), "")
        for load in LOADS
    ]  # fmt: skip
    known = [gain for gain in gains.values() if gain]
    made.append(
        Claim("what reads gains more than what writes: the brokerage more than the bank", "yes",
              f"{_times(gains['brokerage'])} and {_times(gains['bank'])}",
              None if len(known) < len(LOADS) else (gains["brokerage"] or 0) > (gains["bank"] or 0), "")
    )  # fmt: skip
    return made


def chart(records: Mapping[str, Sequence[Record]]) -> str:
    summary = summarise_loads(records["blender"])
    series = {
        name: [_rate(summary, variant, load, alone=alone) for load in LOADS]
        for name, variant, alone in (
            ("alone", DISKS, True), ("alone, cached", CACHED, True),
            ("together", DISKS, False), ("together, cached", CACHED, False),
        )
    }  # fmt: skip
    return lines("Transactions per second", "per s", LOADS, series, joined=False)


def _rate(summary: LoadsSummary, variant: str, load: str, *, alone: bool) -> float | None:
    same = (point for point in summary.points if (point.first.variant, point.first.load) == (variant, load))
    return next((point.rate for point in same if point.first.alone == alone), None)


def _gain(summary: LoadsSummary, load: str) -> float | None:
    before, after = (_rate(summary, variant, load, alone=False) for variant in (DISKS, CACHED))
    return after / before if before and after else None


def _change(ratio: float | None) -> str:
    return "–" if ratio is None else f"{ratio - 1:+.0%}"


def _times(ratio: float | None) -> str:
    return "–" if ratio is None else f"{ratio:.2f} ×"


def _below(ratio: float | None, bound: float) -> bool | None:
    return None if ratio is None else ratio < bound


def _above(ratio: float | None, bound: float) -> bool | None:
    return None if ratio is None else ratio > bound
