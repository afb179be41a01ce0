"""sysstat: `iostat -xt N` as text and as JSON, and JSON of `sadf -j FILE -- -d -p -u -b`.

A time stands at the end of its interval. A kB is 1,024 bytes. iostat's times are local ones in the style of the locale,
or ISO 8601 with S_TIME_FORMAT=ISO; the offset is only in the latter. Its first report may cover all the time since the
machine was started; nothing says so. Versions before 10.1 have one `await` for reads and writes. sadf's times are UTC
unless it was run with -T or -t: newer versions name the zone ("tz"), older ones say whether it is UTC ("utc": 1). Every
sample of it states its seconds, and restarts stand behind the samples.

Faults of sysstat: a counter that wrapped is written as 2^63 (issue 312); wMB/s is wrong in the JSON of some versions
(264); the array may begin with a comma (163, 222) and end anywhere if its writer was killed (253).
"""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC
from functools import lru_cache
from itertools import chain
from typing import Any, TypeGuard

from stallmark.errors import StallmarkError
from stallmark.record.formats.dates import is_time
from stallmark.record.formats.sample import Counter, Has, JsonArray, Recorded, Sample, head_of, lines_of, number

JSON = re.compile(r'\s*\{\s*"sysstat"')
SADF = re.compile(r'"timestamp"\s*:\s*\{|"sysdata-version"|"file-date"')
HEAD = re.compile(r"\s*Linux \S+\s+(?:\((?P<host>[^)\s]*)\)\s+)?\S+(?:.*?\((?P<cores>\d+) CPU\))?")
REPORT = re.compile(r"^(avg-cpu:|Device)", re.M)
CPU = "avg-cpu"
"""The object of iostat's CPU times; its devices have none."""
_ARRAY = re.compile(r'"statistics"\s*:\s*\[')
_NODE = re.compile(r'"nodename"\s*:\s*"((?:[^"\\]|\\.)*)"')
_CORES = re.compile(r'"number-of-cpus"\s*:\s*(\d+)')
_BOOT = re.compile(r'"boot"\s*:\s*\{\s*"date"\s*:\s*"([^"]*)"\s*,\s*"time"\s*:\s*"([^"]*)"\s*(?:,\s*"utc"\s*:\s*(\d))?')
_AS_TEXT, _AS_JSON = "`S_TIME_FORMAT=ISO iostat -xt 15`", "`S_TIME_FORMAT=ISO iostat -xdt -o JSON 15`"
_WRAPPED = 2.0**50  # kibibytes or requests per second: beyond any device
_SINCE_START_S = 10**8  # more than three years: what old versions of sadf write for an interval they do not know
_UNITS = {
    "rkB/s": "KiB/s", "wkB/s": "KiB/s", "dkB/s": "KiB/s", "kB_read/s": "KiB/s", "kB_wrtn/s": "KiB/s",
    "rMB/s": "MiB/s", "wMB/s": "MiB/s", "dMB/s": "MiB/s", "MB_read/s": "MiB/s", "MB_wrtn/s": "MiB/s",
    "r_await": "ms", "w_await": "ms", "d_await": "ms", "f_await": "ms", "await": "ms", "svctm": "ms",
    "rareq-sz": "KiB", "wareq-sz": "KiB", "dareq-sz": "KiB",
    "rrqm": "%", "wrqm": "%", "drqm": "%", "util": "%", "tps": "1/s",
    "disk tps": "1/s", "disk rkB": "KiB/s", "disk wkB": "KiB/s", "disk dkB": "KiB/s", "disk await": "ms",
    "disk areq-sz": "KiB", "disk util-percent": "%", "io tps": "1/s", "io io-reads rtps": "1/s",
    "io io-writes wtps": "1/s",
}  # fmt: skip


@lru_cache(1 << 16)
def _counter(object: str, counter: str, instance: str) -> Counter:
    label = f"{object} {counter}".strip()
    unit = _UNITS.get(label) or ("%" if object in (CPU, "cpu-load") else "1/s" if counter.endswith("/s") else "")
    return Counter(f"{instance} {label}".strip(), object, counter, instance, unit)


@lru_cache(1 << 14)
def _counters(columns: tuple[str, ...], instance: str) -> list[Counter]:
    """Return the counters of a row in the text of iostat."""
    object = CPU if columns[0] == "avg-cpu:" else ""
    return [_counter(object, name.lstrip("%"), instance) for name in columns[1:]]


def _is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _dicts(value: object) -> list[dict[str, Any]]:
    return [member for member in value if isinstance(member, dict) and member] if isinstance(value, list) else []


class _Json(Recorded):
    """One host, and an array of samples, read one by one because the whole may be invalid JSON."""

    def _objects(self) -> Iterator[dict[str, Any]]:
        """Yield the complete objects of the array; raise StallmarkError if there is no such array."""
        self.notes, self.restarts = [], []
        head = head_of(self.path, 4096)
        if node := _NODE.search(head):
            self.host = node[1]
        if cores := _CORES.search(head):
            self.cores = int(cores[1])
        array = JsonArray(self.path, _ARRAY)
        yield from array
        if not array.whole:
            self.notes.append("the last report, which is cut")
        if _ARRAY.search(array.rest):
            raise StallmarkError(f"{self.path} holds several recordings in a row: give each a file of its own.")
        self.restarts = [f"{date} {time}{' UTC' * (utc == '1')}" for date, time, utc in _BOOT.findall(array.rest)]


