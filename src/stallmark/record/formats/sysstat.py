"""sysstat: `iostat -xt N` as text and as JSON, and JSON of `sadf -j FILE -- -b -d -u -p`.

A time stands at the end of its interval. A kB is 1,024 bytes. iostat's times are local ones in the style of the locale,
or ISO 8601 with S_TIME_FORMAT=ISO; the offset is only in the latter. Its first report may cover all the time since the
machine was started; nothing says so. Versions before 10.1 have one `await` for reads and writes. sadf's times are UTC
unless it was run with -T or -t: newer versions name the zone ("tz"), older ones say whether it is UTC ("utc": 1). Every
sample of it states its seconds, and restarts stand behind the samples.

Faults of sysstat: a counter that wrapped is written as 2^63 (issue 312), CPUs that did not tick as 0 % throughout (157,
182); kB and MB are sectors in the JSON of 12.1.2 to 12.2.0 (264); the array may begin with a comma (163, 222) and end
anywhere if its writer was killed (253).
"""

import math
import re
from collections import Counter as CounterOf
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC
from functools import lru_cache
from itertools import chain, pairwise, product
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np

from stallmark.record.formats import devices
from stallmark.record.formats.amounts import (
    Amounts,
    Key,
    Recording,
    Wanted,
    known_counters,
    known_parts,
    read_samples,
    some_names,
)
from stallmark.record.formats.dates import Schedule, is_epoch, is_time
from stallmark.record.formats.devices import ALL_DISKS, NUMBERED, canonical
from stallmark.record.formats.sample import (
    Counter,
    Has,
    JsonArray,
    Recorded,
    Sample,
    find_unit,
    head_of,
    lines_of,
    load_yaml,
    number,
    refusal,
)
from stallmark.record.profile import IO, FileClass

REPORT = r"(avg-cpu:\s+%user|Device:?\s+(tps|r/s|rrqm/s))"
CPU = "avg-cpu"
"""The object of iostat's CPU times; its devices have none."""
CPU_LOADS = ("cpu-load", "cpu-load-all")
"""The objects of sadf's: the second is of -u ALL up to 12.0."""
HEAD = re.compile(r"\s*Linux\s+\S+\s+(?:\((?P<host>[^)\s]*)\)\s+)?\S+(?:.*?\((?P<cores>\d+)\s+CPU\))?")
_ARRAY = re.compile(r'"statistics"\s*:\s*\[')
_NODE = re.compile(r'"nodename"\s*:\s*"((?:[^"\\]|\\.)*)"')
_CORES = re.compile(r'"number-of-cpus"\s*:\s*(\d+)')
_BOOT = re.compile(r'"boot"\s*:\s*\{\s*"date"\s*:\s*"([^"]*)"\s*,\s*"time"\s*:\s*"([^"]*)"')
_WRAPPED = 2.0**50  # kibibytes or requests per second: beyond any device
_SINCE_START_S = 10**8  # more than three years: what old versions of sadf write for an interval they do not know
_OTHER_UNIT = 1.5  # a kB has two sectors
_ROUNDED = 3.0  # ten shares of a CPU, each without decimals
_COUNT = re.compile(r"/s$|^tps$|^\w+_(read|wrtn)$")
_KIB = {"B": 1 / 1024, "k": 1.0, "M": 1024.0, "G": 1024.0**2, "T": 1024.0**3, "P": 1024.0**4}
"""The units of --human, and those of columns."""
Pairs = Iterator[tuple[Counter, float]]


@lru_cache(1 << 16)
def _counter(object: str, counter: str, instance: str) -> Counter:
    label = f"{object} {counter}".strip()
    return Counter(f"{instance} {label}".strip(), object, counter, instance, find_unit("sysstat", label))


def _numbers(values: object) -> dict[str, float]:
    return {name: float(value) for name, value in _dict(values).items() if _is_number(value)}


def _is_number(value: object) -> TypeGuard[int | float]:
    # To Python a bool is an int, but JSON's `true` is not a number.
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _dicts(value: object) -> list[dict[str, Any]]:
    return [member for member in value if isinstance(member, dict) and member] if isinstance(value, list) else []


def _is_idle(device: Mapping[str, float]) -> bool:
    """Return True if a device completed no I/O. Its queue does not count, as an unfinished I/O is in it."""
    return not any(value and _COUNT.search(name) for name, value in device.items())


