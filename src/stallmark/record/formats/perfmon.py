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
from collections import Counter as CounterOf
from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta, timezone
from functools import cache, lru_cache
from importlib import resources
from pathlib import Path

from stallmark.record.formats.amounts import (
    Amounts,
    Key,
    Part,
    Recording,
    Wanted,
    known_counters,
    known_parts,
    read_samples,
    some_names,
)
from stallmark.record.formats.dates import MONTH_FIRST, is_time
from stallmark.record.formats.devices import canonical
from stallmark.record.formats.sample import Counter, Has, Recorded, Sample, find_unit, lines_of, number, refusal
from stallmark.record.profile import FileClass

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


# The choice of counters for a profile.
#
# The classes of disks are not known from Perfmon. If they are given, LogicalDisk's "D:" counts, else the PhysicalDisk
# "1 D:". If not, all physical disks count together, or all logical ones for what only these have in a row: never both.
#
# relog writes a column for each instance that ever was, a shadow copy or a dropped database, and blanks where it was
# not.

_PHYSICAL, _LOGICAL = "physicaldisk", "logicaldisk"
_DISKS = (_PHYSICAL, _LOGICAL)
_PROCESSORS = ("processor information", "processor")  # the first has those of all groups of 64
_PROCESSES = ("process", "process v2")
_TOTAL = "_total"
_LETTER = re.compile("[A-Za-z]:")
SYSTEM_DATABASES = frozenset(
    {
        *("master", "tempdb", "model", "msdb", "mssqlsystemresource"),
        *("model_msdb", "model_replicatedmaster"),  # SQL Server 2022 and later
        "rdsadmin",  # on every server of RDS
    }
)


def read(file: Perfmon, recording: Recording, wanted: Wanted) -> None:
    """Add a file. Raise StallmarkError if it has no counter that is known here, or more than one server's."""
    readings = read_samples(file, recording, wanted, lambda counter: _key(counter) in known_counters("perfmon"))
    _refuse_several(file, recording)
    _note_empty(file, readings.values, recording)
    amounts = Amounts(readings, known_parts(readings, "perfmon", _key), recording, comes_and_goes=True)
    _refuse_nothing(file, recording, wanted, amounts.parts)
    cpu = [part for part in amounts.parts if part.column == "cpu_s"]
    amounts.parts = [*_without_totals(amounts.parts, recording), *_choose_cpu(file, cpu, recording)]
    classes: dict[Key, str] = dict(_choose_disks(file, amounts.parts, recording, wanted))
    classes |= {part.entity: "server" for part in amounts.parts if part.entity[0] not in _DISKS}
    amounts.add_up(classes, by_class=bool(wanted.classes))


def _key(counter: Counter) -> Key:
    """Return the names of a counter in small letters, without the instance of SQL Server."""
    return counter.object.rpartition(":")[2].strip().lower(), counter.counter.lower()


def _refuse_several(file: Perfmon, recording: Recording) -> None:
    """Raise StallmarkError for counters of several machines, or of several instances of SQL Server."""
    counters = file.counters.values()
    hosts = {host.lower() for host in (file.host, *(counter.host for counter in counters)) if host}
    if len(hosts) > 1:
        raise refusal("several_hosts", file.path, count=len(hosts))
    prefixes = {prefix.lower(): prefix for counter in counters if (prefix := counter.object.rpartition(":")[0])}
    servers = sorted(prefix for prefix in prefixes if prefix == "sqlserver" or prefix.startswith("mssql$"))
    if len(servers) > 1:
        raise refusal("several_instances", file.path, names=" and ".join(prefixes[name] for name in servers))
    recording.engine = "mssql" if servers else recording.engine


def _note_empty(file: Perfmon, values: Iterable[Counter], recording: Recording) -> None:
    """Note the disks that have no value, although the file has columns for the values that a profile knows."""
    disks = {counter for counter in file.counters.values() if _key(counter)[0] in _DISKS}
    columns = {counter.instance for counter in disks if _key(counter) in known_counters("perfmon")}
    if empty := columns - {counter.instance for counter in values}:
        recording.note("never", file=file.path.name, names=some_names(empty))


