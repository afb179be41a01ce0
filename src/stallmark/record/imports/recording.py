"""The contents of the files of an import: counts over spans of time, and the machine with its devices."""

import re
from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np

from stallmark.errors import StallmarkError
from stallmark.record.formats.dates import Clock, find_order, find_zone
from stallmark.record.formats.sample import Recorded
from stallmark.record.profile.intervals import IO, SERVER, STATES, FileClass

# The contents of the files of an import: counts and states over spans of time, and what is known of the machine.

WHOLE_MACHINE = "CPU time is that of the whole machine."
MOST_SPANS = 1_000_000
"""Eleven days of a sample every second: about a GB of memory."""
COUNTS = tuple(name for name in SERVER.names[2:] if name not in STATES)
_ROUNDED_S = 2.0
_NAMED = 8  # in a sentence


@dataclass(frozen=True)
class Wanted:
    """The options of an import. `classes`: what a device holds, by its name; `zone`: of local times; `names`: our names
    of the series of a CSV, by their own."""

    classes: Mapping[str, FileClass] = field(default_factory=dict)
    zone: str | None = None
    dates: Literal["month-first", "day-first"] | None = None
    names: Mapping[str, str] = field(default_factory=dict)


class Spans:
    """Rows of numbers, each over a span of time in seconds since 1970; NaN where a row does not have a column."""

    def __init__(self) -> None:
        self.start, self.end = array("d"), array("d")
        self.columns: dict[str, array] = {}

    def __len__(self) -> int:
        return len(self.end)

    def add(self, start: float, end: float, values: Mapping[str, float]) -> None:
        """Add a row. Raise StallmarkError where there are too many to be held."""
        if len(self) >= MOST_SPANS:
            raise StallmarkError(
                f"There are more than {MOST_SPANS:,} samples: import a part of the time, or what has longer intervals."
            )
        for name in values.keys() - self.columns.keys():
            self.columns[name] = array("d", [np.nan]) * len(self)
        self.start.append(start)
        self.end.append(end)
        for name, column in self.columns.items():
            column.append(values.get(name, np.nan))


@dataclass
class Recording:
    """All that was read of the files so far. Columns of `spans` are named "data.reads" or "server.cpu_s"."""

    spans: Spans = field(default_factory=Spans)
    host: str | None = None
    engine: Literal["mssql", "postgresql"] | None = None
    cores: int | None = None
    restarts: list[float] = field(default_factory=list)
    clock_set: list[float] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    devices: set[str] = field(default_factory=set)
    """The names of all devices that were seen."""
    mapped: set[str] = field(default_factory=set)
    """The names given with classes that were found."""

    def add_rates(self, start: float, end: float, rates: Mapping[str, float | None]) -> None:
        """Add rates per second as counts, and states as they are. What is None is not known."""
        seconds = end - start
        known = {name: value for name, value in rates.items() if value is not None}
        self.spans.add(
            start,
            end,
            {
                name: value if name.partition(".")[2] in STATES else value * seconds
                for name, value in known.items()
                if np.isfinite(value)
            },
        )

    def clock(self, file: Recorded, wanted: Wanted) -> Clock:
        """Return the clock of a file. A zone that was given is stronger than that of a file, but for UTC."""
        order = file.order or find_order(file.path, file.stamps(), wanted.dates)
        asked = find_zone(wanted.zone) if wanted.zone else None
        return Clock(file.path, order, file.zone if file.zone_words == "UTC" else asked or file.zone, self.note)

    def take_facts(self, file: Recorded) -> None:
        """Take from a file that was read what it says of its machine, and what was left out of it."""
        self.host = self.host or file.host or None
        self.cores = file.cores or self.cores
        for note in file.notes:
            self.note(f"{file.path.name}: left out: {note}.")

    def note(self, sentence: str) -> None:
        if sentence not in self.notes:
            self.notes.append(sentence)


