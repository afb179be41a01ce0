"""ESG Lab for IBM, 2010: cells of mail, a database, decision support, a web server and a scan, one to four at once."""

from collections.abc import Mapping, Sequence

from benchmarks.published.chart import lines
from benchmarks.published.claims import Claim, Run, about

from stallmark.analysis.loads.cells import CellsStep
from stallmark.analysis.loads.points import LoadPoint
from stallmark.analysis.loads.summary import summarise_loads
from stallmark.record.reader import Record

RUNS = {"cells": Run("cells-emulated")}
LINEAR = 0.7
"""Share of the linear rate in four cells that is nearly linear, as that of their mailboxes: 19,992 for 7,050."""
AT_A_RATE = ("dss", "scan")
"""Loads whose rate the scenario sets, so that the array may carry what is asked for, or not."""
LOADS = {"mail": "mailboxes", "oltp": "OLTP IOPS", "dss": "DSS MB/s", "web": "web IOPS", "scan": "scan MB/s"}
THEIRS = {"mail": "7,050 to 19,992", "oltp": "to 3,362", "dss": "to 850", "web": "to 3,319", "scan": "to 407"}
LIMITS_MS = {"mail": 20, "oltp": 20, "dss": 30}
"""The longest mean time of a read."""
_QUEUES = (
    "I/Os at random disks wait for each other: of N under way on M disks N·M / (N + M - 1) are served at once. With 15 "
    "and 60 on 56 disks that is 2.4 times as many. Theirs had caches and read ahead, and not all of their outstanding "
    "I/Os were published"
)


def claims(records: Mapping[str, Sequence[Record]]) -> list[Claim]:
    cells = summarise_loads(records["cells"]).cells
    most = cells[-1]
    read_ms = {load: _read_ms(_point(most, load)) for load in LIMITS_MS}
    iops = most.whole.mean(lambda step: step.iops_per_drive)
    return [
        *(_scaling(cells, load, title) for load, title in LOADS.items()),
        Claim(
            "in four cells reads keep the limits of 20, 20 and 30 ms", "7 to 10 ms",
            ", ".join(f"{load} {value:.1f} ms" for load, value in read_ms.items()),
            all(value <= LIMITS_MS[load] for load, value in read_ms.items()), _QUEUES,
        ),
        Claim(
            "I/Os per second of a disk", "210", f"{iops:.0f}" if iops else "–", about(iops, 210) if iops else None,
            "reads in order are one I/O of many for a disk with read-ahead, and here one each",
        ),
        Claim(
            "the server's CPUs are less than a tenth busy", "yes", _cpu(most), None,
            "loads, database and the emulated array share two cores",
        ),
    ]  # fmt: skip


def chart(records: Mapping[str, Sequence[Record]]) -> str:
    cells = summarise_loads(records["cells"]).cells
    series = {"linear": [step.cells / cells[0].cells for step in cells]}
    series |= {title: [_relative(cells, step, load) for step in cells] for load, title in LOADS.items()}
    return lines("Rate against one cell, by the number of cells", "×", [str(step.cells) for step in cells], series)


def _scaling(cells: Sequence[CellsStep], load: str, title: str) -> Claim:
    relative = _relative(cells, cells[-1], load)
    ours = f"{relative:.1f} × with {cells[-1].cells}" + (", as was asked for" if load in AT_A_RATE else "")
    why = _QUEUES if load == "mail" else "likewise"
    return Claim(f"{title} grow nearly linearly", THEIRS[load], ours, relative >= LINEAR * cells[-1].cells, why)


def _relative(cells: Sequence[CellsStep], step: CellsStep, load: str) -> float:
    """Return a load's I/Os per second against those in the first cell."""
    return _ios(_point(step, load)) / _ios(_point(cells[0], load))


def _ios(point: LoadPoint) -> float:
    """Return I/Os per second. Those of users are their reads, of which mailboxes stand for 0.12 each."""
    ios = point.rate if point.first.kind == "raw" else point.mean(lambda step: step.reads_per_s)
    assert ios
    return ios


def _read_ms(point: LoadPoint) -> float:
    """Return the mean time of a load's I/O: of users that of the server's reads."""
    level = point.level
    value = point.mean(lambda step: step.mean_ms) if point.first.kind == "raw" else level and level.figure_ms
    assert value
    return value


def _point(step: CellsStep, load: str) -> LoadPoint:
    return next(part.point for part in step.loads if part.load == load)


def _cpu(step: CellsStep) -> str:
    busy = step.whole.mean(lambda whole: whole.cpu_busy_share)
    return "–" if busy is None else f"{busy * 100:.0f} %"
