"""Add the pages at the top of the repository to the site, and make the links between pages hold in both places."""

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
OWN = ("search-in-files.js", "site.css")
FROM_THE_TOP = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "LICENSE": "license.md",
}
_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")


def on_files(files: Any, config: Any) -> Any:
    for source, page in FROM_THE_TOP.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        if source == "LICENSE":
            text = f"# License\n\n```text\n{text}\n```\n"
        files.append(File.generated(config, page, content=relinked(text, folder="")))
    for name in OWN:
        files.append(File.generated(config, f"assets/{name}", content=(HERE / name).read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    return markdown if page.file.src_uri in FROM_THE_TOP.values() else relinked(markdown, folder="docs")


def relinked(text: str, folder: str) -> str:
    """Return the text of a page in `folder` of the repository with its links as the site has them. What the site does
    not hold, as source files, is named without a link."""

    def link(found: re.Match[str]) -> str:
        picture, words, target = found.groups()
        path, _, anchor = target.partition("#")
        if not path or "://" in path:
            return found[0]
        place = posixpath.normpath(posixpath.join(folder, path))
        page = FROM_THE_TOP.get(place) or (place.removeprefix("docs/") if place.startswith("docs/") else None)
        return f"{picture}[{words}]({page}{f'#{anchor}' if anchor else ''})" if page else words

    return _LINK.sub(link, text)
