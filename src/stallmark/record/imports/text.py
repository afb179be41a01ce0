"""Files of other tools as text, read as a stream: PowerShell redirects as UTF-16, others write a mark in front."""

import codecs
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from stallmark.errors import StallmarkError

_CHUNK = 1 << 20
_LONGEST = 1 << 27  # characters of one object of a JSON file
_GAP = re.compile(r"[\s,]*")


@contextmanager
def opened(path: Path) -> Iterator[TextIO]:
    """Open a file as text. Raise StallmarkError for what is none, or is empty; OSError for what cannot be opened."""
    with path.open("rb") as file:
        head = file.read(4096)
    encoding = "utf-8-sig"
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        encoding = "utf-16"
    elif b"\0" in head:
        raise StallmarkError(
            f"{path} is no text: convert Perfmon's with `relog LOG.blg -f csv -o out.csv`, sar's with `sadf -d FILE`."
        )
    if not head.decode(encoding, errors="replace").strip():
        raise StallmarkError(f"{path} is empty.")
    with path.open(encoding=encoding, errors="replace", newline="") as text:
        yield text


def head_of(path: Path, characters: int = 65_536) -> str:
    with opened(path) as text:
        return text.read(characters)


def lines_of(path: Path) -> Iterator[str]:
    """Yield the lines of a file, without their ends."""
    with opened(path) as text:
        for line in text:
            yield line.rstrip("\r\n")


class JsonArray:
    """The objects of an array in a JSON file, one by one: the whole need not fit into memory, and may be cut. `whole`
    tells, once they are read, that the end of the array was there; `rest`: the text behind it."""

    def __init__(self, path: Path, begin: re.Pattern[str]):
        self.path, self._begin = path, begin
        self.whole = False
        self.rest = ""

    def __iter__(self) -> Iterator[dict[str, Any]]:
        decoder = json.JSONDecoder()
        with opened(self.path) as text:
            buffer = text.read(_CHUNK)
            found = self._begin.search(buffer)
            if found is None:
                raise StallmarkError(f"{self.path} is JSON of another kind: it has none of the samples expected.")
            place, more = found.end(), True
            while True:
                place = _GAP.match(buffer, place).end()  # type: ignore[union-attr]
                if buffer.startswith("]", place):
                    self.whole, self.rest = True, buffer[place:] + text.read(_CHUNK)
                    return
                try:
                    one, place = decoder.raw_decode(buffer, place)
                except (json.JSONDecodeError, RecursionError):
                    if not more:
                        return
                    if len(buffer) - place > _LONGEST:
                        raise StallmarkError(f"{self.path} is damaged: what begins there is no JSON.") from None
                    chunk = text.read(max(_CHUNK, len(buffer) - place))
                    more = bool(chunk)
                    buffer, place = buffer[place:] + chunk, 0
                    continue
                if isinstance(one, dict):
                    yield one