def _refuse_nothing(file: Perfmon, recording: Recording, wanted: Wanted, parts: Sequence[Part]) -> None:
    """Raise StallmarkError for a file without a known counter; note names that may be those of disks."""
    disks = {part.entity[1] for part in parts if part.entity[0] in _DISKS}
    recording.devices |= {name for name in disks if name.lower() != _TOTAL}
    counters = file.counters.values()
    foreign = {name for counter in counters for name in (counter.object, counter.counter) if not name.isascii()}
    if not (parts or (wanted.classes and recording.devices)):
        names = some_names(f"{counter.object} {counter.counter}".strip() for counter in counters)
        raise refusal("foreign_counters" if foreign else "no_counter", file.path, names=names or "none")
    if foreign and not disks:
        recording.note("foreign_names", file=file.path.name, names=some_names(foreign))


def _without_totals(parts: Sequence[Part], recording: Recording) -> Iterator[Part]:
    """Yield the parts without processors and the system's databases. A total counts in a column that no disk, or no
    user's database, has."""
    parts = [
        part
        for part in parts
        if part.column != "cpu_s" and not (part.entity[0] == "databases" and part.entity[1].lower() in SYSTEM_DATABASES)
    ]
    single = {(part.entity[0], part.column) for part in parts if part.entity[1].lower() != _TOTAL}
    for part in parts:
        object, name = part.entity
        if name.lower() != _TOTAL or (object, part.column) not in single:
            if object == "databases" and name.lower() == _TOTAL:
                recording.note("all_databases")
            yield part


def _choose_disks(file: Perfmon, parts: Sequence[Part], recording: Recording, wanted: Wanted) -> dict[Key, FileClass]:
    """Return the disks to import, with their classes: those that were named, or else all.

    Raise StallmarkError if one disk was given two classes.
    """
    disks = CounterOf(part.entity for part in parts if part.entity[0] in _DISKS)
    if not wanted.classes:
        _note_volumes(file, disks, recording)
        return dict.fromkeys(disks, FileClass.DEVICE)
    chosen: dict[Key, tuple[FileClass, str]] = {}
    for name, held in wanted.classes.items():
        exact = {key for key in disks if canonical(key[1]) == canonical(name)}
        within = {key for key in disks if canonical(name) in key[1].lower().split()}
        # Of "D:" and "1 D:" the one of which more was recorded.
        for key in sorted(exact | within, key=lambda key: (-disks[key], key not in exact, key))[:1]:
            other, first = chosen.setdefault(key, (held, name))
            if other != held:
                raise refusal("one_disk", file.path, disk=key[1], first=first, second=name, other=other, held=held)
            recording.mapped.add(name)
    return {key: held for key, (held, _) in chosen.items()}


def _note_volumes(file: Perfmon, disks: Iterable[Key], recording: Recording) -> None:
    """Note the volumes whose letter no physical disk has: these count, and the volumes may be on others."""
    letters = {letter for object, name in disks if object == _PHYSICAL for letter in name.lower().split()[1:]}
    volumes = {name for object, name in disks if object == _LOGICAL and _LETTER.fullmatch(name)}
    if letters and (others := {name for name in volumes if name.lower() not in letters}):
        recording.note("other_volumes", file=file.path.name, names=some_names(others))


def _choose_cpu(file: Perfmon, cpu: Sequence[Part], recording: Recording) -> Sequence[Part]:
    """Return the CPU time of the only SQL Server, or else that of all processors, which are the recording's cores."""
    chosen: Sequence[Part] = ()
    for object in _PROCESSORS:
        instances = {counter.instance for counter in file.counters.values() if counter.object.lower() == object}
        cores = {name for name in instances if name.replace(",", "").isdigit()}
        own = {part.entity[1].lower(): part for part in cpu if part.entity[0] == object}
        if cores and own and not chosen:
            recording.cores, total = len(cores), own.get(_TOTAL)
            chosen = [total] if total else [own[name] for name in cores if cores <= own.keys()]
            if total:
                total.amounts *= len(cores)
    servers = [part for part in cpu if part.entity[0] in _PROCESSES and part.entity[1].lower().startswith("sqlservr")]
    if len(servers) == 1:
        return servers
    if chosen:
        recording.note("whole_machine")
    elif any(part.entity[0] in _PROCESSORS for part in cpu):
        recording.missing["server.cpu_s"] = (
            "Perfmon has the processors' total in percent, and not how many there are; record Processor(*)"
        )
    return chosen