class _Sysstat(Recorded):
    _begins = False
    """The next sample is the first of its array."""
    _is_json = True

    def _objects(self) -> Iterator[dict[str, Any]]:
        """Yield the complete samples of JSON. They are read one by one because the whole may be invalid JSON."""
        array = JsonArray(self.path, _ARRAY, self._read_surroundings)
        yield from array
        if not array.whole:
            self.notes.append("the last report, which is cut")

    def _read_surroundings(self, text: str) -> None:
        """Read the text before or behind an array."""
        node, cores = _NODE.search(text), _CORES.search(text)
        self._note_machine(node[1] if node else "", cores[1] if cores else None)
        self.restarts += map(" ".join, _BOOT.findall(text))
        self._begins = True

    def _note_machine(self, host: str, cores: str | None) -> None:
        """Note the machine of a header. Raise StallmarkError if it differs from the one before."""
        if self.host and host and self.host.lower() != host.lower():
            as_with = f", as with {self._split_command()}"
            raise refusal("two_hosts", self.path, hosts=f"{self.host} and {host}", as_with=as_with)
        self.host = self.host or host
        self.cores = int(cores) if cores else self.cores

    def _split_command(self) -> str:
        return load_yaml("sentences")["commands"]["split_json" if self._is_json else "split_text"]

    def _cpu_pairs(self, object: str, shares: Mapping[str, float], instance: str = "") -> Pairs:
        """Yield the shares of CPU time; none of them if they are not shares of one whole."""
        if abs(sum(shares.values()) - 100) <= _ROUNDED:
            yield from ((_counter(object, name, instance), value) for name, value in shares.items())
        elif shares and instance in ("", "all"):
            self.remark("CPU is not known at times whose shares do not add up to 100 %")


class Sadf(_Sysstat):
    def samples(self, has: Has = lambda _: True) -> Iterator[Sample]:
        self.notes, self.remarks, self.restarts = [], [], []
        known = False
        for sample in self._objects():
            when = _dict(sample.get("timestamp"))
            if not (when.get("date") and when.get("time")):
                continue  # a restart or a comment of an older version
            seconds = when.get("interval")
            if seconds is not None and (not _is_number(seconds) or seconds > _SINCE_START_S):
                continue
            words = str(when.get("tz") or ("UTC" if when.get("utc") else ""))
            if known and words != self.zone_words:
                raise refusal("mixed_zones", self.path, zones=" and ".join(sorted((words, self.zone_words))))
            known, self.zone_words, self.zone = True, words, UTC if words == "UTC" else None
            pairs = ((counter, value) for counter, value in self._pairs(sample) if has(counter))
            yield Sample(f"{when['date']} {when['time']}", pairs, None if seconds is None else float(seconds))

    def _pairs(self, node: dict[str, Any], *path: str, instance: str = "") -> Pairs:
        """Yield every number. In an array the first member of each object names the instance:
        {"disk-device": "sda", "tps": …}."""
        for key, value in node.items():
            if key == "timestamp":
                continue
            if isinstance(value, dict):
                yield from self._pairs(value, *path, key, instance=instance)
            elif _is_number(value) and value < _WRAPPED:
                object, *parts = *path, key
                yield _counter(object if parts else "", " ".join(parts or [key]), instance), float(value)
            for member in _dicts(value):
                (_, name), *rest = member.items()
                if key in CPU_LOADS:
                    yield from self._cpu_pairs(key, _numbers(dict(rest)), str(name))
                else:
                    yield from self._pairs(dict(rest), *path, key, instance=str(name))


@dataclass
class _Report:
    """A report of iostat while it is read."""

    stamp: str = ""
    begins: bool = False
    """It is the first report after a header."""
    headers: set[tuple[str, ...]] = field(default_factory=set)
    cpu: dict[str, float] = field(default_factory=dict)
    devices: dict[str, dict[str, float]] = field(default_factory=dict)
    whole: bool = True
    ended: bool = False
    """An empty line follows its devices."""
    last: str = ""
    """Its last number."""

    def is_like(self, before: "_Report") -> bool:
        """Return True if this report is whole although no empty line follows: it has the headers and devices of the
        report before it, and its last number as many decimals."""
        decimals, decimals_before = (len(text.replace(",", ".").partition(".")[2]) for text in (self.last, before.last))
        has_all = before.headers <= self.headers and before.devices.keys() <= self.devices.keys()
        return has_all and decimals == decimals_before


