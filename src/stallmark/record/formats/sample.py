"""The common form of all formats: text read as a stream, samples, and the values of counters in each.

No more of a file is in memory than a line, or an object. PowerShell redirects as UTF-16, other tools write a mark in
front, and those of Windows their own code page.
"""

import codecs
import gzip
import io
import json
import math
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import tzinfo
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TextIO, cast

from stallmark.errors import StallmarkError, WrongOption

# Sentences on files: refusals and notes, as `sentences.yaml` has them.

_NAMED = 8  # maximum names in a sentence


@cache
def load_yaml(name: str) -> dict[str, Any]:
    """Return the content of a YAML file of this room."""
    from ruamel.yaml import YAML

    return YAML(typ="safe", pure=True).load(resources.files(__package__) / f"{name}.yaml")


def refusal(kind: str, path: object = "", **facts: object) -> StallmarkError:
    """Return the error with the sentence of that kind on the file at `path`."""
    table = load_yaml("sentences")
    return StallmarkError(table["refusals"][kind].format(path=path, **table["commands"], **facts))


def wrong_option(kind: str, **facts: object) -> WrongOption:
    """Return the error with the sentence of that kind on options."""
    return WrongOption(str(refusal(kind, **facts)))


def note(kind: str, **facts: object) -> str:
    return load_yaml("sentences")["notes"][kind].format(**facts)


def first_names(names: Sequence[str]) -> str:
    """Return the first names, for a sentence."""
    return ", ".join(names[:_NAMED]) + (", …" if len(names) > _NAMED else "")


def in_quotes(text: str) -> str:
    """Return a text of a file for a place between single quotes of a shell's command, which it cannot end."""
    return text.replace("'", r"'\''")


def count_with_noun(count: int, noun: str) -> str:
    """Return a number with its noun: 1 time, 3 times."""
    return f"{count} {noun}{'s' * (count != 1)}"


# Text and JSON, read as a stream.

_CHUNK = 1 << 20
_LONGEST = 1 << 24
"""Maximum characters of a line, or of an object of a JSON file. A Perfmon header with all counters has a million."""
_DIGITS = 19  # maximum digits of an integer; a longer one is read as a float
_GAP = re.compile(r"[\s,]*")
_ESCAPE = re.compile(r"\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)|[ -/]*[0-~])")
"""Colours, titles and other commands to a terminal, as `script` records them."""


@contextmanager
def opened(path: Path) -> Iterator[TextIO]:
    """Open a file as text, unpacked if it is a .gz.

    Raise StallmarkError for a binary, an empty or a damaged file; OSError if it cannot be opened.
    """
    head = head_bytes(path)
    encoding = "utf-8-sig"
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        encoding = "utf-16"
    elif b"\0" in head:
        raise refusal("binary", path)
    if not head.decode(encoding, errors="replace").strip():
        raise refusal("empty", path)
    errors = _AS_WINDOWS if encoding == "utf-8-sig" else "replace"
    with _unpacked(path) as file, io.TextIOWrapper(file, encoding, errors, newline="") as text:
        yield text


@contextmanager
def _unpacked(path: Path) -> Iterator[BinaryIO]:
    with path.open("rb") as file:
        if file.read(2) != b"\x1f\x8b":
            file.seek(0)
            yield file
            return
    try:
        with gzip.open(path) as packed:
            yield cast(BinaryIO, packed)
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise refusal("cut_gz", path) from None


def head_bytes(path: Path) -> bytes:
    with _unpacked(path) as file:
        return file.read(4096)


_AS_WINDOWS = "stallmark.windows-1252"


def _as_windows(error: UnicodeError) -> tuple[str, int]:
    """Decode bytes that are not UTF-8 as the code page of western Windows."""
    assert isinstance(error, UnicodeDecodeError)
    return error.object[error.start : error.end].decode("cp1252", errors="replace"), error.end


codecs.register_error(_AS_WINDOWS, _as_windows)


def head_of(path: Path, characters: int = 65_536) -> str:
    with opened(path) as text:
        return _ESCAPE.sub("", text.read(characters))


def lines_of(path: Path) -> Iterator[str]:
    """Yield the lines of a file without ends and colours. Raise StallmarkError for a line that never ends."""
    end = ""
    with opened(path) as text:
        while line := text.readline(_LONGEST):
            if len(line) == _LONGEST:
                raise refusal("long_line", path, most=_LONGEST)
            if not (line == "\r\n" and end == "\r"):  # an end that was converted twice: \r\r\n
                yield (_ESCAPE.sub("", line) if "\x1b" in line else line).rstrip("\r\n")
            end = line[-1]


