"""A document in a terminal: as the window gets narrower its tables drop columns, never digits."""

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.text import Text

from stallmark.report.document import Block, Brief, Bullets, Note, Notes, Shown, Title, Verdict, Words
from stallmark.report.table import STYLES, Cell, InTerminal, listed

_VERDICTS = {
    "better": "bold green",
    "worse": "bold red",
    "no_difference_shown": "bold",
    "indicative_only": "bold yellow",
    "not_comparable": "bold yellow",
}


def in_terminal(brief: Brief) -> RenderableType:
    """Return the parts of a document for any width from about 50 columns, an empty line between them."""
    made: list[RenderableType] = []
    for part in filter(None, brief):
        made += [*([Text("")] if made else []), *(one for block in part for one in _drawn(block))]
    return Group(*made)


def _drawn(block: Block) -> Iterator[RenderableType]:
    match block:
        case Words():
            style = STYLES.get(block.kind, "")
            yield Text.assemble((block.strong, "bold"), (block.text, style))
        case Title():
            yield Text(block.text, "bold")
        case Shown():
            yield InTerminal(block.table, block.one_line, block.widths, block.header)
        case Bullets():
            style = STYLES.get(block.kind, "")
            yield listed([(Cell("•", block.kind), Text(text, style)) for text in block.texts])
        case Notes():
            yield listed([(note.mark, _text(note)) for note in block.items])
        case Verdict():
            yield Text.assemble((block.word.upper(), _VERDICTS[block.value]), "  ", block.text)
        case _:
            raise TypeError(f"A terminal shows no {type(block).__name__}.")


def _text(note: Note) -> Text:
    return Text.assemble((note.word, "bold"), f": {note.text}") if note.word else Text(note.text)
