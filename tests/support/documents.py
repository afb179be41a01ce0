"""The documentation as data: the pages, their shell commands, links, anchors and sentences."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]
GENERATED = ("data-format.md", "metrics.md", "scenario-reference.md", "licences.md")
"""Pages that are made from the code, whose sentences are the code's."""

_BLOCK = re.compile(
    r"^(?:<!-- needs: (?P<needs>.+?) -->\n)?```(?P<kind>\w*)\n(?P<text>.*?)^```", re.MULTILINE | re.DOTALL
)
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


@dataclass(frozen=True)
class Shell:
    """A command of a page. `needs`: why no test runs it, by the comment above its block."""

    page: str
    text: str
    needs: str | None

    @property
    def words(self) -> list[str]:
        """Return its words, without the variables before it and what sends its output elsewhere."""
        words = shlex.split(self.text.replace("setsid nohup ", "").partition(" > ")[0])
        while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
            words.pop(0)
        return words

    def __str__(self) -> str:
        return f"{self.page}: {self.text}"


def shell_commands() -> list[Shell]:
    found = []
    for page in PAGES:
        for block in _BLOCK.finditer(page.read_text(encoding="utf-8")):
            if block["kind"] != "sh":
                continue
            for line in block["text"].replace("\\\n", " ").splitlines():
                for command in line.partition(" #")[0].split(" && "):
                    if command.strip():
                        found.append(Shell(page.name, " ".join(command.split()), block["needs"]))
    return list(dict.fromkeys(found))


def fenced_blocks(page: Path, kind: str) -> list[str]:
    """Return the texts of the blocks of a kind on a page."""
    blocks = _BLOCK.finditer(page.read_text(encoding="utf-8"))
    return [block["text"] for block in blocks if block["kind"] == kind]


def scenarios() -> list[tuple[str, str]]:
    """Return the whole scenarios that pages show, each with its page."""
    return [
        (page.name, block["text"])
        for page in PAGES
        for block in _BLOCK.finditer(page.read_text(encoding="utf-8"))
        if block["kind"] == "yaml" and block["text"].startswith("name:")
    ]


def links(page: Path) -> list[str]:
    return [link for link in _LINK.findall(_prose(page)) if "://" not in link]


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub and the site make them."""
    headings = re.findall(r"^#+ (.+)$", _BLOCK.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def sentences(page: Path) -> Iterator[str]:
    """Yield the sentences of a page: of paragraphs, items and the cells of tables."""
    text = re.sub(r"<!--.*?-->", "", _prose(page), flags=re.DOTALL)
    for part in re.split(r"\n\s*\n|\n(?=\s*(?:[-*|#]|\d+\.) ?)|\|", text):
        part = re.sub(r"`[^`]*`", "code", _LINK.sub("link", part))
        for sentence in re.split(r"(?<=[.?!:])[)*_”’]*\s+", " ".join(part.split())):
            if sentence:
                yield sentence


def _prose(page: Path) -> str:
    """Return a page without its blocks of code."""
    text = _BLOCK.sub("\n\n", page.read_text(encoding="utf-8"))
    return re.sub(r"^ {4}.*$", "", text, flags=re.MULTILINE)
