"""The first picture of a report: throughput of every variant, and in the same row its response time by cause.

It is a drawing of our own, in SVG: it stands in the page without a script, in two widths, and on a slide with answer
and cautions.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import wrap

import numpy as np
from markupsafe import Markup

from stallmark import format
from stallmark.analysis.compare.summary import Verdict
from stallmark.analysis.experiment import ExperimentSummary, doubtful
from stallmark.analysis.metrics import Point, labels, points
from stallmark.errors import StallmarkError
from stallmark.format import plural, shorten
from stallmark.redact import visible
from stallmark.report import refuse_slide, write_whole
from stallmark.report.columns import primary_of
from stallmark.report.document import WIDTHS, Document, Drawing
from stallmark.report.figures import FONT, WAITS, looks
from stallmark.report.text import experiment as words
from stallmark.report.text import term
from stallmark.report.text.device import EMULATED
from stallmark.report.text.reading import in_words
from stallmark.stats.inference import paired
from stallmark.stats.thresholds import REPLICATES

# Drawings of our own: shapes as dicts, and as elements of SVG.


def svg(drawing: Drawing, kind: str) -> Markup:
    """Return a drawing as an element for a page; `kind` is a key of WIDTHS."""
    width = WIDTHS[kind]
    shapes, height = drawing.shapes(kind)
    return Markup(
        f'<svg class="picture {kind}" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" font-family=\'{FONT}\' role="img" aria-label="{{}}">{{}}</svg>'
    ).format(drawing.summary, elements(shapes))


def elements(shapes: Sequence[dict]) -> Markup:
    """Return shapes as SVG elements; whatever they hold is escaped."""
    return Markup("\n").join(
        Markup("<{} {}>{}</{}>").format(
            Markup(shape["is"]),
            Markup(" ").join(
                Markup('{}="{}"').format(Markup(k), v) for k, v in shape.items() if k not in ("is", "says")
            ),
            shape.get("says", ""),
            Markup(shape["is"]),
        )
        for shape in shapes
    )


INK, SOFT, WARN = "#1a1e22", "#535c65", "#8a4b00"


def text(x: float, y: float, says: str, size: int = 13, ink: str = "ink", **more: str | int) -> dict:
    """Return words. `ink` is a class of the page's style sheet, or its colour without a style sheet."""
    fill = {"ink": INK, "soft": SOFT, "warn": WARN, "white": "#ffffff"}[ink]
    place = {"is": "text", "x": round(x, 1), "y": round(y, 1), "font-size": size, "fill": fill, "class": ink}
    return place | {name.replace("_", "-"): value for name, value in more.items()} | {"says": says}


def box(x: float, y: float, width: float, height: float, fill: str, **more: str | float) -> dict:
    place = {"x": round(x, 1), "y": round(y, 1), "width": round(max(width, 0), 1), "height": round(height, 1)}
    return {"is": "rect", **place, "fill": fill} | {name.replace("_", "-"): value for name, value in more.items()}


def stamp(right: float, y: float, says: str) -> list[dict]:
    """Return a word in a frame, flush right."""
    # Without a script an SVG cannot measure its text: the width is an estimate.
    width = 10.4 * len(says) + 14
    return [
        box(right - width, y - 15, width, 21, "none", stroke=WARN, stroke_width=1.5, **{"class": "warn-line"}),
        text(right - width / 2, y, says, 13, "warn", text_anchor="middle", font_weight=700, letter_spacing=1),
    ]


CAUSES = (
    ("reads", ("read",), WAITS["io"].colour),
    ("log", ("log",), WAITS["wal"].colour),
    ("locks", ("lock",), WAITS["lock"].colour),
    ("CPU", ("cpu",), WAITS["cpu"].colour),
    ("rest", ("other_io", "unknown", "client", "queue", "rest"), WAITS["client"].colour),
)
"""Causes, the parts of the response time in each, and their colours."""
UNKNOWN = "#7d8590"
MOST_ROWS = 14
"""Rows above which a variant has only that of its best step."""


@dataclass(frozen=True)
class PictureRow:
    """A variant, or one of its steps: means over runs. `parts_ms` is empty if the cause of the time is not known."""

    name: str
    colour: str
    emulated: bool
    doubtful: bool
    apart: bool  # not comparable with the first row
    runs: list[float]  # per second, each
    rate: float | None
    low: float | None  # 95 % interval over runs
    high: float | None
    response_ms: float | None
    parts_ms: list[float] = field(default_factory=list)  # ordered as CAUSES


