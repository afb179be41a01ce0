"""A document in Markdown, for the summary page of a CI job, a ticket or a pull request."""

from collections.abc import Iterator

from stallmark.redact import markdown
from stallmark.report.document import Block, Bullets, Document, Notes, Shown, Title, Verdict, Words
from stallmark.report.table import in_markdown


def document_in_markdown(document: Document) -> str:
    """Return the answer of a document, and the document's parts for a terminal."""
    paragraphs = [f"## {markdown(f'Stallmark: {document.title}')}"]
    if document.banner:
        paragraphs.append(f"**{markdown(document.banner)}**")
    if document.answer:
        paragraphs.append(f"**{markdown(document.answer)}**")
    shown = {document.title, document.answer}
    for block in (block for part in document.brief for block in part):
        if not (isinstance(block, Words) and block.text in shown):
            paragraphs += ["\n".join(lines)] if (lines := list(_lines(block))) else []
    return "\n\n".join(paragraphs)


def _lines(block: Block) -> Iterator[str]:
    match block:
        case Words():
            yield (f"**{markdown(block.strong)}** " if block.strong else "") + markdown(block.text)
        case Title():
            yield f"### {markdown(block.text)}"
        case Shown():
            if block.table.rows:
                yield from in_markdown(block.table)
        case Bullets():
            yield from (f"- {markdown(text)}" for text in block.texts)
        case Notes():
            for note in block.items:
                words = f"{note.word}: {note.text}" if note.word else note.text
                yield f"- **{markdown(str(note.mark))}** {markdown(words)}"
        case Verdict():
            yield f"**{markdown(block.word.upper())}** {markdown(block.text)}"
            yield from (f"- {markdown(text)}" for text in block.notes)
        case _:
            raise TypeError(f"Markdown shows no {type(block).__name__}.")