class Iostat(_Sysstat):
    """A file of iostat. If a schedule of its reports is given, the times in it are ignored."""

    first_since_start = True

    def __init__(self, path: Path, schedule: Schedule | None = None):
        super().__init__(path)
        self.otherwise = f", or give the time of its first report, as in {load_yaml('sentences')['commands']['start']}"
        self._schedule = schedule
        self._is_json = self._has_decimals = head_of(path).lstrip().startswith("{")

    def samples(self, has: Has = lambda _: True) -> Iterator[Sample]:
        self.notes, self.remarks, self.restarts, self.omits_idle = [], [], [], True
        begins, before, end = False, _Report(), _Report()
        place, faults = 0, CounterOf[str]()
        reports = self._reports_of_json() if self._is_json else self._reports_of_text()
        for report, following in pairwise(chain(reports, [end])):
            if self._schedule and place and report.begins:
                raise refusal("several_recordings", self.path, split=self._split_command())
            stamp = self._schedule.stamp(place) if self._schedule else report.stamp
            place, begins = place + 1, begins or report.begins
            # Since the machine was started a few I/Os are 0.00 per second.
            self.omits_idle &= report.begins or not any(map(_is_idle, report.devices.values()))
            is_ended = following is not end or report.ended or report.is_like(before)
            if stamp and report.headers and report.whole and is_ended:
                pairs = ((counter, value) for counter, value in self._pairs(report) if has(counter))
                yield Sample(stamp, pairs, begins=begins)
                begins = False
            else:
                faults["that are cut or damaged" if stamp else "without a time that can be read"] += 1
                begins = True
            before = report
        if place == faults["without a time that can be read"] and (place or not self._is_json):
            raise refusal("no_stamps", self.path)
        if place == faults.total():
            raise refusal("no_report", self.path)
        if not self._has_decimals:
            self.remark("figures are whole numbers, as --dec=0 writes them")
        self.notes += [f"reports {fault}: {count}" for fault, count in faults.items() if count]

    def _reports_of_json(self) -> Iterator[_Report]:
        for sample in self._objects():
            begins, self._begins = self._begins, False
            stamp = sample.get("timestamp")
            devices = {str(disk.get("disk_device", "")): _numbers(disk) for disk in _dicts(sample.get("disk"))}
            cpu = _numbers(sample.get(CPU))
            yield _Report(stamp if isinstance(stamp, str) else "", begins, {(CPU,)}, cpu, devices, ended=True)

    def _reports_of_text(self) -> Iterator[_Report]:
        """Yield the reports: each begins with its time, or with the columns that the one before it had already."""
        report, columns, device, edge = _Report(begins=True), tuple[str, ...](), "", 0
        for line in lines_of(self.path):
            cells = line.split() if not line.startswith("```") else []
            indent = len(line) - len(line.lstrip())
            if (head := HEAD.match(line)) or (self._schedule is None and (is_time(line) or is_epoch(line))):
                if report.headers:
                    yield report
                begins = bool(head) or (not report.headers and report.begins)
                report, columns, device = _Report("" if head else line.strip(), begins), (), ""
                if head:
                    self._note_machine(head["host"] or "", head["cores"])
            elif not cells:
                report.ended |= bool(columns) and columns[0] != "avg-cpu:"
                report.whole &= not device
                columns, device = (), ""
            elif cells[0] in ("avg-cpu:", "Device", "Device:") or cells[-1] == "Device":
                columns, device, edge = tuple(cells), "", indent
                if columns in report.headers:
                    yield report
                    report = _Report()
                report.headers.add(columns)
                report.ended = False
            elif columns and len(cells) == 1 and columns[0] != "avg-cpu:" and not device:
                device = cells[0]  # a long name has a line of its own
            elif columns:
                cells[0] = " " * (indent == edge + 1) + cells[0]  # -g begins the names of groups with a space
                self._add_row(report, columns, [device, *cells] if device else cells)
                device = ""
        report.whole &= not device
        if report.stamp or report.headers:
            yield report

    def _add_row(self, report: _Report, columns: Sequence[str], cells: Sequence[str]) -> None:
        """Add a row. A row that is cut, or has text in place of a number, marks the report as damaged."""
        report.last, values = cells[-1], report.cpu
        self._has_decimals = self._has_decimals or any("." in cell or "," in cell for cell in cells)
        if columns[0] != "avg-cpu:":
            if columns[-1] == "Device":
                columns, cells = (columns[-1], *columns[:-1]), (cells[-1], *cells[:-1])
            values, cells = report.devices.setdefault(cells[0], {}), cells[1:]
        try:
            for name, cell in zip(columns[1:], cells, strict=True):
                kib = _KIB.get(cell[-1], 0.0)  # a number of --human has its own unit
                value = number(cell[:-1] if kib else cell.removesuffix("%"))
                if kib:
                    self.remark("figures are as iostat rounded them for people")
                    kib /= _KIB[next((unit for unit in "MG" if f"{unit}B" in name), "k")]
                if value is not None:
                    values[name.lstrip("%")] = value * (kib or 1.0)
        except ValueError:
            report.whole = False

    def _pairs(self, report: _Report) -> Pairs:
        yield from self._cpu_pairs(CPU, report.cpu)
        for device, values in report.devices.items():
            self._correct_bytes(values)
            for name, value in values.items():
                if 0 <= value < _WRAPPED:
                    yield _counter("", name, device), value
                elif name.endswith("/s"):
                    self.remark(f"{name} of {device} is beyond any device, and not known there")

    def _correct_bytes(self, values: dict[str, float]) -> None:
        """Replace bytes of a device that are in another unit, or rounded more than requests × size, by that product.
        Remove those of an unknown unit."""
        if values.keys() & {"rqm/s", "kB_w+d/s", "MB_w+d/s"}:
            self.remark("reads and writes are not known apart, as -s adds them up: record without it")
        if self._is_json and any(name.endswith("_dscd/s") for name in values):
            self.remark(
                "bytes of JSON without -x are not known, as iostat 12.1.2 to 12.2.0 wrote twice as many: record "
                "`S_TIME_FORMAT=ISO iostat -xdt -o JSON 15`"
            )
            for name in [name for name in values if "_read" in name or "_wrtn" in name]:
                del values[name]
        for side, unit in product("rwd", "kMG" if self._is_json else "MG"):
            if (rate := values.get(name := f"{side}{unit}B/s")) is None:
                continue
            requests, size, kib = values.get(f"{side}/s"), values.get(f"{side}areq-sz"), _KIB[unit]
            if requests is None or size is None:
                if unit != "k":
                    self.remark(f"bytes are rounded to 0.01 {unit}B per second, as iostat writes them")
                continue
            digits = next((digits for digits in (0, 1) if all(round(v, digits) == v for v in values.values())), 2)
            exact, rounded = requests * size / kib, 0.5 * 10.0**-digits * (1 + (requests + size) / kib)
            if self._is_json and rate > _OTHER_UNIT * exact + 2 * rounded:
                values[name] = exact
                self.remark(f"{name} is in sectors, and taken as {side}/s times {side}areq-sz")
            # The smaller share counts that the last digit may be.
            elif unit != "k" and abs(exact - rate) <= rounded and rate * (requests + size) < requests * size:
                values[name] = exact


