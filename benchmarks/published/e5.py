"""ESG Lab for IBM, 2010: cells of mail, a database, decision support, a web server and a scan, one to four at once."""

from collections.abc import Mapping, Sequence

from benchmarks.published.chart import lines
from benchmarks.published.claims import Claim, Run, about

from stallmark.analysis.loads.cells import CellsStep
from stallmark.analysis.loads.points import LoadPoint
from stallmark.analysis.loads.summary import summarise_loads
from stallmark.analysis.validity.service_level import LevelOutcome
from stallmark.record.reader import Record

RUNS = {"cells": Run("cells-emulated")}
LINEAR = 0.7
"""Share of the linear rate in four cells that their mailboxes kept: 19,992 of 4 × 7,050."""
LOADS = {"mail": "mailboxes", "oltp": "OLTP IOPS", "dss": "DSS MB/s", "web": "web IOPS", "scan": "scan MB/s"}
THEIRS = {"mail": "7,050 to 19,992", "oltp": "to 3,362", "dss": "to 850", "web": "to 3,319", "scan": "to 407"}


def claims(records: Mapping[str, Sequence[Record]]) -> list[Claim]:
    cells = summarise_loads(records["cells"]).cells
    most = cells[-1]
    limits = {part.load: part.point.level for part in most.loads if part.point.level}
    broken = [load for load, level in limits.items() if level.outcome == LevelOutcome.NOT_MET]
    iops = most.whole.mean(lambda step: step.iops_per_drive)
    return [
        *(_scaling(cells, load, title) for load, title in LOADS.items()),
        Claim(
            "in four cells reads keep the limits of 20, 20 and 30 ms", "7 to 10 ms",
            ", ".join(f"{load} {level.figure_ms:.1f} ms" for load, level in limits.items() if level.figure_ms),
            not broken if limits else None, "",
        ),
        Claim("I/Os per second of a disk", "210", f"{iops:.0f}" if iops else "–", about(iops, 210) if iops else None, ""),
        Claim("the server's CPUs are less than a tenth busy", "yes", _cpu(most), None, ""),
    ]  # fmt: skip


def chart(records: Mapping[str, Sequence[Record]]) -> str:
    cells = summarise_loads(records["cells"]).cells
    series: dict[str, list[float | None]] = {"linear": [step.cells / cells[0].cells for step in cells]}
    series |= {title: [_relative(cells, step, load) for step in cells] for load, title in LOADS.items()}
    return lines("Rate against one cell", "×", [f"{step.cells} cells" for step in cells], series)


def _scaling(cells: Sequence[CellsStep], load: str, title: str) -> Claim:
    relative = _relative(cells, cells[-1], load)
    ours = "–" if relative is None else f"{relative:.1f} × with {cells[-1].cells}"
    holds = None if relative is None else relative >= LINEAR * cells[-1].cells
    return Claim(f"{title} grow nearly linearly", THEIRS[load], ours, holds, "")


def _relative(cells: Sequence[CellsStep], step: CellsStep, load: str) -> float | None:
    first, this = (_point(other, load).rate for other in (cells[0], step))
    return this / first if first and this else None


def _point(step: CellsStep, load: str) -> LoadPoint:
    return next(part.point for part in step.loads if part.load == load)


def _cpu(step: CellsStep) -> str:
    busy = step.whole.mean(lambda whole: whole.cpu_busy_share)
    return "–" if busy is None else f"{busy:.0%}"
