"""The summary of an experiment on one page for a slide: answer, picture and cautions, as SVG or PNG."""

from pathlib import Path
from textwrap import wrap

from markupsafe import Markup

from stallmark.errors import StallmarkError
from stallmark.redact import visible
from stallmark.report.document import Document
from stallmark.report.figures import FONT
from stallmark.report.picture import box, elements, text
from stallmark.report.targets import refuse_slide, write_whole
from stallmark.report.text import experiment as words
from stallmark.report.text.device import EMULATED

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
        lines("said", words.further_cautions(len(rest)), "soft")
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