class Steps:
    """The spans between samples of one file, each from the sample before it, or as long as it states. What is no step
    forward is counted, and noted by `tell`."""

    def __init__(self, path: Path, recording: Recording):
        self._path, self._recording = path, recording
        self._before: float | None = None
        self._same = 0
        self._back: list[tuple[float, float]] = []

    def begin_anew(self) -> None:
        """Forget the last sample: what comes next covers a time that is not known."""
        self._before = None

    def span_to(self, end: float, seconds: float | None = None) -> tuple[float, float] | None:
        """Return the span that ends now; None for a first sample, and for one that is not after the one before it.

        `seconds` are whole ones: a span that ends within 2 s of the sample before begins with it.
        """
        before, self._before = self._before, end
        if seconds is not None:
            near = before is not None and before < end and abs(end - before - seconds) <= _ROUNDED_S
            begin = before if near and before is not None else end - seconds
            return (begin, end) if seconds > 0 else None
        if before is None:
            return None
        if end > before:
            return before, end
        if end == before:
            self._same += 1
        else:
            self._back.append((end, before - end))
            self._recording.clock_set.append(end)
        return None

    def tell(self) -> None:
        """Note times that go back or stand still."""
        if self._same:
            self._recording.note(f"{self._path.name}: {_samples(self._same)} of the time of the one before: left out.")
        if self._back:
            seconds = max(by for _, by in self._back)
            times = "once" if len(self._back) == 1 else f"{len(self._back)} times"
            self._recording.note(
                f"{self._path.name}: its times go back {times}, by up to {seconds:.0f} s. The clock was set, or the "
                "rows are out of order; a time that was there already counts once."
            )


def some_names(names: Iterable[str]) -> str:
    """Return the first names in their order, for a sentence."""
    ordered = sorted(set(names))
    return ", ".join(ordered[:_NAMED]) + (", …" if len(ordered) > _NAMED else "")


def _samples(count: int) -> str:
    return "1 sample is" if count == 1 else f"{count} samples are"


# The devices of a Linux machine that a profile counts, and what they hold.
#
# Where it is said what devices hold, those count and no others. Otherwise all whole disks count together: partitions,
# device-mapper and RAID devices would count their disks' I/O twice.

Io = Mapping[str, float | None]
MOST_DEVICES = 2_000
ALL_DISKS = "all disks"
"""The name under which a tool sums up the disks of a machine."""

# sysstat without -p writes dev8-0: major 8 and 65 to 71 are SCSI disks, 259 is NVMe.
_WHOLE = re.compile(
    r"(sd|vd|xvd|hd)[a-z]+|nvme\d+(c\d+)?n\d+|mmcblk\d+|dasd[a-z]+|(cciss|ida)/c\d+d\d+|dev(8|6[5-9]|7[01]|259)-\d+"
)
_NVME_PATH = re.compile(r"(nvme\d+)c\d+(n\d+)")
_NO_DISK = re.compile(r"(loop|ram|zram|sr|fd|nbd)\d+|dev(1|2|7|11)-\d+")
NUMBERED = re.compile(r"dev\d+-\d+$")
_PARTITION = re.compile(r"((?:sd|vd|xvd|hd|dasd)[a-z]+|nvme\d+n\d+|mmcblk\d+|(?:cciss|ida)/c\d+d\d+)p?\d+")


def canonical(name: str) -> str:
    """Return the name of a device as it is compared: sda for /dev/sda, d: for D:\\."""
    return name.lower().removeprefix("/dev/").rstrip("\\")


def whole_disks(names: Iterable[str]) -> set[str]:
    """Return the disks among devices: those known as whole ones, or else whatever may be one."""
    names = set(names)
    whole = {name for name in names if _WHOLE.fullmatch(name) and not _is_path(name, names)}
    # A virtual machine may have partitions without their disk, as xvda1.
    whole |= {name for name in names if (part := _PARTITION.fullmatch(name)) and not _has_disk(part[1], names)}
    return whole or {name for name in names if not _NO_DISK.fullmatch(name) and not _PARTITION.fullmatch(name)}


def _is_path(name: str, names: set[str]) -> bool:
    """Return whether a device is one of several paths to an NVMe disk that is there as well."""
    path = _NVME_PATH.fullmatch(name)
    return path is not None and f"{path[1]}{path[2]}" in names


