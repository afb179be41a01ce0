"""The report of several loads: one page for all of them with a picture, and a page for each load of users."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from stallmark import format
from stallmark.analysis.loads import LoadsSummary, summarise_loads
from stallmark.analysis.metrics import group
from stallmark.report import loads_tables as tables
from stallmark.report import sections
from stallmark.report.document import (
    WIDTHS,
    Block,
    Brief,
    Bullets,
    Document,
    Drawn,
    Fold,
    Links,
    Note,
    Notes,
    Section,
    Shown,
    Title,
    Words,
    bullets,
    non_empty,
    table_blocks,
)
from stallmark.report.experiment import experiment_document, experiment_in_json
from stallmark.report.figures import NEUTRAL, looks
from stallmark.report.kinds import RecordKind
from stallmark.report.loads_tables import step_of, unit
from stallmark.report.picture import box, stamp, text
from stallmark.report.renderers import in_json
from stallmark.report.sections import emulated_devices, environment, server, transactions
from stallmark.report.sections.validity import thresholds
from stallmark.report.table import Cell, Table
from stallmark.report.text import loads as words
from stallmark.report.text import sentence
from stallmark.report.text.device import EMULATED
from stallmark.report.text.reading import in_words

# The first picture of several loads: bars alone and together, or lines over cells or users, in SVG.

HEAD, GAP = 34, 26  # px above the first panel, and between panels
BAR, ROW = 17, 24  # px
CHART = 190  # px, height of a plot


@dataclass(frozen=True)
class Bar:
    """A bar: what ran, in which variant, its rate and its mean latency."""

    name: str
    colour: str
    faint: bool  # the load alone, beside which the other bar is read
    rate: float | None
    latency_ms: float | None
    doubtful: bool = False


@dataclass(frozen=True)
class Line:
    name: str
    colour: str
    points: list[tuple[float, float]]
    dashed: bool = False


@dataclass(frozen=True)
class Panel:
    """The bars of one load, or the lines of one chart. `x`: the words below its axis."""

    title: str
    unit: str
    bars: list[Bar] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    x: str = ""


@dataclass(frozen=True)
class LoadsPicture:
    panels: list[Panel]
    emulated: bool

    @property
    def summary(self) -> str:
        """Return the picture in words, for readers who cannot see it."""
        rows = [f"{panel.title}: {_in_words(*row)}" for panel in self.panels for row in self._rows(panel)]
        return in_words("Throughput", rows)

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Return the header and the rows of its numbers."""
        rows = [[panel.title, *row] for panel in self.panels for row in self._rows(panel)]
        return ["chart", "bar or line", "at", "value", "unit", "mean ms"], rows

    def shapes(self, kind: str, top: int = 0) -> tuple[list[dict], int]:
        return _shapes(self, WIDTHS[kind], top)

    def _rows(self, panel: Panel) -> list[list[str]]:
        bars = [[b.name, "", format.number(b.rate), panel.unit, format.number(b.latency_ms)] for b in panel.bars]
        dots = [
            [line.name, f"{x:g}", format.number(y), panel.unit, ""]
            for line in panel.lines
            if not line.dashed
            for x, y in line.points
        ]
        return bars + dots


def _in_words(name: str, position: str, value: str, unit: str, mean_ms: str) -> str:
    """Return a row of the picture: "together: 80.0 TPS, 247 ms"."""
    latency = f", {mean_ms} ms" if mean_ms not in ("", format.NONE) else ""
    return f"{name}{f', {position}' if position else ''}: {value} {unit}{latency}"


def picture_of_loads(loads_summary: LoadsSummary) -> LoadsPicture | None:
    """Return the picture that answers the question, or None if nothing was measured.

    It shows scaling over cells, throughput over users by device, or the bars of every load alone and together.
    """
    if not any(point.rate for point in loads_summary.points):
        return None
    emulated = any(point.first.emulated for point in loads_summary.points)
    return LoadsPicture(_scaling(loads_summary) or _charts_by_users(loads_summary) or _bars(loads_summary), emulated)


