"""ESG Lab for IBM, 2010: cells of mail, a database, decision support, a web server and a scan, one to four at once."""

from collections.abc import Mapping, Sequence

from benchmarks.published.chart import Claim, Run, about, lines

from stallmark.analysis.load_points import CellsStep, LoadPoint
from stallmark.analysis.loads import summarise_loads
from stallmark.record.reader import Record

RUNS = {"cells": Run("cells-emulated")}
LINEAR = 0.7
"""Share of the linear rate in four cells that is nearly linear, as that of their mailboxes: 19,992 for 7,050."""
DISKS, PEAK = 56, 3_280 / 112
"""Disks here, and megabytes a second that each of theirs gave before the cells ran."""
AT_A_RATE = ("dss", "scan")
"""Loads whose rate the scenario sets, so that the array may carry what is asked for, or not."""
LOADS = {"mail": "I/Os of mail", "oltp": "OLTP IOPS", "dss": "DSS MB/s", "web": "web IOPS", "scan": "scan MB/s"}
THEIRS = {
    "mail": "mailboxes: 7,050 to 19,992, 2.8 ×",
    "oltp": "to 3,362",
    "dss": "to 850",
    "web": "to 3,319",
    "scan": "to 407",
}
LIMITS_MS = {"mail": 20, "oltp": 20, "dss": 30}
"""The longest mean time of a read."""
_QUEUES = (
    "four cells keep four times as many I/Os under way, and each takes longer, since they meet others on disks that "
    "are half busy. How many theirs kept under way for mail, web and scan was not published"
)
_CORES = "loads, database and the emulated array share two cores"
_SET = "the scenario sets their rate: shown is that the array carried it"


def claims(records: Mapping[str, Sequence[Record]]) -> list[Claim]:
    cells = summarise_loads(records["cells"]).cells
    most = cells[-1]
    read_ms = {load: _read_ms(_point(most, load)) for load in LIMITS_MS}
    iops, busy, cpu = (
        most.whole.mean(figure)
        for figure in (lambda step: step.iops_per_drive, lambda step: step.busy_share, lambda step: step.cpu_busy_share)
    )
    peak = _peak_mb_per_s(records["cells"]) / DISKS
    return [
        *(_scaling(cells, load, title) for load, title in LOADS.items()),
        Claim(
            "in four cells the means of reads keep the limits of 20, 20 and 30 ms", "7 to 10 ms",
            ", ".join(f"{load} {value:.1f} ms" for load, value in read_ms.items()),
            all(value <= LIMITS_MS[load] for load, value in read_ms.items()), _QUEUES,
        ),
        Claim(
            "I/Os per second of a disk", "210",
            f"{iops:.0f}, {iops / busy:.0f} of a busy one" if iops and busy else "–",
            about(iops, 210) if iops else None,
            "disks are idle for half of the time: our four cells ask for no more, and were not made larger for it",
        ),
        Claim(
            "the server's CPUs are less than a tenth busy", "yes", _percent(cpu), cpu is not None and cpu < 0.1, _CORES
        ),
        Claim(
            "reads of 1 MiB in order, 32 at once: MB/s of a disk", f"{PEAK:.0f}", f"{peak:.0f}", about(peak, PEAK),
            "disks that nothing else asks",
        ),
    ]  # fmt: skip


def chart(records: Mapping[str, Sequence[Record]]) -> str:
    cells = summarise_loads(records["cells"]).cells
    series = {"linear": [step.cells / cells[0].cells for step in cells]}
    series |= {title: [_relative(cells, step, load) for step in cells] for load, title in LOADS.items()}
    return lines("Rate against one cell, by the number of cells", "×", [str(step.cells) for step in cells], series)


def _scaling(cells: Sequence[CellsStep], load: str, title: str) -> Claim:
    relative = _relative(cells, cells[-1], load)
    text, ours = f"{title} grow to {LINEAR:.1f} of linear or more", f"{relative:.1f} × with {cells[-1].cells}"
    if load in AT_A_RATE:
        return Claim(text, THEIRS[load], f"{ours}, as was asked for", None, _SET)
    return Claim(text, THEIRS[load], ours, relative >= LINEAR * cells[-1].cells, _QUEUES)


def _relative(cells: Sequence[CellsStep], step: CellsStep, load: str) -> float:
    """Return a load's work per second against that in the first cell."""
    work, first = _point(step, load).rate, _point(cells[0], load).rate
    assert work and first
    return work / first


def _peak_mb_per_s(records: Sequence[Record]) -> float:
    """Return the most of the probes before and after the runs."""
    probes = [probe for record in records for probe in (record.manifest.probes.before, record.manifest.probes.after)]
    return max(step.mb_per_s for probe in probes if probe for step in probe.steps)


def _read_ms(point: LoadPoint) -> float:
    """Return the mean time of a load's I/O: of users that of the server's reads."""
    level = point.level
    value = point.mean(lambda step: step.mean_ms) if point.first.kind == "raw" else level and level.figure_ms
    assert value
    return value


def _point(step: CellsStep, load: str) -> LoadPoint:
    return next(part.point for part in step.loads if part.load == load)


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{share * 100:.0f} %"
