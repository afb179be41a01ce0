"""ESG Lab for IBM, 2010: cells of mail, a database, a web server and a scan on 112 disks, one to four at once."""

from collections.abc import Sequence

from benchmarks.published.chart import lines
from benchmarks.published.claims import Claim

from stallmark.analysis.loads.cells import CellsStep
from stallmark.analysis.loads.points import LoadPoint
from stallmark.analysis.loads.summary import summarise_loads
from stallmark.analysis.validity.service_level import LevelOutcome
from stallmark.record.reader import Record

SCENARIO, SETTINGS = "cells-emulated", ()
LINEAR = 0.7
"""Share of the linear rate in four cells that their mailboxes kept: 19,992 of 4 × 7,050."""
_TITLES = {"mail": "mailboxes", "oltp": "transactions", "web": "web I/Os", "scan": "MB/s of the scan"}


def claims(records: Sequence[Record]) -> list[Claim]:
    found = summarise_loads(records)
    most = found.cells[-1]
    made = [_scaling(most, load, title) for load, title in _TITLES.items()]
    limits = {one.load: one.point.level for one in most.loads if one.point.level}
    kept = {load: level for load, level in limits.items() if level.outcome == LevelOutcome.MET}
    iops = most.whole.mean(lambda step: step.iops_per_drive)
    return [
        *made,
        Claim(
            "in four cells the limits on reads are kept", "7 to 10 ms of 20",
            ", ".join(f"{load}: {level.figure_ms:.1f} of {level.limit_ms:g} ms" for load, level in limits.items() if level.figure_ms),
            len(kept) == len(limits) if limits else None,
            "" if len(kept) == len(limits) else "fewer disks a user than theirs: the load of a cell was chosen for the machine",
        ),
        Claim(
            "I/Os per second of a disk", "210", f"{iops:.0f}" if iops else "–", 105 <= iops <= 420 if iops else None,
            "their controllers have caches and large sequential reads count as one; these disks have neither",
        ),
        Claim(
            "the server's CPUs are below a tenth", "yes", _cpu(most), None,
            "users, database and storage share two cores here",
        ),
    ]  # fmt: skip


def chart(records: Sequence[Record]) -> str:
    cells = summarise_loads(records).cells
    series = {title: [_relative(cells, step, load) for step in cells] for load, title in _TITLES.items()}
    return lines("Rate against one cell", "×", [f"{step.cells} cells" for step in cells], series)


def _scaling(step: CellsStep, load: str, title: str) -> Claim:
    scaling = next(one.scaling for one in step.loads if one.load == load)
    theirs = {"mail": "2.8 × with four cells", "oltp": "near linear", "web": "near linear", "scan": "near linear"}[load]
    ours = "–" if scaling is None else f"{scaling * (step.cells or 1):.1f} × with {step.cells}"
    holds = None if scaling is None else scaling >= LINEAR
    return Claim(f"{title} grow nearly linearly", theirs, ours, holds, "a step is in doubt" if scaling is None else "")


def _relative(cells: Sequence[CellsStep], step: CellsStep, load: str) -> float | None:
    first, this = (_point(one, load).rate for one in (cells[0], step))
    return this / first if first and this else None


def _point(step: CellsStep, load: str) -> LoadPoint:
    return next(one.point for one in step.loads if one.load == load)


def _cpu(step: CellsStep) -> str:
    busy = step.whole.mean(lambda one: one.cpu_busy_share)
    return "–" if busy is None else f"{busy:.0%}"