@dataclass(frozen=True)
class Picture:
    rows: list[PictureRow]
    unit: str
    best_steps: bool  # only the best step of each variant

    @property
    def emulated(self) -> bool:
        return any(row.emulated for row in self.rows)

    @property
    def repeated(self) -> bool:
        return any(len(row.runs) > 1 for row in self.rows)

    @property
    def mixed(self) -> bool:
        return self.emulated and not all(row.emulated for row in self.rows)

    @property
    def summary(self) -> str:
        """Return the picture in words, for readers who cannot see it."""
        texts = [f"{row.name}: {format.number(row.rate)}, {format.number(row.response_ms)} ms" for row in self.rows]
        return in_words(self.unit, texts)

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Return the header and the rows of its numbers."""
        header = ["variant", "runs", self.unit, "95 % low", "95 % high", "response ms"]
        return [*header, *(f"{name} ms" for name, _, _ in CAUSES)], [
            [
                row.name,
                format.count(len(row.runs)),
                *map(format.number, (row.rate, row.low, row.high, row.response_ms)),
                *(map(format.number, row.parts_ms) if row.parts_ms else [format.NONE] * len(CAUSES)),
            ]
            for row in self.rows
        ]

    def shapes(self, kind: str, top: int = 0) -> tuple[list[dict], int]:
        return _shapes(self, {"wide": WIDE, "narrow": NARROW}[kind], top)


def picture_of(experiment: ExperimentSummary) -> Picture | None:
    """Return the picture, or None if nothing was measured, or queries were."""
    shown = points(experiment.steps)
    if not shown or experiment.queries:
        return None
    # With more rows the picture would not fit a slide.
    best = len(shown) > MOST_ROWS
    if best:
        variants = dict.fromkeys(point.first.variant for point in shown)
        shown = [max((p for p in shown if p.first.variant == name), key=lambda p: p.tps) for name in variants]
    # Records name the step of a single user “1 users”.
    names = [re.sub(r"\b1 users$", "1 user", name) for name in labels(shown, shown)]
    named = zip(names, (point.first.variant for point in shown), shown, strict=True)
    first = shown[0].first.variant
    # Only pairs with the first variant matter: the picture compares all others with it.
    apart = {name for pair in experiment.not_comparable if first in pair for name in pair} - {first}
    return picture_from(experiment, list(named), apart, best)


def picture_from(
    experiment: ExperimentSummary, named: Sequence[tuple[str, str, Point]], apart: Collection[str], best: bool = False
) -> Picture:
    """Return the picture of points, each with its name and with that of the side or variant whose colour it has. Those
    `apart` must not be compared with the first."""
    seen, doubts, primary = looks([side for _, side, _ in named]), doubtful(experiment), primary_of(experiment)
    rows = [_row(point, name, seen[side].colour, doubts, side in apart) for name, side, point in named]
    return Picture(rows, f"{plural(primary) if primary else 'Transactions'} per second", best)


def _row(point: Point, name: str, colour: str, doubts: set[str], apart: bool) -> PictureRow:
    runs = [step.result_tps for step in point.steps]
    rate = point.tps
    low = high = None
    # An interval over fewer runs would promise a precision that it does not have.
    if len(runs) >= REPLICATES:
        # The interval of a mean is that of the differences from zero.
        low, high = map(float, paired(np.zeros(len(runs)), np.array(runs)).interval())
    budgets = [step.budget for step in point.steps if step.budget]
    # Parts of some runs alone would not add up to the mean over all runs.
    known = len(budgets) == len(point.steps)
    return PictureRow(
        name,
        colour,
        emulated=any(step.emulated for step in point.steps),
        doubtful=any(step.key in doubts for step in point.steps),
        apart=apart,
        runs=runs,
        rate=rate,
        low=low,
        high=high,
        response_ms=float(np.mean([budget.response_ms for budget in budgets])) if known else point.mean("latency"),
        parts_ms=[
            float(np.mean([sum(budget.parts_ms[p] for p in parts) for budget in budgets])) for _, parts, _ in CAUSES
        ]
        if known
        else [],
    )


# The drawing. ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Frame:
    """The layout of a drawing: the positions in px of names, of both bars, and of a row."""

    width: int
    name: int  # px from the left, where the name ends
    rate: tuple[int, int]  # begin of the bar and the px for it and its number
    time: tuple[int, int]
    row: int
    bar: int
    wrapped: bool = False  # the name is above its bars


WIDE = Frame(WIDTHS["wide"], 230, (244, 420), (700, 540), 44, 24)
NARROW = Frame(WIDTHS["narrow"], 388, (0, 388), (0, 388), 84, 18, wrapped=True)
LABEL, UNEXPLAINED = 96, 210
"""px beside the longest bar, for its number, and for that of a response time whose cause is not known."""
HEAD, LINE = 62, 18
"""px above the first row, and of each further line there."""


def _shapes(made: Picture, frame: Frame, top: int) -> tuple[list[dict], int]:
    """Return the shapes of a drawing from `top` px on, and its height."""
    # Up to eight rows keep their height; more share the height of eight, as far as text stays readable.
    row_height = frame.row if frame.wrapped or len(made.rows) <= 8 else max(28, frame.row * 8 // len(made.rows))
    bar = frame.bar if row_height == frame.row else row_height - 10
    # Without any throughput the scale does not matter, but it must not be zero.
    fastest = max((max([row.rate or 0.0, row.high or 0.0, *row.runs]) for row in made.rows), default=0.0) or 1.0
    slowest = max((row.response_ms or 0.0 for row in made.rows), default=0.0) or 1.0
    explained = all(row.parts_ms or row.response_ms is None for row in made.rows)
    per_rate = (frame.rate[1] - LABEL) / fastest
    per_ms = (frame.time[1] - (LABEL if explained else UNEXPLAINED)) / slowest
    shapes = _head(made, frame, top)
    begin = top + HEAD + (LINE * (1 + made.repeated) if frame.wrapped else 0)
    for number, row in enumerate(made.rows):
        y = begin + number * row_height
        shapes += _name(row, made.mixed, frame, y, bar)
        first = y + (22 if frame.wrapped else 0)
        shapes += _rate(row, frame, first, bar, per_rate)
        shapes += _time(row, frame, first + (bar + 6 if frame.wrapped else 0), bar, per_ms)
    return shapes, begin - top + row_height * len(made.rows)


def _head(made: Picture, frame: Frame, top: int) -> list[dict]:
    y = top + 16
    best = " (each at its best step)" if made.best_steps else ""
    shapes = []
    if made.emulated and not made.mixed:
        shapes += stamp(frame.width - 1, y, EMULATED)
    if frame.wrapped:
        shapes += [text(0, y, f"{made.unit}{best},", 13, font_weight=600)]
        y += 20
        shapes += [text(0, y, "and mean response time, ms, by cause", 13, font_weight=600)]
    else:
        shapes += [text(frame.rate[0], y, made.unit + best, 13, font_weight=600)]
        shapes += [text(frame.time[0], y, "Mean response time, ms, by cause", 13, font_weight=600)]
    x = frame.time[0]
    for name, _, colour in CAUSES:
        shapes += [box(x, y + 13, 11, 11, colour), text(x + 16, y + 23, name, 12, "soft")]
        x += 16 + 8 * len(name) + 18
    if made.repeated:
        intervals = any(row.low is not None for row in made.rows)
        shapes += _marks_explained(frame.rate[0], y + 18 + (LINE if frame.wrapped else 0), intervals)
    return shapes


def _marks_explained(x: float, middle: float, intervals: bool) -> list[dict]:
    """Return the key of what is drawn on a bar of throughput over several runs."""
    shapes = [
        box(x + 5, middle - 7, 1.5, 14, INK, opacity=0.55, **{"class": "ink"}),
        text(x + 16, middle + 5, "one run", 12, "soft"),
    ]
    if intervals:
        shapes.append(box(x + 66, middle - 1, 24, 2, INK, **{"class": "ink"}))
        shapes.append(text(x + 96, middle + 5, "95 % interval", 12, "soft"))
    return shapes


def _name(row: PictureRow, mixed: bool, frame: Frame, y: float, bar: int) -> list[dict]:
    most = 44 if frame.wrapped else 29
    name = shorten(row.name, most)
    words = [EMULATED] * (mixed and row.emulated) + ["bare device"] * (mixed and not row.emulated)
    words += ["doubtful: see the table"] * row.doubtful
    words += [term(Verdict.NOT_COMPARABLE)] * (row.apart and not row.doubtful)
    if frame.wrapped:
        return [
            text(0, y + 14, name, 14, font_weight=600),
            text(388, y + 14, ", ".join(words), 11, "warn", text_anchor="end"),
        ]
    middle = y + bar / 2 + (0 if words and bar > 20 else 5)
    shapes = [text(frame.name, middle, name, 14, font_weight=600, text_anchor="end")]
    if words and bar > 20:
        shapes.append(text(frame.name, middle + 14, ", ".join(words), 11, "warn", text_anchor="end"))
    return shapes


def _rate(row: PictureRow, frame: Frame, y: float, bar: int, per: float) -> list[dict]:
    """Return the bar of throughput: a tick for each of several runs, a line for the interval over three and more."""
    x, middle = frame.rate[0], y + bar / 2
    if row.rate is None:
        return [text(x + 4, middle + 5, format.NONE, 14, "soft")]
    end = x + row.rate * per
    shapes = [box(x, y, row.rate * per, bar, row.colour, **({"opacity": 0.45} if row.doubtful else {}))]
    if len(row.runs) > 1:
        shapes += [
            box(x + run * per - 0.75, y + 3, 1.5, bar - 6, INK, opacity=0.55, **{"class": "ink"}) for run in row.runs
        ]
        end = max(end, x + max(row.runs) * per)
    if row.low is not None and row.high is not None:
        low = max(row.low, 0.0)
        shapes.append(box(x + low * per, middle - 1, (row.high - low) * per, 2, INK, **{"class": "ink"}))
        end = max(end, x + row.high * per)
    return [*shapes, text(end + 7, middle + 5, format.number(row.rate), 15, font_weight=650)]


def _time(row: PictureRow, frame: Frame, y: float, bar: int, per: float) -> list[dict]:
    """Return the bar of response time, with the ms of a cause wherever they fit into it."""
    x, middle = float(frame.time[0]), y + bar / 2
    if row.response_ms is None:
        return [text(x + 4, middle + 5, format.NONE, 14, "soft")]
    parts = list(zip(row.parts_ms, (colour for _, _, colour in CAUSES), strict=True)) if row.parts_ms else []
    shapes = []
    for ms, colour in parts or [(row.response_ms, UNKNOWN)]:
        width = ms * per
        shapes.append(box(x, y, width, bar, colour))
        # A number that is wider than its bar would cover the neighbouring part.
        if parts and width > 9 * len(format.number(ms)) + 6:
            shapes.append(text(x + width / 2, middle + 4.5, format.number(ms), 12, "white", text_anchor="middle"))
        x += width
    note = "" if parts else " (cause not known)"
    return [*shapes, text(x + 7, middle + 5, f"{format.number(row.response_ms)} ms{note}", 13)]


# The slide: answer, picture and cautions on one page, as SVG or PNG.

MARGIN, WIDTH, HEIGHT = 40, 1320, 743  # px: 16 to 9; more variants need more height
FONTS = FONT.replace("sans-serif", '"DejaVu Sans", "Noto Sans", sans-serif')
SLIDE_LINES = {"title": (30, 66), "question": (17, 140), "answer": (23, 92), "said": (14, 170)}
"""px and characters of a line, by what it is."""
ZOOM = 2


def write_slide(document: Document, target: Path) -> Path:
    """Write the summary to `target`, by its suffix, and return it."""
    refuse_slide(target)
    drawn = slide(document)
    return write_whole(drawn if target.suffix.lower() == ".svg" else _png(visible(drawn)), target)


def slide(document: Document) -> str:
    """Return the summary as SVG. Raise StallmarkError if the document has no picture."""
    if document.picture is None:
        raise StallmarkError(document.no_slide)
    shapes: list[dict] = []
    y = 0

    def lines(kind: str, says: str, ink: str = "ink", **more: str | int) -> None:
        nonlocal y
        size, characters = SLIDE_LINES[kind]
        for line in wrap(says, characters):
            y += round(size * 1.35)
            shapes.append(text(0, y, line, size, ink, **more))

    lines("title", document.title, font_weight=700)
    asked = [f"{question.title}: {question.answers}" for question in document.questions] or [document.question]
    for question in filter(None, asked):
        lines("question", question, "soft")
    y += 14
    lines("answer", document.answer, font_weight=700)
    y += 24
    picture, height = document.picture.shapes("wide", y)
    shapes += picture
    y += height + 8
    if document.banner:
        lines("said", f"{EMULATED}: {document.banner}", "warn", font_weight=600)
        y += 6
    shown, rest = document.first_cautions()
    for caution in shown:
        lines("said", f"– {caution}", "soft")
    if rest:
        lines("said", words.further_cautions(count=len(rest)), "soft")
    y = max(y + 40, HEIGHT - 2 * MARGIN)
    shapes.append(text(0, y, " · ".join(["Stallmark", *document.headline]), 13, "soft"))
    height = y + 2 * MARGIN
    return Markup(
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="{} {} {} {}" width="{}" height="{}" font-family="{}">\n'
        "{}\n</svg>\n"
    ).format(
        -MARGIN, -MARGIN, WIDTH, height, WIDTH, height, FONTS,
        elements([box(-MARGIN, -MARGIN, WIDTH, height, "#ffffff"), *shapes]),
    )  # fmt: skip


def _png(drawn: str) -> bytes:
    import resvg_py

    words = f"<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9' font-family='{FONTS}'>{{}}</svg>"
    empty, written = (
        resvg_py.svg_to_bytes(svg_string=words.format(body)) for body in ("", "<text y='9' font-size='9'>M</text>")
    )
    # Without a font the renderer draws no text and reports no error.
    if empty == written:
        raise StallmarkError(
            "This machine has no font, so a PNG would have no words: install one (apt-get install fonts-dejavu-core), "
            "or write an .svg."
        )
    return resvg_py.svg_to_bytes(svg_string=drawn, zoom=ZOOM)