class JsonArray:
    """The objects of an array in a JSON file, one by one: the document need not fit into memory, and may be cut.

    Several arrays, as in appended documents, are all read. `around` receives the text before, between and behind them.
    After the last object, `whole` is true if the last array was closed.
    """

    def __init__(self, path: Path, begin: re.Pattern[str], around: Callable[[str], None] = lambda text: None):
        self.path, self._begin, self._around = path, begin, around
        self.whole = False

    def __iter__(self) -> Iterator[dict[str, Any]]:
        decoder = json.JSONDecoder(parse_int=_whole)
        is_inside, arrays = False, 0
        with opened(self.path) as text:
            buffer, place, more = text.read(_CHUNK), 0, True
            while True:
                try:
                    if not is_inside:
                        begin = self._begin.search(buffer, place)
                        if begin is None and more:
                            raise EOFError
                        self._around(buffer[place : begin.end() if begin else None])
                        if begin is None:
                            break
                        is_inside, arrays, place, self.whole = True, arrays + 1, begin.end(), False
                    place = _GAP.match(buffer, place).end()  # type: ignore[union-attr]
                    if buffer.startswith("]", place):
                        is_inside, self.whole = False, True
                        continue
                    value, place = decoder.raw_decode(buffer, place)
                # The object may continue in the next chunk; at the end of the file it is cut.
                except (EOFError, json.JSONDecodeError, RecursionError):
                    if not more:
                        return
                    if len(buffer) - place > _LONGEST:
                        raise refusal("long_object", self.path) from None
                    chunk = text.read(max(_CHUNK, len(buffer) - place))
                    more, buffer, place = bool(chunk), buffer[place:] + chunk, 0
                    continue
                if isinstance(value, dict):
                    yield value
        if not arrays:
            raise refusal("no_samples", self.path)


def _whole(digits: str) -> float:
    return int(digits) if len(digits) <= _DIGITS else float(digits)


# Counters and samples.


@dataclass(frozen=True, slots=True)
class Counter:
    """One counter of one instance."""

    name: str  # full name: "\\SQL01\PhysicalDisk(0 C:)\Disk Reads/sec", "nvme0n1 r_await"
    object: str  # "PhysicalDisk", "disk"; empty if the format has none
    counter: str  # "Disk Reads/sec", "r_await"
    instance: str = ""  # "0 C:", "nvme0n1"; empty if the counter has none
    unit: str = ""  # the file's unit: "s", "ms", "KiB/s"; empty if unknown
    host: str = ""


class Sample(NamedTuple):
    """The values of one time of the file; they can be consumed once."""

    stamp: str
    values: Iterable[tuple[Counter, float]]
    seconds: float | None = None
    """The covered time, if the file states it."""
    begins: bool = False
    """True for a first sample, and after a time of unknown length."""


Has = Callable[[Counter], bool]


class Recorded:
    """A file of another tool. Its facts are known once a sample is read, its notes once all are."""

    order: str | None = None
    """The order of day and month, if the tool has but one."""
    otherwise = ""
    """The continuation of a refusal of ambiguous dates."""
    first_since_start = False
    """A sample that begins may cover all time since the machine was started."""
    omits_idle = False
    """Devices without I/O are left out, as by iostat -z."""

    def __init__(self, path: Path):
        self.path = path
        self.host = ""
        self.cores: int | None = None
        self.zone: tzinfo | None = None
        self.zone_words = ""
        self.restarts: list[str] = []
        self.notes: list[str] = []
        """Phrases on omitted parts."""
        self.remarks: list[str] = []
        """Phrases on values that were converted, because the tool writes them differently."""

    def samples(self, has: Has = lambda _: True) -> Iterator[Sample]:
        """Yield the samples in the order of the file, with the values of the counters that `has` accepts.

        Raise StallmarkError for a file that cannot be read, OSError for one that cannot be opened.
        """
        raise NotImplementedError

    def remark(self, phrase: str) -> None:
        if phrase not in self.remarks:
            self.remarks.append(phrase)

    def stamps(self) -> Iterator[str]:
        return (sample.stamp for sample in self.samples())


def number(text: str) -> float | None:
    """Return a number of a file, or None for a blank and for what is infinite. A decimal comma counts as a point.

    Raise ValueError for other text.
    """
    text = text.strip()
    if not text or text == "-":
        return None
    try:
        value = float(text)
    except ValueError:
        if text.count(",") != 1 or "." in text:
            raise
        value = float(text.replace(",", "."))
    return value if math.isfinite(value) else None


def find_unit(source: str, name: str) -> str:
    """Return the unit of a counter by the patterns of `units.yaml`, or an empty text."""
    matches = ((re.search(pattern, name), unit) for pattern, unit in load_yaml("units")[source].items())
    return next((match.expand(unit) for match, unit in matches if match), "")
