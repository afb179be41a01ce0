"""A document: all that a report shows, before it is a page, words in a terminal, or Markdown.

Each kind of run makes one, in a module of its own that lists the sections. `in_html`, `in_terminal`, `in_markdown` and
`slide` know documents alone.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from stallmark.analysis.cautions import CautionKind
from stallmark.analysis.experiment import Question
from stallmark.analysis.finding import Finding, Severity
from stallmark.report.figures import Figure
from stallmark.report.style import KeyItem
from stallmark.report.table import Cell, Table
from stallmark.report.text import reading, sentence


@dataclass(frozen=True)
class Words:
    """A paragraph. `kind` is a class of the style sheet, or a style of a terminal."""

    text: str
    kind: str = ""


@dataclass(frozen=True)
class Title:
    """The title of the blocks that follow it."""

    text: str


@dataclass(frozen=True)
class Shown:
    """A table, and the caption that a screen reader says. In a terminal `one_line` cuts names that are too long, else
    they are wrapped; `widths` are minimum widths, for tables below each other; without `header` it has rows alone."""

    table: Table
    caption: str = ""
    one_line: bool = False
    widths: Sequence[int] = ()
    header: bool = True


@dataclass(frozen=True)
class Grid:
    """Charts side by side."""

    figures: Sequence[Figure]
    small: bool = False


@dataclass(frozen=True)
class Key:
    """The key of several charts; nothing if it has no items."""

    items: Sequence[KeyItem]


@dataclass(frozen=True)
class Bullets:
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
class Notes:
    items: Sequence[Note]


@dataclass(frozen=True)
class Pairs:
    """Names and values, below a title if it has one."""

    pairs: Sequence[tuple[str, str]]
    title: str = ""


@dataclass(frozen=True)
class Facts:
    """Names and values in groups side by side."""

    groups: Sequence[Pairs]


@dataclass(frozen=True)
class Fold:
    """Blocks that are seen once their summary is opened. Those `printed` are on paper too."""

    summary: str
    blocks: "Sequence[Block]"
    open: bool = False
    printed: bool = False


@dataclass(frozen=True)
class Codes:
    """Names of files and folders."""

    label: str
    names: Sequence[str]


@dataclass(frozen=True)
class Heat:
    """Heat maps in the zone that times are shown in. `maps`: of every measure its days, and of every day 24 hours with
    their text and their weight from 0 to 1; an hour that was not seen has no text."""

    reading: str
    zone: str
    maps: list[tuple[str, list[tuple[str, list[tuple[str, float]]]]]]


Block: TypeAlias = Words | Title | Shown | Figure | Grid | Key | Bullets | Notes | Facts | Pairs | Fold | Codes | Heat


@dataclass(frozen=True)
class Section:
    """A section of a page. Evidence is folded, with a `brief` line beside its title."""

    id: str
    title: str
    blocks: Sequence[Block]
    brief: str | None = None

    @property
    def folded(self) -> bool:
        return self.brief is not None


LINES, LINE = 3, 170
"""Lines of cautions in the first screen, and the characters in each of them at its usual width."""


@dataclass(frozen=True)
class Document:
    """A report. `brief` are the parts that a terminal shows, an empty line between them; `key` is that of all charts
    which have none of their own."""

    title: str
    kind: str
    question: str
    headline: Sequence[str]
    answer: str
    sections: Sequence[Section]
    brief: "Brief"
    questions: Sequence[Question] = ()
    lead: Sequence[Block] = ()
    cautions: Sequence[Finding] = ()
    banner: str | None = None
    key: Sequence[KeyItem] = ()

    def figures(self) -> Iterator[Figure]:
        """Yield every chart of the page."""
        yield from _figures(self.lead)
        for section in self.sections:
            yield from _figures(section.blocks)

    def first_cautions(self) -> tuple[list[str], list[str]]:
        """Return the cautions that fit the first screen, and the others. The banner says EMULATED already."""
        shown: list[str] = []
        rest: list[str] = []
        lines = 0
        serious_first = sorted(self.cautions, key=lambda one: (one.kind in _IN_BANNER, not _is_invalid(one)))
        for caution in serious_first:
            text = sentence(caution)
            lines += -(-len(text) // LINE)
            (shown if lines <= LINES and caution.kind not in _IN_BANNER else rest).append(text)
        return shown, rest


Brief: TypeAlias = Sequence[Sequence[Block]]
_IN_BANNER = (CautionKind.EMULATED,)


def _is_invalid(caution: Finding) -> bool:
    return caution.severity is Severity.INVALID


def _figures(blocks: Sequence[Block]) -> Iterator[Figure]:
    for block in blocks:
        match block:
            case Figure():
                yield block
            case Grid():
                yield from block.figures
            case Fold():
                yield from _figures(block.blocks)


def shown(table: Table | None, caption: str, title: str = "", lead: str = "") -> list[Block]:
    """Return a table below its title and what leads to it; nothing if there is no table."""
    if table is None:
        return []
    above: list[Block] = [*([Title(title)] if title else []), *([Words(lead, "lead")] if lead else [])]
    return [*above, Shown(table, caption)]


def bullets(findings: Sequence[Finding], kind: str = "") -> list[Block]:
    """Return the sentences of findings as a list; nothing without findings."""
    return [Bullets([sentence(finding) for finding in findings], kind)] if findings else []


def findings_section(findings: Sequence[Finding]) -> Section:
    texts = [sentence(finding) for finding in findings]
    return Section("findings", "Findings", [Bullets(texts, "findings", True) if texts else Words(reading.NO_FINDING)])