# The choice of counters for a profile.
#
# sar counts a device's reads and writes together (`tps`), and their `await` together: only their bytes are separate
# (man sar, -d). `sar -b` counts the reads and the writes of all physical disks together, in blocks of 512 bytes.

_OBJECTS = {
    "": "disk",
    "disk": "disk",
    "io": "io",
    CPU: "cpu",
    **dict(zip(CPU_LOADS, ("cpu", "all of cpu"), strict=True)),
}
_MOSTLY = 0.9
_ALMOST, _ROUNDED_BYTES = 0.02, 64.0  # by which the bytes of the same disks may differ: a share, and per second
_ROUND, _NEAR, _SECTOR = 2.0**32, 2.0**24, 512.0
"""A 32-bit counter that falls slightly seems to rise by nearly its whole range (sysstat issue 259)."""


def read(file: Recorded, recording: Recording, wanted: Wanted) -> None:
    """Add a file of iostat or sadf. Raise StallmarkError if it cannot be read."""
    readings = read_samples(file, recording, wanted, _is_used)
    amounts = Amounts(readings, known_parts(readings, "sysstat", _key), recording)
    _forget_wrapped(amounts, recording)
    moved = amounts.bytes_by_device("disk")
    counted = devices.classify(moved, recording, wanted)
    devices.settle_idle(amounts, "disk", counted, recording, omits_idle=file.omits_idle)
    classes: dict[Key, str] = {("disk", name): held for name, held in counted.items()}
    for part in amounts.parts:
        if part.entity[0] == "io":
            recording.devices.add(ALL_DISKS)
            classes[part.entity] = ALL_DISKS
        elif part.column == "idle" and not recording.cores:
            recording.missing["server.cpu_s"] = "the first line of the file lacks the number of processors"
        elif part.column == "idle":
            away = [other.amounts for other in amounts.parts if (other.entity, other.column) == (part.entity, "away")]
            busy = np.maximum(0.0, 100 * amounts.seconds - part.amounts - np.nansum(away, axis=0)) / 100
            part.column, part.amounts = "cpu_s", busy * recording.cores
            classes[part.entity] = "server"
            recording.note("whole_machine")
    amounts.parts = [part for part in amounts.parts if part.column != "away"]
    amounts.add_up(classes)
    devices.note_uncounted(moved, counted, recording, amounts.name)


