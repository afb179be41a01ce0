"""The tables of several loads: their figures by step, together against alone, in cells, and their reads."""

from collections.abc import Sequence

from stallmark import format
from stallmark.analysis.compare.summary import Ratio
from stallmark.analysis.loads.points import LoadPoint
from stallmark.analysis.loads.step import LoadLevel
from stallmark.analysis.loads.summary import LoadsSummary
from stallmark.analysis.validity.service_level import LevelOutcome
from stallmark.format import plural
from stallmark.report.table import Cell, Table
from stallmark.report.text import loads as words
from stallmark.report.text import sentence

Row = Sequence[str | Cell]
_LEVELS = {
    LevelOutcome.MET: ("≤", "", "good"),
    LevelOutcome.NOT_MET: (">", "", "bad"),
    LevelOutcome.MEAN_ONLY: ("≤", f"{format.NBSP}(mean)", "apart"),
}


def figures(found: LoadsSummary) -> Table:
    """Return a row for every variant, step and load."""
    several = _several(found)
    levels, shares = any(p.level for p in found.points), any(p.storage_share for p in found.points)
    late = any(one.late for p in found.points for one in p.runs)
    unknown = any(one.waiting_unknown for p in found.points for one in p.runs)
    rows: list[Row] = []
    order = found_loads(found)
    for point in sorted(found.points, key=lambda point: order.index(point.first.load)):
        first = point.first
        row: list[str | Cell] = [
            first.load,
            *([first.variant] if several else []),
            step_of(point, found.points),
            _count(point),
            Cell(format.number(point.rate), "main"),
            unit(point),
            *(
                format.number(point.mean(of))
                for of in (lambda r: r.mb_per_s, lambda r: r.mean_ms, lambda r: r.p95_ms, lambda r: r.p99_ms)
            ),
            format.number(point.mean(lambda run: run.failed)) if first.kind != "raw" else format.NONE,
            format.number(point.mean(lambda run: run.reads_per_s)),
            *([_waited(point)] if late else []),
            *([format.share(point.storage_share)] if shares else []),
            *([level_cell(point.level)] if levels else []),
            Cell("in doubt", "bad") if point.doubts else "",
        ]
        rows.append(row)
    header = ["load", *(["variant"] if several else []), "step", "of it", "throughput", "unit", "MB/s", "mean ms",
              "p95 ms", "p99 ms", "errors", "reads/s", *(["waited"] if late else []), *(["storage"] if shares else []),
              *(["level, ms"] if levels else []), "doubts"]  # fmt: skip
    doubts = any(point.doubts for point in found.points)
    if not doubts:
        header, rows = header[:-1], [row[:-1] for row in rows]
    texts = ("load", "variant", "step", "of it", "unit", "level, ms", "doubts")
    leaves = ("p95 ms", "reads/s", "MB/s", "p99 ms", "errors", "storage", "unit", "of it", "waited")
    return Table(
        header,
        rows,
        frozenset(at for at, name in enumerate(header) if name in texts),
        [
            words.LOADS,
            *([words.WAITING_UNKNOWN] if unknown else []),
            *([words.WAITED] if late else []),
            *([words.LEVEL] if levels else []),
            *doubts_of(found.points),
        ],
        importance={at: 2 + leaves.index(name) for at, name in enumerate(header) if name in leaves},
    )


def together(found: LoadsSummary) -> Table | None:
    """Return every load beside the others against itself alone; None where none ran alone."""
    if not found.penalties:
        return None
    several, steps = _several(found), len({one.step for one in found.penalties}) > 1
    order = found_loads(found)
    rows: list[Row] = [
        [
            one.load,
            *([one.variant] if several else []),
            *([one.step] if steps else []),
            _values(one.rate),
            Cell(format.share(one.rate.ratio), "main"),
            _interval(one.rate),
            _values(one.latency),
            f"{format.number(one.latency.ratio)}×" if one.latency.ratio else format.NONE,
            Cell(f"{one.runs}, in doubt", "bad") if one.doubtful else format.count(one.runs),
        ]
        for one in sorted(found.penalties, key=lambda one: order.index(one.load))
    ]
    header = ["load", *(["variant"] if several else []), *(["step"] if steps else []), "alone → together",
              "of alone", "95 % interval", "mean ms", "of alone", "runs"]  # fmt: skip
    at = header.index("alone → together")
    return Table(
        header, rows, frozenset(range(at)), [words.TOGETHER], importance={at: 3, at + 2: 2, at + 3: 4, at + 5: 1}
    )


