"""A document: all that a report shows, before it is a page, words in a terminal, or Markdown.

Each kind of run makes one, in a module of its own that lists the sections. `in_html`, `in_terminal`, `in_markdown` and
`slide` know documents alone.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from stallmark.analysis.cautions import CautionKind
from stallmark.analysis.experiment import Question
from stallmark.analysis.finding import Finding, Severity
from stallmark.analysis.metrics import Heading
from stallmark.analysis.step_summary import StepSummary
from stallmark.report.figures import Block, Figure, KeyItem, Look
from stallmark.report.table import Cell, Table
from stallmark.report.text import mark_word, sentence


@dataclass(frozen=True)
class Words(Block):
    """A paragraph."""

    text: str
    kind: str = ""  # a class of the style sheet, and a style of terminals
    strong: str = ""  # words before the text, set strong


@dataclass(frozen=True)
class Title(Block):
    """The title of the blocks that follow it."""

    text: str


@dataclass(frozen=True)
class Shown(Block):
    """A table with a caption, which only screen readers use."""

    table: Table
    caption: str = ""
    one_line: bool = False  # cut long names in a terminal instead of wrapping them
    widths: Sequence[int] = ()  # minimum widths, for tables below each other
    header: bool = True  # False: rows alone


@dataclass(frozen=True)
class Grid(Block):
    """Charts side by side."""

    figures: Sequence[Figure]
    small: bool = False


@dataclass(frozen=True)
class Key(Block):
    """The key of several charts; nothing if it has no items."""

    items: Sequence[KeyItem]


@dataclass(frozen=True)
class Bullets(Block):
    """A list of sentences."""

    texts: Sequence[str]
    kind: str = ""
    numbered: bool = False


@dataclass(frozen=True)
class Note:
    """A sentence beside what it is about, with a word before it and the output of a command after it."""

    mark: str | Cell
    text: str
    word: str = ""
    serious: bool = False
    output: str = ""


@dataclass(frozen=True)
class Notes(Block):
    items: Sequence[Note]


@dataclass(frozen=True)
class Pairs(Block):
    """Names and values, below a title if it has one."""

    pairs: Sequence[tuple[str, str]]
    title: str = ""


@dataclass(frozen=True)
class Facts(Block):
    """Names and values in groups side by side."""

    groups: Sequence[Pairs]


@dataclass(frozen=True)
class Fold(Block):
    """Blocks that are seen once their summary is opened. Those `printed` are on paper too."""

    summary: str
    blocks: Sequence[Block]
    open: bool = False
    printed: bool = False


@dataclass(frozen=True)
class Codes(Block):
    """Names of files and folders."""

    label: str
    names: Sequence[str]


@dataclass(frozen=True)
class Heat(Block):
    """Heat maps in the zone that times are shown in. `maps`: of every measure its days, and of every day 24 hours with
    their text and their weight from 0 to 1; an hour that was not seen has no text."""

    reading: str
    zone: str
    maps: list[tuple[str, list[tuple[str, list[tuple[str, float]]]]]]


@dataclass(frozen=True)
class StepRow:
    """A step in the table of steps: a cell for each metric, its settings in one text, and its marks."""

    step: StepSummary
    name: str
    settings: str
    look: Look
    cells: Sequence[str]
    marks: Sequence[Finding]

    @property
    def words(self) -> list[tuple[str, bool]]:
        return list(dict.fromkeys((mark_word(mark), is_invalid(mark)) for mark in self.marks))


@dataclass(frozen=True)
class Steps(Block):
    """The table of steps, with a column for each heading."""

    headings: Sequence[Heading]
    main: Heading  # the heading of the result
    rows: Sequence[StepRow]
    devices: bool  # mark emulated steps


@dataclass(frozen=True)
class Verdict(Block):
    """The verdict on a pair: its value, its word, its sentence, and what must be known with it."""

    value: str
    word: str
    text: str
    notes: Sequence[str] = ()


class Drawing(Protocol):
    """A drawing of our own, in SVG."""

    @property
    def summary(self) -> str:
        """Return the drawing in words, for readers who cannot see it."""

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Return the header and the rows of its numbers."""

    def shapes(self, kind: str, top: int = 0) -> tuple[list[dict], int]:
        """Return its shapes from `top` px on, and its height; `kind` is a key of WIDTHS."""