class IostatJson(_Json):
    first_since_start = True

    def samples(self, has: Has = lambda _: True) -> Iterator[Sample]:
        for place, sample in enumerate(self._objects()):
            if not isinstance(stamp := sample.get("timestamp"), str):
                raise StallmarkError(f"{self.path} has no times: run iostat with -t, as in {_AS_JSON}.")
            pairs = ((counter, value) for counter, value in self._values(sample) if has(counter))
            yield Sample(stamp, pairs, begins=place == 0)

    def _values(self, sample: dict[str, Any]) -> Iterator[tuple[Counter, float]]:
        for cpu in _dicts([sample.get(CPU)]):
            for name, value in cpu.items():
                if _is_number(value):
                    yield _counter(CPU, name, ""), float(value)
        for disk in _dicts(sample.get("disk")):
            device = str(disk.get("disk_device", ""))
            for name, value in disk.items():
                if _is_number(value) and value < _WRAPPED and not self._is_wrong(disk, name):
                    yield _counter("", name, device), float(value)

    def _is_wrong(self, disk: dict[str, Any], name: str) -> bool:
        """Return whether a rate of MB is not that of the requests and their size, in the same report."""
        if name not in ("rMB/s", "wMB/s", "dMB/s"):
            return False
        requests, size_kib = disk.get(f"{name[0]}/s"), disk.get(f"{name[0]}areq-sz")
        wrong = _is_number(requests) and _is_number(size_kib) and disk[name] > 2 * requests * size_kib / 1024 + 0.1
        note = f"{name}, which this version of iostat writes in another unit: leave -m out"
        if wrong and note not in self.notes:
            self.notes.append(note)
        return wrong


class Sadf(_Json):
    def samples(self, has: Has = lambda _: True) -> Iterator[Sample]:
        known = False
        for sample in self._objects():
            when = sample.get("timestamp")
            if not isinstance(when, dict) or not (when.get("date") and when.get("time")):
                continue  # a restart or a comment of an older version
            seconds = when.get("interval") or 0
            if not _is_number(seconds) or seconds > _SINCE_START_S:
                continue
            words = str(when.get("tz") or ("UTC" if when.get("utc") else ""))
            if known and words != self.zone_words:
                zones = " and ".join(sorted((words, self.zone_words)))
                raise StallmarkError(f"{self.path} mixes times of {zones}: write it anew.")
            known, self.zone_words, self.zone = True, words, UTC if words == "UTC" else None
            pairs = ((counter, value) for counter, value in self._values(sample) if has(counter))
            yield Sample(f"{when['date']} {when['time']}", pairs, float(seconds))

    def _values(self, node: dict[str, Any], *path: str, instance: str = "") -> Iterator[tuple[Counter, float]]:
        """Yield every number. In an array the first member of each object names the instance:
        {"disk-device": "sda", "tps": …}."""
        for key, value in node.items():
            if key == "timestamp":
                continue
            if isinstance(value, dict):
                yield from self._values(value, *path, key, instance=instance)
            elif isinstance(value, list):
                for member in _dicts(value):
                    (_, name), *rest = member.items()
                    yield from self._values(dict(rest), *path, key, instance=str(name))
            elif _is_number(value):
                object, *parts = *path, key
                yield _counter(object if parts else "", " ".join(parts or [key]), instance), float(value)


class IostatText(Recorded):
    first_since_start = True

    def samples(self, has: Has = lambda _: True) -> Iterator[Sample]:
        begins, cut, seen = True, 0, False
        report, columns, device = _Report(), list[str](), ""
        for line in chain(lines_of(self.path), [None]):
            head = HEAD.match(line) if line else None
            if line is None or head or is_time(line):
                # A report ends with an empty line behind its devices; the last one may be cut.
                report.whole &= not device and (line is not None or (not columns and report.has_disks))
                if report.stamp and report.whole:
                    yield Sample(report.stamp, [pair for pair in report.values if has(pair[0])], begins=begins)
                seen |= bool(report.stamp)
                cut += bool(report.stamp) and not report.whole
                begins = bool(head) or not report.whole or (begins and not report.stamp)
                report, columns, device = _Report("" if line is None or head else line), [], ""
                if head:
                    self._take_header(head)
            elif not (cells := line.split()):
                columns = []
            elif cells[0] in ("avg-cpu:", "Device", "Device:"):
                columns = cells
                report.has_disks |= cells[0] != "avg-cpu:"
            elif cells[-1] == "Device":
                raise StallmarkError(f"{self.path} is of iostat -h, which rounds: leave -h out, as in {_AS_TEXT}.")
            elif columns and len(cells) == 1 and columns[0] != "avg-cpu:" and not device:
                device = cells[0]  # a long name has a line of its own
            elif columns:
                report.take(columns, [device, *cells] if device else cells)
                device = ""
        if not seen:
            raise StallmarkError(f"{self.path} has no times that can be read: run iostat with -t, as in {_AS_TEXT}.")
        self.notes = [f"reports that are cut or damaged: {cut}"] if cut else []

    def _take_header(self, head: re.Match[str]) -> None:
        if self.host and head["host"] and self.host.lower() != head["host"].lower():
            raise StallmarkError(f"{self.path} is of {self.host} and {head['host']}: give each a file of its own.")
        self.host = self.host or head["host"] or ""
        self.cores = int(head["cores"]) if head["cores"] else self.cores


@dataclass
class _Report:
    """A report of iostat while it is read."""

    stamp: str = ""
    values: list[tuple[Counter, float]] = field(default_factory=list)
    whole: bool = True
    has_disks: bool = False

    def take(self, columns: Sequence[str], cells: Sequence[str]) -> None:
        """Take a row; one that is cut, or has text in place of a number, makes the report a damaged one."""
        cells = ["", *cells] if columns[0] == "avg-cpu:" else cells
        try:
            for counter, cell in zip(_counters(tuple(columns), cells[0]), cells[1:], strict=True):
                if (value := number(cell)) is not None and value < _WRAPPED:
                    self.values.append((counter, value))
        except ValueError:
            self.whole = False