def _has_disk(disk: str, names: set[str]) -> bool:
    return disk in names or disk.removesuffix("p") in names


def device_io(values: Mapping[str, float], counters: Mapping[str, tuple[str, float]]) -> dict[str, float]:
    """Return the rates of a device by our columns, from the `counters` that are known: column and factor of each.

    The time of reads is their mean, `read_ms`, for each of them.
    """
    io: dict[str, float] = {}
    for theirs, (ours, factor) in counters.items():
        if (value := values.get(theirs)) is not None and value >= 0:
            io.setdefault(ours, value * factor)
    for side in ("read", "write"):
        mean = io.pop(f"{side}_ms", None)
        if mean is not None and f"{side}s" in io:
            io[f"{side}_stall_ms"] = mean * io[f"{side}s"]
    return io


def add_io(rates: dict[str, float | None], held: FileClass, io: Io) -> None:
    """Add the rates of a device to those of its class: None where a device's is not known."""
    for name in IO:
        key, part = f"{held}.{name}", io.get(name)
        so_far = rates.get(key, 0.0)
        rates[key] = None if part is None or so_far is None else so_far + part


class Devices:
    """The devices of one file. A tool that leaves idle devices out writes no row of zeros: then one that is missing
    did nothing; otherwise what it did is not known. `counted`: the devices that count, and what they hold."""

    def __init__(self, recording: Recording, wanted: Wanted):
        self._recording, self._wanted = recording, wanted
        self._given = {canonical(name): (name, held) for name, held in wanted.classes.items()}
        self.counted: dict[str, FileClass] = {}
        self._left_out: set[str] = set()
        self._seen: set[str] = set()
        self._zeros = False
        self._doubtful: list[tuple[int, frozenset[FileClass]]] = []

    def meet(self, names: Iterable[str]) -> None:
        """Note which devices there are. Raise StallmarkError for more than a machine can have."""
        new = dict.fromkeys(name for name in names if name not in self._seen)
        if not new:
            return
        self._seen |= new.keys()
        self._recording.devices |= new.keys()
        if len(self._seen) > MOST_DEVICES:
            raise StallmarkError(f"There are over {MOST_DEVICES:,} devices: the file is damaged, or of many machines.")
        if self._given:
            for name in new:
                self._look_up(name)
            return
        self.counted = dict.fromkeys(sorted(whole_disks(self._seen)), FileClass.DEVICE)
        self._left_out = self._seen - self.counted.keys()

    def fold(self, present: Mapping[str, Io]) -> dict[str, float | None]:
        """Return the rates of each class: the sums over its devices. None where a device's is not known. They are the
        next row of the recording."""
        self.meet(present)
        found: dict[str, float | None] = {}
        for name, held in self.counted.items():
            io = present.get(name)
            if io is None:
                continue
            known = [value for value in io.values() if value is not None]
            self._zeros |= bool(known) and not any(known)
            add_io(found, held, io)
        absent = frozenset(held for name, held in self.counted.items() if name not in present)
        if absent:
            for held in absent:
                for column in IO:
                    found.setdefault(f"{held}.{column}", 0.0)
            self._doubtful.append((len(self._recording.spans), absent))
        return found

    def finish(self, name: str) -> None:
        """Take back what was summed without a device, unless the tool leaves out idle ones; note what was left out."""
        if self._doubtful and self._zeros:
            for row, classes in self._doubtful:
                for key, column in self._recording.spans.columns.items():
                    if row < len(column) and key.partition(".")[0] in classes:
                        column[row] = float("nan")
            self._recording.note(
                f"{name}: a device was missing in {len(self._doubtful)} samples; what its class did there is not known."
            )
        elif self._doubtful:
            self._recording.note(f"{name}: devices without I/O were left out in it; they count as 0 there.")
        if self._left_out:
            self._recording.note(f"{name}: not counted are {some_names(self._left_out)}.")

    def _look_up(self, name: str) -> None:
        """Count a device for what it was said to hold."""
        if (given := self._given.get(canonical(name))) is not None:
            self._recording.mapped.add(given[0])
            self.counted[name] = given[1]
        else:
            self._left_out.add(name)
