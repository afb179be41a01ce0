"""Drawings of our own: shapes as dicts, and as elements of SVG."""

from collections.abc import Sequence

from markupsafe import Markup

from stallmark.report.document import WIDTHS, Drawing
from stallmark.report.style import FONT


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
    """Return words. `ink` is a class of the page's style sheet, or its colour where there is none."""
    fill = {"ink": INK, "soft": SOFT, "warn": WARN, "white": "#ffffff"}[ink]
    place = {"is": "text", "x": round(x, 1), "y": round(y, 1), "font-size": size, "fill": fill, "class": ink}
    return place | {name.replace("_", "-"): value for name, value in more.items()} | {"says": says}


def box(x: float, y: float, width: float, height: float, fill: str, **more: str | float) -> dict:
    place = {"x": round(x, 1), "y": round(y, 1), "width": round(max(width, 0), 1), "height": round(height, 1)}
    return {"is": "rect", **place, "fill": fill} | {name.replace("_", "-"): value for name, value in more.items()}


def stamp(right: float, y: float, says: str) -> list[dict]:
    """Return a word in a frame, flush right."""
    width = 10.4 * len(says) + 14
    return [
        box(right - width, y - 15, width, 21, "none", stroke=WARN, stroke_width=1.5, **{"class": "warn-line"}),
        text(right - width / 2, y, says, 13, "warn", text_anchor="middle", font_weight=700, letter_spacing=1),
    ]