def _key(counter: Counter) -> Key:
    return _OBJECTS.get(counter.object, ""), counter.counter


def _is_used(counter: Counter) -> bool:
    is_part = counter.object in CPU_LOADS and counter.instance != "all"  # a single processor
    return _key(counter) in known_counters("sysstat") and not is_part


def _forget_wrapped(amounts: Amounts, recording: Recording) -> None:
    """Make devices unknown while one of their counters rose by about its whole range."""
    wrapped: dict[Key, np.ndarray] = {}
    for part in amounts.parts:
        rise = part.amounts / (_SECTOR if part.column.endswith("bytes") else 1)
        wrapped[part.entity] = (np.abs(rise - _ROUND) < _NEAR) | wrapped.get(part.entity, False)
    for part in amounts.parts:
        part.amounts[wrapped[part.entity]] = np.nan
    if names := {name or ALL_DISKS for (_, name), spans in wrapped.items() if spans.any()}:
        recording.note("wrapped", file=amounts.name, names=some_names(names))


def assign_all_disks(
    columns: Mapping[str, np.ndarray], seconds: np.ndarray, recording: Recording, wanted: Wanted
) -> dict[str, np.ndarray]:
    """Return the columns with the sums over all disks (-b) as those of their common class, or without them if not all
    disks have one class, as they cannot be divided.

    Raise StallmarkError if the choice of disks is ambiguous without them. Only these sums separate reads from writes,
    so without them the I/Os of a machine with one disk would be unknown.
    """
    choice = devices.choose_disks(recording.devices - {ALL_DISKS})
    if choice.doubtful and not wanted.classes and ALL_DISKS not in recording.devices:
        kind = "numbered_disks" if any(map(NUMBERED.match, choice.doubtful)) else "stacked_disks"
        raise refusal(kind, names=some_names(choice.doubtful), first=min(choice.doubtful).strip())
    result = {name: values for name, values in columns.items() if not name.startswith(ALL_DISKS)}
    of_all = {name: columns[f"{ALL_DISKS}.{name}"] for name in IO if f"{ALL_DISKS}.{name}" in columns}
    disks = {canonical(name) for name in choice.counted | choice.doubtful}
    given = {canonical(name): held for name, held in wanted.classes.items()}
    classes = {given.get(name) for name in disks} if given else {FileClass.DEVICE}
    held = classes.pop() if len(classes) == 1 and given.keys() <= disks else None
    if held is None:
        if of_all:
            recording.note("undivided")
        return result
    unknown = np.full(len(seconds), np.nan)
    own = {name: result.get(f"{held}.{name}", unknown) for name in of_all}
    counts = np.ones(len(seconds), dtype=bool)
    if given or not choice.doubtful:
        # sar counts paths of NVMe as disks, and none of the network; while a disk is removed it writes 0.
        for name in of_all.keys() & {"read_bytes", "write_bytes"}:
            rounded = _ALMOST * np.fmax(own[name], of_all[name]) + _ROUNDED_BYTES * seconds
            counts &= ~(np.abs(own[name] - of_all[name]) > rounded)
        if not counts.all():
            recording.note("other_disks", counted=some_names(choice.counted))
            # The rest is of times at which the other disks were idle.
            counts &= counts.mean() > _MOSTLY
    for name, values in of_all.items():
        result[f"{held}.{name}"] = np.where(counts & np.isfinite(values), values, own[name])
    return result
