"""Files of other tools as text, read as a stream: no more of one is in memory than a line, or an object.

PowerShell redirects as UTF-16, other tools write a mark in front, and those of Windows their own code page.
"""

import codecs
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from stallmark.errors import StallmarkError

_CHUNK = 1 << 20
_LONGEST = 1 << 24
"""Characters of a line, or of one object of a JSON file. A header of Perfmon with all its counters has a million."""
_DIGITS = 19  # of a whole number; one of more is a number of digits nobody measured
_GAP = re.compile(r"[\s,]*")
_COLOUR = re.compile(r"\x1b\[[\d;]*m")


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
            f"{path} is no text: convert Perfmon's with `relog LOG.blg -f csv -o out.csv`, sar's with `sadf -j FILE`."
        )
    if not head.decode(encoding, errors="replace").strip():
        raise StallmarkError(f"{path} is empty.")
    with path.open(encoding=encoding, errors=_AS_WINDOWS if encoding == "utf-8-sig" else "replace", newline="") as text:
        yield text


_AS_WINDOWS = "stallmark.windows-1252"


def _as_windows(error: UnicodeError) -> tuple[str, int]:
    """Decode what is no UTF-8 as the code page of western Windows."""
    assert isinstance(error, UnicodeDecodeError)
    return error.object[error.start : error.end].decode("cp1252", errors="replace"), error.end


codecs.register_error(_AS_WINDOWS, _as_windows)


def head_of(path: Path, characters: int = 65_536) -> str:
    with opened(path) as text:
        return text.read(characters)


def lines_of(path: Path) -> Iterator[str]:
    """Yield the lines of a file without ends and colours. Raise StallmarkError for a line that never ends."""
    with opened(path) as text:
        for line in lines_in(path, text):
            yield _COLOUR.sub("", line.rstrip("\r\n"))


def lines_in(path: Path, text: TextIO) -> Iterator[str]:
    """Yield the lines of an opened file, with their ends. Raise StallmarkError for one without end."""
    while line := text.readline(_LONGEST):
        if len(line) == _LONGEST:
            raise StallmarkError(f"{path} has a line of more than {_LONGEST:,} characters: it is damaged.")
        yield line


class JsonArray:
    """The objects of an array in a JSON file, one by one: the whole need not fit into memory, and may be cut. `whole`
    tells, once they are read, that the end of the array was there; `rest`: the text behind it."""

    def __init__(self, path: Path, begin: re.Pattern[str]):
        self.path, self._begin = path, begin
        self.whole = False
        self.rest = ""

    def __iter__(self) -> Iterator[dict[str, Any]]:
        decoder = json.JSONDecoder(parse_int=_whole)
        with opened(self.path) as text:
            buffer = text.read(_CHUNK)
            found = self._begin.search(buffer)
            if found is None:
                raise StallmarkError(f"{self.path} is no JSON of the kind expected: it has no samples.")
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


def _whole(digits: str) -> float:
    return int(digits) if len(digits) <= _DIGITS else float(digits)