def _scaling(loads_summary: LoadsSummary) -> list[Panel]:
    panels = []
    several_rows = any(step.row for step in loads_summary.cells)
    for same in group(loads_summary.cells, lambda step: (step.variant, step.row)):
        fewest, most = same[0].cells, same[-1].cells
        # A single number of cells has no scaling: another picture is drawn.
        if most == fewest:
            return []
        names = list(dict.fromkeys(load.load for step in same for load in step.loads))
        seen = looks(names)
        lines = [
            Line(name, seen[name].colour, [
                (step.cells, load.scaling * step.cells / fewest)
                for step in same for load in step.loads if load.load == name and load.scaling
            ])
            for name in names
        ]  # fmt: skip
        ideal = Line("linear", NEUTRAL, [(fewest, 1.0), (most, most / fewest)], dashed=True)
        several = len({step.variant for step in loads_summary.cells}) > 1
        counts = ", ".join(f"{load.load} {load.point.first.count // same[0].cells}" for load in same[0].loads)
        title = ", ".join(["Throughput by cells", *[same[0].variant] * several, *[counts] * several_rows])
        panels.append(Panel(title, f"× that of {fewest} cell{'s' * (fewest > 1)}", [], [*lines, ideal], "cells"))
    return panels


def _charts_by_users(loads_summary: LoadsSummary) -> list[Panel]:
    """Return a chart per load of users, with a line per variant, if its users were varied."""
    panels = []
    seen = looks([point.first.variant for point in loads_summary.points])
    users = [point for point in loads_summary.points if point.first.kind == "users" and point.rate is not None]
    alone = all(point.first.alone for point in loads_summary.points)
    for same in group(users, lambda point: point.first.load):
        shown = [point for point in same if alone or not point.first.alone]
        if len({point.first.count for point in shown}) < 2:
            continue
        lines = [
            Line(name, look.colour, sorted((p.first.count, p.rate or 0.0) for p in shown if p.first.variant == name))
            for name, look in seen.items()
            if any(p.first.variant == name for p in shown)
        ]
        panels.append(Panel(same[0].first.load, unit(same[0]), [], lines, "users"))
    return panels


def _bars(loads_summary: LoadsSummary) -> list[Panel]:
    """Return the bars of every load: both bars if it was compared with itself alone, else its steps."""
    variants = list(dict.fromkeys(point.first.variant for point in loads_summary.points))
    seen = looks(variants)
    panels = []
    for same in group(loads_summary.points, lambda point: point.first.load):
        shown = sorted(same, key=lambda p: variants.index(p.first.variant))
        names = [", ".join([p.first.variant] * (len(variants) > 1) + [step_of(p, shown)]) for p in shown]
        bars = [
            Bar(
                name,
                seen[p.first.variant].colour,
                p.first.alone,
                p.rate,
                p.mean(lambda run: run.mean_ms),
                bool(p.doubts),
            )
            for name, p in zip(names, shown, strict=True)
        ]
        panels.append(Panel(same[0].first.load, unit(same[0]), bars))
    return panels


# The drawing. ------------------------------------------------------------------------------------------------


