"""The ceiling and the memory curve: their charts, and their levels and sizes as tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from stallmark import format
from stallmark.analysis.ceiling import Ceiling, FlashKind, Level
from stallmark.analysis.experiment import ExperimentSummary
from stallmark.analysis.finding import Finding
from stallmark.analysis.metrics import METRICS
from stallmark.analysis.pool_curve import CurveSize, Fit, Mean, PoolCurve
from stallmark.analysis.step_summary import StepSummary
from stallmark.format import plural
from stallmark.record.manifest.workload import LimitSeen
from stallmark.report.document import Block, Section, Shown, Title, Words, table_blocks
from stallmark.report.figures import (
    COLOURS,
    NEUTRAL,
    Figure,
    KeyItem,
    Trace,
    from_zero,
    highest,
    limit_line,
    note,
    places,
    plain,
    rounded,
    scatter,
    side_by_side,
    values_axis,
)
from stallmark.report.table import Cell, Rows, Table, number, numbers, word
from stallmark.report.text import ceiling as ceiling_words
from stallmark.report.text import reading
from stallmark.report.text.device import EMULATED, labelled

# The ceiling: latency over throughput with every level that was tried, and the levels as a table.

HELD, BROKE = COLOURS[0], COLOURS[1]
_MARKS = {"held": ("circle", HELD), "broke": ("x", BROKE), "undecided": ("diamond", NEUTRAL)}


def _name(ceiling: Ceiling) -> str:
    return f"{ceiling.variant}, repeat {ceiling.repeat}" if ceiling.repeat > 1 else ceiling.variant


def _figure(ceiling: Ceiling, number: int) -> Figure:
    made, _ = side_by_side([1.0], 0.0, 360, margin={"t": 28})
    drawn = _limit_to_draw(ceiling)
    by_level = sorted(ceiling.levels, key=lambda level: level.seen.level)
    made.add(
        scatter(
            mode="lines",
            x=rounded(level.step.throughput.tps for level in by_level),
            y=rounded(_latency(drawn, level.step) for level in by_level),
            line={"color": NEUTRAL, "width": 1},
            hoverinfo="skip",
        )
    )
    for verdict, (symbol, colour) in _MARKS.items():
        levels = [level for level in ceiling.levels if level.seen.verdict == verdict]
        made.add(
            scatter(
                mode="markers+text",
                name=ceiling_words.level_verdict(verdict),
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
        made.add_shapes(limit_line(drawn.limit_ms, BROKE))
        # The limit must be seen even if all levels stayed below it.
        top = max(top, drawn.limit_ms)
    most = max((level.step.throughput.tps for level in ceiling.levels), default=0.0)
    made.change(
        xaxis={"range": from_zero(most), "title": {"text": "committed per second"}}, yaxis={"range": from_zero(top)}
    )
    note(made, _quantity(drawn), yshift=8)
    table = _table(ceiling)
    return Figure(
        id=f"ceiling-{number + 1}",
        title=f"Latency over throughput, {_name(ceiling)}",
        unit="ms",
        emulated=any(level.step.emulated for level in ceiling.levels),
        summary="; ".join(
            f"{ceiling_words.level(ceiling.of, level.seen.level)}: {ceiling_words.level_verdict(level.seen.verdict)}"
            for level in by_level
        ),
        method=ceiling_words.METHOD,
        chart=made,
        header=table.header,
        rows=[[str(cell) for cell in row] for row in table.rows],
        key=[
            KeyItem(ceiling_words.level_verdict(verdict), colour, None, symbol)
            for verdict, (symbol, colour) in _MARKS.items()
        ]
        + [KeyItem("limit", BROKE, "dash")],
        wide=True,
    )


def _limit_to_draw(ceiling: Ceiling) -> LimitSeen | None:
    """Return the limit whose quantity is drawn: the one that the lowest broken level missed, else the first."""
    limits = [limit for level in ceiling.levels if level.seen.level == ceiling.breaks for limit in level.seen.limits]
    missed = [limit for limit in limits if limit.value is not None and limit.value > limit.limit]
    every = [*missed, *limits, *(limit for level in ceiling.levels for limit in level.seen.limits)]
    return every[0] if every else None


def _quantity(limit: LimitSeen | None) -> str:
    if limit is None:
        return "p95 of transactions, ms"
    if limit.of == "reads":
        return "mean read time, ms"
    return f"{limit.percentile} of {limit.transaction or 'transactions'}, ms"


def _latency(limit: LimitSeen | None, step: StepSummary) -> float | None:
    if limit is not None and limit.of == "reads":
        return METRICS["read_ms"].value(step)
    percentile, transaction = (limit.percentile or "p95", limit.transaction) if limit else ("p95", None)
    if transaction is None:
        return METRICS[percentile].value(step)
    kind = next((kind for kind in step.transactions if kind.name == transaction), None)
    return kind.latency_ms.get(percentile) if kind else None


def _table(ceiling: Ceiling) -> Table:
    limits = max((level.seen.limits for level in ceiling.levels), key=len)
    return Rows(ceiling.levels).table(
        word("level", lambda level: ceiling_words.level(ceiling.of, level.seen.level)),
        word("tried", lambda level: ceiling_words.tried(level.seen.tried)),
        word("verdict", _verdict),
        number("measured", lambda level: level.step.interval.measured_s, format.seconds),
        number("TPS", lambda level: level.step.throughput.tps),
        numbers(range(len(limits)), lambda place: _head(limits[place]), _limit_text),
    )


def _head(limit: LimitSeen) -> str:
    if limit.of == "reads":
        return f"read ms (≤ {limit.limit_ms:g})"
    return f"{limit.transaction or 'all'} > {limit.limit_ms:g} ms (≤ {format.percent(limit.limit)})"


def _verdict(level: Level) -> str | Cell:
    verdict = ceiling_words.level_verdict(level.seen.verdict) + (", backlog" if level.seen.backlog else "")
    return Cell(verdict, "bad") if level.seen.verdict == "broke" else verdict


def _limit_text(level: Level, place: int) -> str:
    limit = level.seen.limits[place] if place < len(level.seen.limits) else None
    if limit is None or limit.value is None:
        return format.NONE
    if limit.of == "reads":
        return f"{format.number(limit.value)} ({format.number(limit.low)} to {format.number(limit.high)})"
    return f"{format.share(limit.value)} ({format.share(limit.low)} to {format.share(limit.high)})"


def ceiling_section(experiment: ExperimentSummary) -> Section:
    """Return a chart of latency or of the time of reads over throughput, and the levels, of each run that searched."""
    searched = [(number, ceiling) for number, ceiling in enumerate(experiment.ceilings) if ceiling.levels]
    charts = [_figure(ceiling, number) for number, ceiling in searched]
    levels = [
        block for _, ceiling in searched for block in table_blocks(_table(ceiling), "Tried levels", _name(ceiling))
    ]
    return Section("ceiling", "The ceiling", [Words(reading.CEILING, "lead"), *charts, *levels] if charts else [])


# The memory curve: its chart, and its sizes as a table.

POINT, LEFT_OUT, FLASH = COLOURS[:3]


def curve_figures(experiment: ExperimentSummary) -> list[Figure]:
    """Return a chart for each curve: throughput and reads per transaction over memory."""
    flash = [
        finding for finding in experiment.findings if isinstance(finding.kind, FlashKind) and "variant" in finding.facts
    ]
    return [_curve_figure(curve, number, flash) for number, curve in enumerate(experiment.curves)]


def curve_tables(experiment: ExperimentSummary) -> list[tuple[str, Table]]:
    """Return the sizes of each curve, with the device it is of."""
    return [(labelled(curve.device), _curve_table(curve)) for curve in experiment.curves]


def _curve_figure(curve: PoolCurve, number: int, flash: Sequence[Finding]) -> Figure:
    rate = f"{plural(curve.primary) if curve.primary else 'Transactions'} per second"
    plots: list[tuple[str, Fit, Callable[[CurveSize], Mean | None]]] = [(rate, curve.throughput, lambda s: s.rate)]
    if curve.reads:
        plots.append(("Reads per transaction", curve.reads, lambda s: s.reads))
    made, lefts = side_by_side([1.0] * len(plots), 0.09, 350, margin={"t": 48})
    for place, left, (title, fit, value) in zip(places(len(plots)), lefts, plots, strict=True):
        axes = {"xaxis": f"x{place}", "yaxis": f"y{place}"}
        made.add(*_traces(curve, fit, value, axes))
        # Only rates are compared by their ratios; reads keep an axis from zero.
        wide = [mean.value for size in curve.sizes if (mean := value(size))] if fit is curve.throughput else []
        if fit is curve.throughput and flash:
            made.add(_flash(flash, axes))
            wide += [finding.facts["per_s"][1] for finding in flash]
        top = max([mean.high or mean.value for size in curve.sizes if (mean := value(size))] + wide)
        axis, scale = values_axis(top, wide)
        made.change(**{f"xaxis{place}": _memory_axis(curve), f"yaxis{place}": axis})
        note(made, title + scale, xref="paper", yref="paper", x=left, xanchor="left", yshift=8)
    if curve.emulated:
        # Above the titles of the plots: on a phone there is no room beside them.
        note(made, EMULATED, bold=True, x=1, xref="paper", yref="paper", xanchor="right", yshift=26)
    sizes = [(size.pool_bytes, size.rate.value, size.reads.value if size.reads else None) for size in curve.sizes]
    table = _curve_table(curve)
    return Figure(
        id="memory-curve" + f"-{number + 1}" * (number > 0),
        title="Throughput and reads over memory",
        unit=rate,
        emulated=curve.emulated,
        summary=ceiling_words.curve_summary(sizes),
        method=ceiling_words.CURVE_METHOD,
        chart=made,
        header=table.header,
        rows=[[str(cell) for cell in row] for row in table.rows],
        key=[
            KeyItem("measured size", POINT, None, "circle"),
            KeyItem("fitted curve", NEUTRAL, "solid"),
            KeyItem("predicted from the other sizes", LEFT_OUT, None, "x"),
            *([KeyItem("with flash", FLASH, None, "star")] if flash else []),
        ],
        wide=True,
    )


def _flash(findings: Sequence[Finding], axes: dict[str, str]) -> Trace:
    """Return the variants with flash, each at its own memory."""
    rates = [finding.facts["per_s"][1] for finding in findings]
    return scatter(
        mode="markers",
        name="with flash",
        x=[finding.facts["pool_bytes"] for finding in findings],
        y=rounded(rates, 5),
        text=[
            f"{format.number(rate)}  {plain(finding.facts['variant'])}"
            for rate, finding in zip(rates, findings, strict=True)
        ],
        marker={"size": 11, "color": FLASH, "symbol": "star"},
        **axes,
    )


def _traces(curve: PoolCurve, fit: Fit, value: Callable[[CurveSize], Mean | None], axes: dict[str, str]) -> list[Trace]:
    known = [(size, mean) for size in curve.sizes if (mean := value(size))]
    bars = {
        "type": "data",
        "symmetric": False,
        "array": rounded(mean.high - mean.value if mean.high is not None else None for _, mean in known),
        "arrayminus": rounded(mean.value - mean.low if mean.low is not None else None for _, mean in known),
    }
    # Bars of zero length would suggest exact values.
    repeated = any(mean.high is not None for _, mean in known)
    return [
        scatter(
            mode="lines",
            name="fitted curve",
            x=[round(pool_bytes) for pool_bytes, _ in fit.line],
            y=rounded((fitted for _, fitted in fit.line), 5),
            line={"color": NEUTRAL, "width": 1.75},
            hoverinfo="skip",
            **axes,
        ),
        scatter(
            mode="markers",
            name="measured size",
            x=[size.pool_bytes for size, _ in known],
            y=rounded((mean.value for _, mean in known), 5),
            text=[f"{format.number(mean.value)}  {format.size(size.pool_bytes)}" for size, mean in known],
            marker={"size": 9, "color": POINT},
            cliponaxis=False,
            **({"error_y": bars} if repeated else {}),
            **axes,
        ),
        scatter(
            mode="markers",
            name="predicted from the other sizes",
            x=[size.size for size in fit.left_out],
            y=rounded((size.predicted for size in fit.left_out), 5),
            text=[f"{format.number(size.predicted)} with {format.size(size.size)} left out" for size in fit.left_out],
            marker={"size": 7, "color": LEFT_OUT, "symbol": "x"},
            **axes,
        ),
    ]


def _memory_axis(curve: PoolCurve) -> dict[str, object]:
    """Return a logarithmic axis of sizes. Its ticks are measured sizes, without those too close to the next tick."""
    sizes = [size.pool_bytes for size in curve.sizes]
    ticks = [sizes[-1]]
    for size in reversed(sizes[:-1]):
        # Ticks closer than about a ninth of the axis would overlap.
        if ticks[-1] / size >= (sizes[-1] / sizes[0]) ** 0.11:
            ticks.append(size)
    texts = [format.size(size) for size in ticks]
    return {"type": "log", "tickvals": ticks, "ticktext": texts, "tickfont": {"size": 11}}


def _curve_table(curve: PoolCurve) -> Table:
    tps, reads = _left_out(curve.throughput), _left_out(curve.reads)
    return Rows(curve.sizes).table(
        word("memory", lambda size: format.size(size.pool_bytes)),
        number("of the data", lambda size: size.pool_share, format.portion),
        word("chosen as", lambda size: ceiling_words.size_reason(size.chosen)),
        number("runs", lambda size: len(size.tps), format.count),
        number(f"{plural(curve.primary) if curve.primary else 'transactions'}/s", lambda size: size.rate, _mean),
        number("predicted", lambda size: tps.get(size.pool_bytes)),
        number("reads, per tx", lambda size: size.reads, _mean),
        number("predicted", lambda size: reads.get(size.pool_bytes), when=curve.reads is not None),
    )


def _left_out(fit: Fit | None) -> dict[int, float]:
    """Return the predicted value of each size that was left out, by its bytes."""
    return {size.size: size.predicted for size in fit.left_out} if fit else {}


def _mean(mean: Mean | None) -> str:
    if mean is None:
        return format.NONE
    if mean.low is None or mean.high is None:
        return format.number(mean.value)
    return f"{format.number(mean.value)} ({format.number(mean.low)} to {format.number(mean.high)})"


def curve_section(experiment: ExperimentSummary) -> Section:
    charts = curve_figures(experiment)
    blocks: list[Block] = [Words(reading.MEMORY_CURVE, "lead")]
    for chart, (device, table) in zip(charts, curve_tables(experiment), strict=True):
        blocks += [*([Title(device)] if len(charts) > 1 else []), chart, Shown(table, "Sizes of the memory curve")]
    return Section("memory-curve", "The memory curve", blocks if charts else [])
