"""The tables of several loads: metrics by step, together against alone, in cells, and reads."""

from collections.abc import Sequence

from stallmark import format
from stallmark.analysis.compare.summary import Ratio
from stallmark.analysis.load_points import LoadPoint
from stallmark.analysis.load_steps import LoadLevel
from stallmark.analysis.loads import LoadsSummary
from stallmark.analysis.service_level import LevelOutcome
from stallmark.format import plural
from stallmark.report.table import Cell, Rows, Table, number, word
from stallmark.report.text import loads as words
from stallmark.report.text import sentence

_LEVELS = {
    LevelOutcome.MET: ("≤", "", "good"),
    LevelOutcome.NOT_MET: (">", "", "bad"),
    LevelOutcome.MEAN_ONLY: ("≤", f"{format.NBSP}(mean)", "apart"),
}


def figures(loads_summary: LoadsSummary) -> Table:
    """Return a row for every variant, step and load."""
    points, order = loads_summary.points, found_loads(loads_summary)
    # Columns and notes without any value are omitted.
    levels, late = any(point.level for point in points), any(run.late for point in points for run in point.runs)
    unknown = any(run.waiting_unknown for point in points for run in point.runs)
    return Rows(sorted(points, key=lambda point: order.index(point.first.load))).table(
        word("load", lambda point: point.first.load),
        word("variant", lambda point: point.first.variant, when=_several(loads_summary)),
        word("step", lambda point: step_of(point, points)),
        word("concurrency", _count, 9),
        number("throughput", lambda point: Cell(format.number(point.rate), "main")),
        word("unit", unit, 8),
        number("MB/s", lambda point: point.mean(lambda run: run.mb_per_s), importance=4),
        number("mean ms", lambda point: point.mean(lambda run: run.mean_ms)),
        number("p95 ms", lambda point: point.mean(lambda run: run.p95_ms), importance=2),
        number("p99 ms", lambda point: point.mean(lambda run: run.p99_ms), importance=5),
        number("errors", _errors, importance=6),
        number("reads/s", lambda point: point.mean(lambda run: run.reads_per_s), importance=3),
        number("waited", _waited, importance=10, when=late),
        number(
            "storage",
            lambda point: point.storage_share,
            format.share,
            importance=7,
            when=any(point.storage_share for point in points),
        ),
        word("service level, ms", lambda point: level_cell(point.level), when=levels),
        word(
            "doubts",
            lambda point: Cell("in doubt", "bad") if point.doubts else "",
            when=any(point.doubts for point in points),
        ),
        notes=[
            words.LOADS,
            *[words.WAITING_UNKNOWN] * unknown,
            *[words.WAITED] * late,
            *[words.LEVEL] * levels,
            *doubts_of(points),
        ],
    )


def penalties(loads_summary: LoadsSummary) -> Table | None:
    """Return every load next to the others, compared with the load alone, or None if none ran alone."""
    steps, order = len({penalty.step for penalty in loads_summary.penalties}) > 1, found_loads(loads_summary)
    return Rows(sorted(loads_summary.penalties, key=lambda penalty: order.index(penalty.load))).table_if_any(
        word("load", lambda penalty: penalty.load),
        word("variant", lambda penalty: penalty.variant, when=_several(loads_summary)),
        word("step", lambda penalty: penalty.step, when=steps),
        number("alone → together", lambda penalty: _values(penalty.rate), importance=3),
        number("share of alone", lambda penalty: Cell(format.share(penalty.rate.ratio), "main")),
        number("95 % interval", lambda penalty: _interval(penalty.rate), importance=2),
        number("mean ms", lambda penalty: _values(penalty.latency), importance=4),
        number("× alone", lambda penalty: _times(penalty.latency.ratio)),
        number(
            "runs",
            lambda penalty: (
                Cell(f"{penalty.runs}, in doubt", "bad") if penalty.doubtful else format.count(penalty.runs)
            ),
            importance=1,
        ),
        notes=[words.TOGETHER],
    )


def cells(loads_summary: LoadsSummary) -> Table | None:
    """Return throughput and scaling of every load by the number of cells, or None without cells."""
    rows = [
        (step, load)
        for name in found_loads(loads_summary)
        for step in loads_summary.cells
        for load in step.loads
        if load.load == name
    ]
    return Rows(rows).table_if_any(
        word("load", lambda row: row[1].load),
        word("variant", lambda row: row[0].variant, when=_several(loads_summary)),
        number("cells", lambda row: row[0].cells, format.count),
        number("throughput", lambda row: Cell(format.number(row[1].point.rate), "main")),
        word("unit", lambda row: unit(row[1].point), 3),
        number("of linear", lambda row: row[1].scaling, format.share),
        number("mean ms", lambda row: row[1].point.mean(lambda run: run.mean_ms), importance=2),
        word("service level, ms", lambda row: level_cell(row[1].point.level)),
        notes=[words.CELLS],
    )