WIDTHS = {"wide": 1240, "narrow": 388}
"""Widths of a picture in px."""


@dataclass(frozen=True)
class Drawn(Block):
    """A picture, and the method behind it."""

    picture: Drawing
    method: str


@dataclass(frozen=True)
class Links(Block):
    """Links to the pages of a document beside its own."""

    text: str
    names: Sequence[str]


@dataclass(frozen=True)
class Section:
    """A section of a page. Evidence is folded, with a `brief` line beside its title."""

    id: str
    title: str
    blocks: Sequence[Block]
    brief: str | None = None

    def figures(self) -> Iterator[Figure]:
        yield from _figures(self.blocks)


LINES, LINE = 3, 170
"""Lines of cautions in the first screen, and the characters in each of them at its usual width."""


@dataclass(frozen=True)
class Document:
    """A report: all sections of the page, and the parts that a terminal shows."""

    title: str
    kind: str
    question: str
    headline: Sequence[str]
    answer: str
    sections: Sequence[Section]
    brief: "Brief"  # the parts that a terminal shows, an empty line between them
    questions: Sequence[Question] = ()
    lead: Sequence[Block] = ()
    cautions: Sequence[Finding] = ()
    banner: str | None = None
    key: Sequence[KeyItem] = ()  # the key of all charts without a key of their own
    pages: "Mapping[str, Document]" = field(default_factory=dict)  # further pages in files next to this one, by name
    no_slide: str = ""  # the reason for having no slide, if the document has no picture

    @property
    def picture(self) -> Drawing | None:
        return next((block.picture for block in self.lead if isinstance(block, Drawn)), None)

    def figures(self) -> Iterator[Figure]:
        """Yield every chart of the page."""
        yield from _figures(self.lead)
        for section in self.sections:
            yield from section.figures()

    def first_cautions(self) -> tuple[list[str], list[str]]:
        """Return the cautions that fit the first screen, and the others. EMULATED is already in the banner."""
        shown: list[str] = []
        rest: list[str] = []
        lines = 0
        serious_first = sorted(self.cautions, key=lambda caution: (caution.kind in _IN_BANNER, not is_invalid(caution)))
        # Whole sentences only: a cut caution might say the opposite.
        for caution in serious_first:
            text = sentence(caution)
            lines += -(-len(text) // LINE)
            (shown if lines <= LINES and caution.kind not in _IN_BANNER else rest).append(text)
        return shown, rest


Brief: TypeAlias = Sequence[Sequence[Block]]
_IN_BANNER = (CautionKind.EMULATED,)


def is_invalid(finding: Finding) -> bool:
    return finding.severity is Severity.INVALID


def _figures(blocks: Sequence[Block]) -> Iterator[Figure]:
    for block in blocks:
        match block:
            case Figure():
                yield block
            case Grid():
                yield from block.figures
            case Fold():
                yield from _figures(block.blocks)


def table_blocks(table: Table | None, caption: str, title: str = "", lead: str = "") -> list[Block]:
    """Return a table below its title and lead; empty without a table."""
    if table is None:
        return []
    above: list[Block] = [*([Title(title)] if title else []), *([Words(lead, "lead")] if lead else [])]
    return [*above, Shown(table, caption)]


def folds(tables: Sequence[tuple[str, Table]], title: str, caption: str, most_open: int = 3) -> list[Block]:
    """Return tables that are seen once their summary is opened, each under its name; up to `most_open` are open."""
    return [
        Fold(f"{title}: {name}", [Shown(table, f"{caption} {name}")], open=len(tables) <= most_open)
        for name, table in tables
    ]


def bullets(findings: Sequence[Finding], kind: str = "") -> list[Block]:
    """Return the sentences of findings as a list; nothing without findings."""
    return [Bullets([sentence(finding) for finding in findings], kind)] if findings else []


def non_empty(*sections: Section) -> list[Section]:
    """Return the sections that have something to show."""
    return [section for section in sections if section.blocks]