def cells(found: LoadsSummary) -> Table | None:
    """Return throughput and scaling of every load by the number of cells; None without cells."""
    if not found.cells:
        return None
    several = _several(found)
    rows: list[Row] = [
        [
            one.load,
            *([step.variant] if several else []),
            format.count(step.cells),
            Cell(format.number(one.point.rate), "main"),
            unit(one.point),
            format.share(one.scaling),
            format.number(one.point.mean(lambda run: run.mean_ms)),
            level_cell(one.point.level),
        ]
        for name in found_loads(found)
        for step in found.cells
        for one in step.loads
        if one.load == name
    ]
    header = ["load", *(["variant"] if several else []), "cells", "throughput", "unit", "of linear", "mean ms",
              "level, ms"]  # fmt: skip
    texts = {"load", "variant", "unit", "level, ms"}
    at = header.index("unit")
    return Table(
        header,
        rows,
        frozenset(n for n, name in enumerate(header) if name in texts),
        [words.CELLS],
        importance={at: 3, at + 2: 2},
    )


def whole(found: LoadsSummary) -> Table:
    """Return device, host and reads of every step, all loads together."""
    several = _several(found)
    rows: list[Row] = [
        [
            point.first.step,
            *([point.first.variant] if several else []),
            *(
                format.number(point.mean(of))
                for of in (lambda w: w.iops, lambda w: w.iops_per_drive, lambda w: w.read_ms, lambda w: w.reads_per_s)
            ),
            *(
                format.share(point.mean(of))
                for of in (
                    lambda w: w.io.loads_share if w.io else None,
                    lambda w: w.busy_share,
                    lambda w: w.cpu_busy_share,
                    lambda w: w.memory_share,
                )
            ),
        ]
        for point in found.steps
    ]
    header = ["step", *(["variant"] if several else []), "device IOPS", "per drive", "read ms", "server reads/s",
              "of loads", "device busy", "CPU busy", "memory"]  # fmt: skip
    at = header.index("device IOPS")
    return Table(
        header,
        rows,
        frozenset(range(at)),
        [words.SUM],
        importance={at + 1: 3, at + 2: 2, at + 3: 6, at + 4: 5, at + 5: 4, at + 7: 7},
    )


def unit(point: LoadPoint) -> str:
    """Return what a load's throughput is counted in."""
    if point.first.kind == "raw":
        return "IOPS"
    if point.first.kind == "streams":
        return "queries/h"
    return f"{plural(point.first.primary)}/s" if point.first.primary else "TPS"


def level_cell(level: LoadLevel | None) -> Cell | str:
    """Return the figure that the service level was judged by, against its limit."""
    if level is None or level.outcome not in _LEVELS:
        return format.NONE
    sign, more, kind = _LEVELS[level.outcome]
    return Cell(f"{format.number(level.figure_ms)}{format.NBSP}{sign}{format.NBSP}{level.limit_ms:g}{more}", kind)


def found_loads(found: LoadsSummary) -> list[str]:
    """Return the loads in the order of the scenario."""
    return list(dict.fromkeys(load.name for run in found.whole.runs for load in run.manifest.loads))


def step_of(point: LoadPoint, among: Sequence[LoadPoint]) -> str:
    """Return the name of a load's step: "alone", and its number where that tells such steps apart."""
    first = point.first
    if not first.alone:
        return first.step
    counts = {one.first.count for one in among if one.first.load == first.load and one.first.alone}
    return f"alone, {_count(point)}" if len(counts) > 1 else "alone"


def _several(found: LoadsSummary) -> bool:
    return len({point.first.variant for point in found.points}) > 1


def _count(point: LoadPoint) -> str:
    count, kind = point.first.count, point.first.kind
    word = {"users": "user", "streams": "stream", "raw": "job"}[kind]
    return f"{format.count(count)} {word}{'s' * (count != 1)}"


def _waited(point: LoadPoint) -> str:
    """Return how many queries at a rate waited for a stream, over all runs, of how many."""
    late = [one.late for one in point.runs if one.late]
    return f"{sum(one.waited for one in late):,} of {sum(one.due for one in late):,}" if late else format.NONE


def _values(ratio: Ratio) -> str:
    return f"{format.number(ratio.a)} → {format.number(ratio.b)}"


def _interval(ratio: Ratio) -> str:
    if ratio.low is None or ratio.high is None:
        return "one run" if ratio.ratio is not None else format.NONE
    return f"{format.share(ratio.low)} to {format.share(ratio.high)}"


def doubts_of(points: Sequence[LoadPoint]) -> list[str]:
    """Return why figures are in doubt, by load and step."""
    several = len({one.first.variant for one in points}) > 1
    where = {id(one): [one.first.variant] * several + [one.first.load, step_of(one, points)] for one in points}
    said = [f"{', '.join(where[id(one)])}: {sentence(doubt)}" for one in points for doubt in one.doubts]
    return list(dict.fromkeys(said))