def whole(loads_summary: LoadsSummary) -> Table:
    """Return device, host and reads of every step, all loads together."""
    return Rows(loads_summary.steps).table(
        word("step", lambda point: point.first.step),
        word("variant", lambda point: point.first.variant, when=_several(loads_summary)),
        number("device IOPS", lambda point: point.mean(lambda run: run.iops)),
        number("per drive", lambda point: point.mean(lambda run: run.iops_per_drive), importance=3),
        number("read ms", lambda point: point.mean(lambda run: run.read_ms), importance=2),
        number("server reads/s", lambda point: point.mean(lambda run: run.reads_per_s), importance=6),
        number(
            "by the loads",
            lambda point: point.mean(lambda run: run.io.loads_share if run.io else None),
            format.share,
            importance=5,
        ),
        number("device busy", lambda point: point.mean(lambda run: run.busy_share), format.share, importance=4),
        number("CPU busy", lambda point: point.mean(lambda run: run.cpu_busy_share), format.share),
        number("memory", lambda point: point.mean(lambda run: run.memory_share), format.share, importance=7),
        notes=[words.SUM],
    )


def unit(point: LoadPoint) -> str:
    """Return the unit of a load's throughput."""
    if point.first.kind == "raw":
        return "IOPS"
    if point.first.kind == "streams":
        return "queries/h"
    return f"{plural(point.first.primary)}/s" if point.first.primary else "TPS"


def level_cell(level: LoadLevel | None) -> Cell | str:
    """Return the value that the service level was judged by, with its limit."""
    if level is None or level.outcome not in _LEVELS:
        return format.NONE
    sign, more, kind = _LEVELS[level.outcome]
    return Cell(f"{format.number(level.figure_ms)}{format.NBSP}{sign}{format.NBSP}{level.limit_ms:g}{more}", kind)


def found_loads(loads_summary: LoadsSummary) -> list[str]:
    """Return the loads in the order of the scenario."""
    return list(dict.fromkeys(load.name for run in loads_summary.whole.runs for load in run.manifest.loads))


def step_of(point: LoadPoint, among: Sequence[LoadPoint]) -> str:
    """Return the name of a load's step: "alone", with its count if several such steps differ by it."""
    first = point.first
    if not first.alone:
        return first.step
    counts = {other.first.count for other in among if other.first.load == first.load and other.first.alone}
    return f"alone, {_count(point)}" if len(counts) > 1 else "alone"


def _several(loads_summary: LoadsSummary) -> bool:
    return len({point.first.variant for point in loads_summary.points}) > 1


def _count(point: LoadPoint) -> str:
    count, kind = point.first.count, point.first.kind
    word = {"users": "user", "streams": "stream", "raw": "job"}[kind]
    return f"{format.count(count)} {word}{'s' * (count != 1)}"


def _errors(point: LoadPoint) -> float | None:
    return point.mean(lambda run: run.failed) if point.first.kind != "raw" else None


def _waited(point: LoadPoint) -> str:
    """Return the number of queries at a rate that waited for a stream, over all runs, and the number due."""
    late = [run.late for run in point.runs if run.late]
    return (
        f"{sum(queries.waited for queries in late):,} of {sum(queries.due for queries in late):,}"
        if late
        else format.NONE
    )


def _values(ratio: Ratio) -> str:
    return f"{format.number(ratio.a)} → {format.number(ratio.b)}"


def _times(ratio: float | None) -> str:
    return f"{format.number(ratio)}×" if ratio else format.NONE


def _interval(ratio: Ratio) -> str:
    if ratio.low is None or ratio.high is None:
        return "one run" if ratio.ratio is not None else format.NONE
    return f"{format.share(ratio.low)} to {format.share(ratio.high)}"


def doubts_of(points: Sequence[LoadPoint]) -> list[str]:
    """Return the reasons for doubt, by load and step."""
    several = len({point.first.variant for point in points}) > 1
    where = {
        id(point): [point.first.variant] * several + [point.first.load, step_of(point, points)] for point in points
    }
    texts = [f"{', '.join(where[id(point)])}: {sentence(doubt)}" for point in points for doubt in point.doubts]
    return list(dict.fromkeys(texts))