def _shapes(made: LoadsPicture, width: int, top: int) -> tuple[list[dict], int]:
    """Return the shapes of a drawing of `width` px from `top` px on, and its height."""
    shapes = stamp(width - 1, top + 16, EMULATED) if made.emulated else []
    y = top + HEAD * made.emulated
    charts = [panel for panel in made.panels if panel.lines]
    if charts:
        across = min(len(charts), max(width // 380, 1))
        chart_width = (width - GAP * (across - 1)) / across
        for number, panel in enumerate(charts):
            place = number % across * (chart_width + GAP), y + number // across * (CHART + 96)
            shapes += _chart(panel, *place, chart_width)
        return shapes, y - top + math.ceil(len(charts) / across) * (CHART + 96)
    for panel in made.panels:
        bars, height = _panel(panel, width, y)
        shapes += bars
        y += height + GAP
    return shapes, y - top - GAP


def _panel(panel: Panel, width: int, top: float) -> tuple[list[dict], int]:
    """Return the bars of a load: throughput and mean latency in one row, with separate scales for each load."""
    # A phone shows names above their bars, a page beside them.
    narrow = width < 600
    name = 0 if narrow else 250
    half = (width - name) / 2
    left, right = (0.0, width / 2 + 6) if narrow else (name + 10.0, name + half + 20)
    room = half - 110 if not narrow else width / 2 - 70
    rate = max((bar.rate or 0.0 for bar in panel.bars), default=0.0) or 1.0
    latency = max((bar.latency_ms or 0.0 for bar in panel.bars), default=0.0) or 1.0
    shapes = [
        text(0, top + 14, panel.title, 15, font_weight=650),
        text(left if not narrow else 130, top + 14, panel.unit, 12, "soft"),
        text(right, top + 14, "mean ms", 12, "soft"),
    ]
    row = ROW + 18 * narrow
    for number, bar in enumerate(panel.bars):
        y = top + 24 + number * row
        if narrow:
            shapes.append(text(0, y + 12, format.shorten(bar.name, 52), 12, "soft"))
        else:
            shapes.append(text(name, y + 13, format.shorten(bar.name, 34), 13, text_anchor="end"))
        y += 18 * narrow
        for x, value, scale in ((left, bar.rate, rate), (right, bar.latency_ms, latency)):
            if value is None:
                shapes.append(text(x, y + 13, format.NONE, 13, "soft"))
                continue
            long = room * value / scale
            shapes.append(box(x, y, long, BAR, bar.colour, **({"opacity": 0.45} if bar.faint else {})))
            shapes.append(text(x + long + 6, y + 13, format.number(value), 13, font_weight=600))
            # Once per row: the reason concerns both values.
            if bar.doubtful and x == left:
                shapes.append(text(x + long + 12 + 8 * len(format.number(value)), y + 13, "in doubt", 11, "warn"))
    return shapes, 24 + row * len(panel.bars)


def _chart(panel: Panel, left: float, top: float, width: float) -> list[dict]:
    """Return a plot of lines from zero, with its key above it."""
    shapes = [text(left, top + 14, f"{panel.title}, {panel.unit}", 14, font_weight=650)]
    x = left
    for line in panel.lines:
        # The key has one row: names that do not fit are left to the table.
        if x > left and x + 24 + 7.5 * len(line.name) > left + width:
            break
        shapes += [_path(line, [(x, top + 30), (x + 16, top + 30)]), text(x + 21, top + 34, line.name, 12, "soft")]
        x += 34 + 7.2 * len(line.name)
    begin, floor = left + 44, top + 46 + CHART
    room = width - 70
    xs = sorted({x for line in panel.lines for x, _ in line.points})
    highest = max((y for line in panel.lines for _, y in line.points), default=1.0) or 1.0
    tick = _tick(highest)
    high = math.ceil(highest / tick) * tick
    # A single point has no span to divide by.
    span = xs[-1] - xs[0] or 1

    def position(x: float, y: float) -> tuple[float, float]:
        return begin + (x - xs[0]) / span * room, floor - y / high * CHART

    for number in range(round(high / tick) + 1):
        _, y = position(xs[0], number * tick)
        shapes.append(box(begin, y, room, 1, NEUTRAL, opacity=0.3))
        shapes.append(
            text(begin - 6, y + 4, format.number(number * tick) if number else "0", 11, "soft", text_anchor="end")
        )
    for x in xs:
        shapes.append(text(position(x, 0)[0], floor + 16, f"{x:g}", 11, "soft", text_anchor="middle"))
    shapes.append(text(begin + room / 2, floor + 32, panel.x, 11, "soft", text_anchor="middle"))
    for line in panel.lines:
        places = [position(*point) for point in line.points]
        shapes.append(_path(line, places))
        if not line.dashed:
            shapes += [
                {"is": "circle", "cx": round(x, 1), "cy": round(y, 1), "r": 3.5, "fill": line.colour} for x, y in places
            ]
    return shapes


def _path(line: Line, places: Sequence[tuple[float, float]]) -> dict:
    return {
        "is": "polyline",
        "points": " ".join(f"{x:.1f},{y:.1f}" for x, y in places),
        "fill": "none",
        "stroke": line.colour,
        "stroke-width": 2,
    } | ({"stroke-dasharray": "5 4"} if line.dashed else {})


def _tick(high: float) -> float:
    """Return 1, 2 or 5 times a power of ten, so that four to eight steps reach `high`."""
    power = 10.0 ** math.floor(math.log10(high / 4))
    return next(step * power for step in (1, 2, 5, 10) if step * power * 8 >= high)


# The report of several loads: all of them on one page, and beside it one for each load of users.


class TableSection(NamedTuple):
    """A section of one table of all loads."""

    id: str
    title: str
    caption: str
    table: Callable[[LoadsSummary], Table | None]


_TABLES = (
    TableSection("loads", "Every load by step", "Throughput, latency and reads of every load, by step", tables.figures),
    TableSection("together", "Together against alone", "Every load together and alone", tables.penalties),
    TableSection("cells", "By cells", "Throughput, scaling and service level of every load by cells", tables.cells),
    TableSection("whole", "Device, host and reads, all loads together", "Device, host and reads by step", tables.whole),
)


def loads_document(loads_summary: LoadsSummary) -> Document:
    whole, picture = loads_summary.whole, picture_of_loads(loads_summary)
    head = sections.head_of(whole)
    return replace(
        head,
        # Several loads have users of their own; their sum would mislead.
        headline=[text for text in head.headline if not text.endswith(" users")],
        lead=[
            Drawn(picture, words.PICTURE) if picture else Words(words.NO_PICTURE),
            Links(words.OWN_PAGES, list(loads_summary.loads)),
        ],
        no_slide=words.NO_SLIDE,
        sections=non_empty(
            *(Section(part.id, part.title, table_blocks(part.table(loads_summary), part.caption)) for part in _TABLES),
            _findings(loads_summary),
            environment.array_section(whole),
            server.server_section(whole),
            Section("consistency", "Consistency", transactions.consistency_blocks(whole), "the data after each run"),
            environment.environment_section(whole),
        ),
        brief=_brief(loads_summary),
        pages={name: experiment_document(view) for name, view in loads_summary.loads.items()},
    )


def _findings(loads_summary: LoadsSummary) -> Section:
    blocks: list[Block] = []
    for name, view in loads_summary.loads.items():
        for pair in view.comparison.pairs if view.comparison else ():
            blocks += [Title(f"{name}, {pair.step}"), sections.verdict(pair)]
    verdicts = [Fold("Verdicts, load by load", blocks, printed=True)] if blocks else []
    texts = [sentence(finding) for finding in loads_summary.whole.findings]
    return Section("findings", "Findings", [*([Bullets(texts, "findings", True)] if texts else []), *verdicts])


def _brief(loads_summary: LoadsSummary) -> Brief:
    whole = loads_summary.whole
    doubts = [Note(Cell("doubt", "bad"), doubt) for doubt in tables.doubts_of(loads_summary.points)]
    # Thresholds belong to a load, so each load has a table of its own.
    kept: list[list[Block]] = [
        [Title(name), Shown(table, header=False)]
        for name, view in loads_summary.loads.items()
        if (table := thresholds(view))
    ]
    return [
        [Words(whole.title, "main"), Words(whole.answers, "quiet")],
        *([Shown(table, one_line=True)] for part in _TABLES if (table := part.table(loads_summary))),
        bullets(whole.findings),
        [Notes(doubts)] if doubts else [],
        *kept,
        emulated_devices([step.device for step in whole.steps if step.emulated]),
    ]


def loads_in_json(loads_summary: LoadsSummary) -> dict[str, Any]:
    """Return every load of users as a separate experiment, and the values of all loads together."""
    points = [
        in_json(point.first) | {"runs": [in_json(run) for run in point.runs], "rate": in_json(point.rate)}
        for point in loads_summary.points
    ]
    return {
        **{name: in_json(getattr(loads_summary.whole, name)) for name in _OF_ALL},
        "loads": {name: experiment_in_json(view) for name, view in loads_summary.loads.items()},
        "overview": {
            "points": points,
            "penalties": in_json(loads_summary.penalties),
            "cells": [
                {
                    "variant": step.variant,
                    "cells": step.cells,
                    "met": step.slo_met,
                    "loads": [
                        {"load": x.load, "rate": in_json(x.point.rate), "scaling": x.scaling} for x in step.loads
                    ],
                }
                for step in loads_summary.cells
            ],
            "steps": [in_json(run) for point in loads_summary.steps for run in point.runs],
        },
        "reports": {},
    }


_OF_ALL = ("scenario", "title", "answers", "emulated", "answer", "findings", "cautions")

LOADS = RecordKind(summarise_loads, loads_document, loads_in_json, lambda summary: summary.loads, has_slide=True)
