"""The ceiling: latency over throughput with every level that was tried, and the levels as a table."""

from __future__ import annotations

import plotly.graph_objects as go

from stallmark import format
from stallmark.analysis.ceiling import Ceiling, Level
from stallmark.analysis.experiment import ExperimentSummary
from stallmark.analysis.step_summary import StepSummary
from stallmark.record.manifest.workload import LimitSeen
from stallmark.report.document import Section, Words, shown
from stallmark.report.figures import Figure, from_zero, highest, note, rounded, side_by_side
from stallmark.report.style import COLOURS, NEUTRAL, KeyItem
from stallmark.report.table import Cell, Rows, Table, number, numbers, word
from stallmark.report.text import ceiling as words
from stallmark.report.text import reading

HELD, BROKE = COLOURS[0], COLOURS[1]
_MARKS = {"held": ("circle", HELD), "broke": ("x", BROKE), "undecided": ("diamond", NEUTRAL)}


def ceiling_figures(experiment: ExperimentSummary) -> list[Figure]:
    """Return a chart for each run that searched: the latency of transactions, or the time of reads, over throughput."""
    return [_figure(one, number) for number, one in enumerate(experiment.ceilings) if one.levels]


def level_tables(experiment: ExperimentSummary) -> list[tuple[str, Table]]:
    """Return the levels of every run, with its name."""
    return [(_name(one), _table(one)) for one in experiment.ceilings if one.levels]


def _name(one: Ceiling) -> str:
    return f"{one.variant}, repeat {one.repeat}" if one.repeat > 1 else one.variant


def _figure(one: Ceiling, number: int) -> Figure:
    made, _ = side_by_side([1.0], 0.0, 360, margin={"t": 28})
    drawn = _drawn(one)
    by_level = sorted(one.levels, key=lambda level: level.seen.level)
    made.add_trace(
        go.Scatter(
            mode="lines",
            x=rounded(level.step.throughput.tps for level in by_level),
            y=rounded(_latency(drawn, level.step) for level in by_level),
            line={"color": NEUTRAL, "width": 1},
            hoverinfo="skip",
        )
    )
    for verdict, (symbol, colour) in _MARKS.items():
        levels = [level for level in one.levels if level.seen.verdict == verdict]
        made.add_trace(
            go.Scatter(
                mode="markers+text",
                name=words.level_verdict(verdict),
                x=rounded(level.step.throughput.tps for level in levels),
                y=rounded(_latency(drawn, level.step) for level in levels),
                text=[format.exact(level.seen.level) for level in levels],
                textposition="top center",
                marker={"size": 9, "symbol": symbol, "color": colour},
                cliponaxis=False,
            )
        )
    top = highest(made)
    if drawn:
        made.add_shape(
            type="line", xref="paper", x0=0, x1=1, y0=drawn.limit_ms, y1=drawn.limit_ms,
            line={"color": BROKE, "width": 1.25, "dash": "dash"},
        )  # fmt: skip
        top = max(top, drawn.limit_ms)
    most = max((level.step.throughput.tps for level in one.levels), default=0.0)
    made.update_layout(
        xaxis={"range": from_zero(most), "title": {"text": "committed per second"}}, yaxis={"range": from_zero(top)}
    )
    note(made, _quantity(drawn), yshift=8)
    table = _table(one)
    return Figure(
        id=f"ceiling-{number + 1}",
        title=f"Latency over throughput, {_name(one)}",
        unit="ms",
        emulated=any(level.step.emulated for level in one.levels),
        summary="; ".join(
            f"{words.level(one.of, level.seen.level)}: {words.level_verdict(level.seen.verdict)}" for level in by_level
        ),
        method=words.METHOD,
        chart=made,
        header=table.header,
        rows=[[str(cell) for cell in row] for row in table.rows],
        key=[
            KeyItem(words.level_verdict(verdict), colour, None, symbol) for verdict, (symbol, colour) in _MARKS.items()
        ]
        + [KeyItem("limit", BROKE, "dash")],
        wide=True,
    )


def _drawn(one: Ceiling) -> LimitSeen | None:
    """Return the limit whose quantity is drawn: the one that the lowest broken level missed, else the first."""
    limits = [limit for level in one.levels if level.seen.level == one.breaks for limit in level.seen.limits]
    missed = [limit for limit in limits if limit.value is not None and limit.value > limit.limit]
    every = [*missed, *limits, *(limit for level in one.levels for limit in level.seen.limits)]
    return every[0] if every else None


def _quantity(limit: LimitSeen | None) -> str:
    if limit is None:
        return "p95 of transactions, ms"
    if limit.of == "reads":
        return "mean read time, ms"
    return f"{limit.percentile} of {limit.transaction or 'transactions'}, ms"


def _latency(limit: LimitSeen | None, step: StepSummary) -> float | None:
    if limit is not None and limit.of == "reads":
        return step.storage.data.read_ms if step.storage.data else None
    percentile, transaction = (limit.percentile or "p95", limit.transaction) if limit else ("p95", None)
    if transaction is None:
        return step.latency.percentiles_ms.get(percentile)
    found = next((each for each in step.transactions if each.name == transaction), None)
    return found.latency_ms.get(percentile) if found else None


def _table(ceiling: Ceiling) -> Table:
    limits = max((level.seen.limits for level in ceiling.levels), key=len)
    return Rows(ceiling.levels).table(
        word("level", lambda level: words.level(ceiling.of, level.seen.level)),
        word("tried", lambda level: words.tried(level.seen.tried)),
        word("verdict", _verdict),
        number("measured", lambda level: level.step.interval.measured_s, format.seconds),
        number("TPS", lambda level: level.step.throughput.tps),
        numbers(range(len(limits)), lambda place: _head(limits[place]), _seen),
    )


def _head(limit: LimitSeen) -> str:
    if limit.of == "reads":
        return f"read ms (≤ {limit.limit_ms:g})"
    return f"{limit.transaction or 'all'} > {limit.limit_ms:g} ms (≤ {format.percent(limit.limit)})"


def _verdict(level: Level) -> str | Cell:
    verdict = words.level_verdict(level.seen.verdict) + (", backlog" if level.seen.backlog else "")
    return Cell(verdict, "bad") if level.seen.verdict == "broke" else verdict


def _seen(level: Level, place: int) -> str:
    limit = level.seen.limits[place] if place < len(level.seen.limits) else None
    if limit is None or limit.value is None:
        return format.NONE
    if limit.of == "reads":
        return f"{format.number(limit.value)} ({format.number(limit.low)} to {format.number(limit.high)})"
    return f"{format.share(limit.value)} ({format.share(limit.low)} to {format.share(limit.high)})"


def section(experiment: ExperimentSummary) -> Section:
    charts = ceiling_figures(experiment)
    levels = [
        block for name, table in level_tables(experiment) for block in shown(table, "Levels that were tried", name)
    ]
    return Section("ceiling", "The ceiling", [Words(reading.CEILING, "lead"), *charts, *levels] if charts else [])
