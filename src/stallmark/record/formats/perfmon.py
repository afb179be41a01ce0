r"""Windows performance counters as text: Performance Monitor, `relog -f csv`, `typeperf`, VMware's `esxtop -b`.

    "(PDH-CSV 4.0) (W. Europe Standard Time)(-60)","\\SQL01\PhysicalDisk(0 D:)\Avg. Disk sec/Read",…
    "11/21/2025 11:00:15.166","0.004311",…

The last parentheses hold the minutes that UTC is ahead of the local times (UTC = local + bias). They hold for the whole
file: nothing in it says when summer time began or ended. Some files have the bias of the other season. `typeperf` names
no zone, and a zone whose name has an apostrophe cuts the header short. Dates have the month first in every language of
Windows. A value that could not be taken is a blank. A time stands at the end of what a rate or a mean covers.

Windows writes the names of disks and processors in its own language, SQL Server its own in English.
`perfmon_names.json` has those of Windows Server 2016 in twelve languages, some without their accents. A character
beyond ASCII, or a question mark in its place, is taken for any: files come in several code pages.
"""

import csv
import fnmatch
import json
import re
import unicodedata
from collections.abc import Iterator, Sequence
from datetime import timedelta, timezone
from functools import cache, lru_cache
from importlib import resources
from pathlib import Path

from stallmark.record.formats.dates import MONTH_FIRST, is_time
from stallmark.record.formats.sample import Counter, Has, Recorded, Sample, find_unit, lines_of, number
from stallmark.record.formats.sentences import refusal

HEAD = re.compile(r'\s*"?\(PDH-(CSV|TSV) \d')
_ZONE = re.compile(r"\(PDH-... [\d.]+\)\s*\((?P<name>.*)\)\s*\((?P<bias>-?\d{1,5})\)")
_PATH = re.compile(  # the host and what leads it may have been taken out
    r"(?:(?:\\\\(?P<host>[^\\]+))?\\|(?=[^\\(]+(?:\(.*\))?\\))"
    r"(?:(?P<object>[^\\(]+)(?:\((?P<instance>.*)\))?\\)?(?P<counter>[^\\]+)"
)
_TIME = re.compile(r"\d{1,2}/\d{1,2}/\d{4} \d{1,2}:\d\d:\d\d(\.\d+)?( [AP]M)?")
_SPOILED = re.compile(r"\d{1,2}:\d\d[.,]\d+|\d{5}[.,]\d+")  # minutes and seconds, or days since 1900
_FOREIGN_SHARE = 0.4  # share of characters beyond ASCII: a name with more is in another script


