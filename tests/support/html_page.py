"""A rendered page, taken apart."""

import base64
import json
import re
import zlib
from html.parser import HTMLParser

from stallmark import format as units


def figures_of(html: str) -> dict[str, dict]:
    """Return the figures of a page by the id of their place in it."""
    return json.loads(unpacked(html.split('id="figures">')[1].split("</script>")[0]))["figures"]


def unpacked(text: str) -> str:
    """Return what a page has packed, as `report.js` unpacks it."""
    return zlib.decompress(base64.b64decode(text)).decode()


class Page(HTMLParser):
    """The text, and every start tag, of a report without its scripts and styles."""

    def __init__(self, html: str):
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self._skip = False
        self.feed(html)
        self.ids = {attributes.get("id") for _, attributes in self.tags}
        self.text = re.sub(r"\s+", " ", "".join(self.words).replace(units.NBSP, " "))

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self._skip = tag in ("script", "style")

    def handle_endtag(self, tag):
        self._skip = False
        if tag in ("td", "th", "p", "li", "dt", "dd", "span"):
            self.words.append(" ")

    def handle_data(self, data):
        if not self._skip:
            self.words.append(data)