class Perfmon(Recorded):
    """A file of Perfmon. Its counters are those of all headers: a log that was restarted has several."""

    order = MONTH_FIRST

    def __init__(self, path: Path):
        super().__init__(path)
        self.counters: dict[str, Counter] = {}
        """The counters of all headers, by their paths in small letters."""

    def samples(self, has: Has = lambda _: True) -> Iterator[Sample]:
        header: list[str] = []
        chosen: list[tuple[int, Counter]] = []
        begins, least, whole, cut, undated, strange = False, 0, 0, 0, 0, ""
        for row in self._rows():
            stamp = row[0].strip()
            if HEAD.match(row[0]):
                header, begins = row, True
                # A log may end its header with a comment, which no row has.
                least = len(header) - (not _PATH.fullmatch(header[-1].strip()))
                chosen = [(place, counter) for counter, place in self._read_header(header).items() if has(counter)]
            elif not header:
                raise refusal("no_header", self.path)
            elif not is_time(stamp) and not _SPOILED.fullmatch(stamp):
                strange = strange or stamp  # typeperf ends with "The command completed successfully."
                undated += len(row) >= len(header)
            elif not _TIME.fullmatch(stamp):
                raise refusal("spreadsheet", self.path, stamp=stamp)
            elif any(map(str.strip, row[len(header) :])):
                # Which value has no name is unknown.
                raise refusal("more_values", self.path, values=len(row), stamp=stamp, names=len(header))
            elif len(row) < least:
                cut += 1
            else:
                yield Sample(stamp, self._values(row, chosen), begins=begins)
                begins, whole = False, whole + 1
        if not whole and strange:
            raise refusal("no_perfmon_time", self.path, stamp=strange[:40])
        if not whole and not cut:
            raise refusal("no_perfmon_row", self.path)
        rows = {"too few or too many values": cut, "a first cell that is no time": undated}
        self.notes = [f"rows with {fault}: {number}" for fault, number in rows.items() if number]

    def _rows(self) -> Iterator[list[str]]:
        """Yield the rows; of a row that is cut within a cell, only its time."""
        delimiter = ""
        for line in filter(str.strip, lines_of(self.path)):
            delimiter = delimiter or separator(line)
            # An odd number of quotes means that the row is cut within a cell.
            whole = line.partition(delimiter)[0] if line.count('"') % 2 else line
            try:
                yield from filter(None, csv.reader([whole], delimiter=delimiter))
            except csv.Error as error:
                raise refusal("not_csv", self.path, error=error) from None

    def _read_header(self, header: Sequence[str]) -> dict[Counter, int]:
        """Read the zone and the host from a header, and return the places of its counters.

        A counter that was requested twice, by its name and by a pattern, is one.
        """
        zone = _ZONE.match(header[0])
        bias = int(zone["bias"]) if zone else 0
        self.zone = timezone(timedelta(minutes=-bias)) if zone and abs(bias) < 24 * 60 else None
        self.zone_words = f"bias {bias} min, {zone['name']}" if zone else ""
        paths = [(place, path) for place, text in enumerate(header) if (path := _PATH.fullmatch(text.strip()))]
        self.host = self.host or next((path["host"] for _, path in paths if path["host"]), "")
        places: dict[Counter, int] = {}
        for place, path in paths:
            host, object, instance, name = path.groups()
            key = f"{host or self.host}\\{object}({instance})\\{name}".lower()
            places.setdefault(self.counters.setdefault(key, _counter(path)), place)
        return places

    def _values(self, row: Sequence[str], chosen: Sequence[tuple[int, Counter]]) -> Iterator[tuple[Counter, float]]:
        for place, counter in chosen:
            try:
                value = number(row[place])
            except ValueError:
                raise refusal("no_number", self.path, text=row[place][:40], stamp=row[0]) from None
            if value is not None:
                if "," in row[place]:
                    self.remark("decimal commas are read as points")
                yield counter, value


def separator(line: str) -> str:
    """Return the separator of the cells: a semicolon if a spreadsheet has rewritten the file."""
    plain = line.lstrip().lstrip('"')
    return "\t" if plain.startswith("(PDH-TSV") else ";" if '";"' in line or ");\\" in line else ","


def _counter(path: re.Match[str]) -> Counter:
    counter = english_name(path["counter"].strip())
    object, instance = english_name((path["object"] or "").strip()), (path["instance"] or "").strip()
    return Counter(path[0], object, counter, instance, find_unit("perfmon", counter), path["host"] or "")


@lru_cache(4096)
def english_name(name: str) -> str:
    """Return the English name of an object or a counter of Windows, or the name itself if it is unknown."""
    pattern = re.sub("[^ -~]", "?", unicodedata.normalize("NFC", name)).lower()
    if pattern.count("?") > _FOREIGN_SHARE * len(pattern):
        return name
    matches = {_known_names()[other] for other in fnmatch.filter(_known_names(), pattern)}
    return matches.pop() if len(matches) == 1 else name


@cache
def _known_names() -> dict[str, str]:
    """Return the English names by those of other languages, in small letters without accents."""
    names = json.loads((resources.files(__package__) / "perfmon_names.json").read_text(encoding="utf-8"))
    return {
        unicodedata.normalize("NFKD", other.lower()).encode("ascii", "ignore").decode(): name
        for name, languages in names.items()
        for others in languages.values()
        for other in others
    }
