"""The devices of a Linux machine that a profile counts, and their classes. If classes of devices are given, only those
devices count. Otherwise all disks count together, and each I/O once: not again for a partition, for LVM or RAID on the
disk, or for one of its paths."""

import json
import re
from collections.abc import Iterable, Mapping
from importlib import resources
from typing import Literal, NamedTuple

from stallmark.errors import StallmarkError
from stallmark.record.imports.recording import Recording, Wanted, some_names
from stallmark.record.profile.interval_table import IO, FileClass

Io = Mapping[str, float | None]
MOST_DEVICES = 2_000
ALL_DISKS = "all disks"
"""The name of a tool's sums over all disks of a machine."""
Role = Literal["disk", "partition", "path", "upper", "none", "unknown"]


class Kind(NamedTuple):
    """The devices of one kind by their names, or by the numbers that sysstat writes without -p."""

    role: Role
    pattern: re.Pattern[str]
    source: str
    """The file of Linux, or of the driver, with the names."""
    minors: int = 1
    """The minor numbers of one disk with its partitions."""


KINDS = [
    Kind(**(row | {"pattern": re.compile(row["pattern"])}))
    for row in json.loads((resources.files(__package__) / "device_kinds.json").read_text())
]
"""The first match counts. Majors 234 to 254 are assigned as drivers are loaded, so LVM and virtual disks may swap them;
259 has partitions too."""
_PATH = next(kind.pattern for kind in KINDS if kind.role == "path")
NUMBERED = re.compile(r"dev\d+-\d+$")
_EXTENDED = 259
_PART_MINORS = 16  # minor numbers per virtual disk, by virtio_blk.c


class Choice(NamedTuple):
    """The counted devices."""

    counted: frozenset[str]
    doubtful: frozenset[str]
    """Devices that may be the counted disks, or be stacked on them."""


def choose_disks(names: Iterable[str]) -> Choice:
    """Return the disks or, without any, the devices that may be disks."""
    names = frozenset(names)
    plain = frozenset(map(_plain, names))
    roles = {name: role_of(_plain(name), plain) for name in names}
    by_role = {role: frozenset(name for name in names if roles[name] == role) for role in set(roles.values())}
    disks, uppers, unknown = (by_role.get(role, frozenset()) for role in ("disk", "upper", "unknown"))
    numbered = frozenset(name for name in unknown if NUMBERED.match(name))
    named = unknown - numbered
    # Numbers without names, but nothing they could be stacked on.
    if numbered and not (disks or uppers) and _are_disks(numbered):
        return Choice(numbered, frozenset())
    if disks or named:
        return Choice(disks or named, numbered)
    # A single stacked device counts each I/O once.
    if len(uppers) == 1 and not numbered:
        return Choice(uppers, frozenset())
    return Choice(uppers | numbered, uppers | numbered)


def _are_disks(numbered: frozenset[str]) -> bool:
    """Return whether numbered devices can only be disks: no other devices exist, and none has the number of a
    partition."""
    pairs = [tuple(map(int, name.removeprefix("dev").split("-"))) for name in numbered]
    majors = {major for major, _ in pairs}
    return len(pairs) == 1 or (
        len(majors) == 1 and _EXTENDED not in majors and all(minor % _PART_MINORS == 0 for _, minor in pairs)
    )


def role_of(name: str, names: frozenset[str]) -> Role:
    """Return the role of a device among others. A virtual machine may have partitions without their disk, as xvda1:
    they count as disks."""
    for kind in KINDS:
        if (match := kind.pattern.fullmatch(name)) is None:
            continue
        parts = match.groupdict()
        if kind.role == "path":
            return "path" if parts["head"] + parts["space"] in names else "disk"
        if kind.role != "disk":
            return kind.role
        if disk := parts.get("disk"):
            disks = {disk, disk.removesuffix("p")} if disk.startswith("xvd") else {disk}
        else:
            major, minor = name.removeprefix("dev").split("-")
            disks = {f"dev{major}-{int(minor) - int(minor) % kind.minors}"}
        by_path = name.startswith("nvme") and not disks.isdisjoint(map(_head, names))
        return "disk" if name in disks or not (disks & names or by_path) else "partition"
    return "unknown"


def _plain(name: str) -> str:
    """Return the name without the folder that old versions of iostat write in front of it."""
    return name.removeprefix("/dev/")


def canonical(name: str) -> str:
    """Return the name of a device in a comparable form: sda for /dev/sda, d: for D:\\."""
    return _plain(name.lower()).rstrip("\\")


def device_io(values: Mapping[str, float], counters: Mapping[str, tuple[str, float]]) -> dict[str, float]:
    """Return the rates of a device by our columns, from the known `counters`, which give the column and factor of each.

    The time of reads is their mean, `read_ms`, times their number.
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
    """Add the rates of a device to those of its class: None if a device's rate is unknown."""
    for name in IO:
        key, part = f"{held}.{name}", io.get(name)
        so_far = rates.get(key, 0.0)
        rates[key] = None if part is None or so_far is None else so_far + part


class Devices:
    """The devices of one file.

    A tool that omits idle devices writes no row of zeros: then a missing device was idle. Otherwise its I/O is unknown,
    unless it never comes back.
    """

    def __init__(self, recording: Recording, wanted: Wanted):
        self._recording = recording
        self._given = {canonical(name): (name, held) for name, held in wanted.classes.items()}
        self._classes = frozenset(wanted.classes.values()) or frozenset({FileClass.DEVICE})
        self.counted: dict[str, FileClass] = {}
        self._seen: dict[str, None] = {}
        self._last: dict[str, int] = {}
        self._zeros = False
        self._lacking: list[tuple[int, frozenset[str]]] = []
        self._quiet: list[tuple[int, frozenset[FileClass]]] = []

    def meet(self, names: Iterable[str]) -> None:
        """Note the devices of a sample. Raise StallmarkError for more than a machine can have."""
        if not (new := [name for name in names if name not in self._seen]):
            return
        self._seen |= dict.fromkeys(new)
        self._recording.devices |= set(new)
        if len(self._seen) > MOST_DEVICES:
            raise StallmarkError(f"The file has over {MOST_DEVICES:,} devices: it is damaged, or of many machines.")
        if self._given:
            given = {name: self._given[canonical(name)] for name in new if canonical(name) in self._given}
            self._recording.mapped |= {own for own, _ in given.values()}
            self.counted |= {name: held for name, (_, held) in given.items()}
        else:
            self.counted = dict.fromkeys(sorted(choose_disks(self._seen).counted), FileClass.DEVICE)

    def fold(self, present: Mapping[str, Io]) -> dict[str, float | None]:
        """Return the rates of each class: the sums over its devices, or None if a device's rate is unknown. They are
        the next row of the recording."""
        self.meet(present)
        rates: dict[str, float | None] = {}
        row, lacking, met = len(self._recording.spans), set(), set()
        for name, held in self.counted.items():
            parts = [present[name]] if name in present else []
            if not parts or is_idle(parts[0]):
                # Before Linux 6.5 the paths of an NVMe disk count its I/O, and the disk itself nothing.
                parts = [io for path, io in present.items() if _head(path) == name] or parts
            if not parts:
                lacking.add(name)
                continue
            met.add(held)
            self._last[name] = row
            self._zeros |= name in present and is_idle(present[name])
            for io in parts:
                add_io(rates, held, io)
        if lacking:
            self._lacking.append((row, frozenset(lacking)))
        if quiet := self._classes - met:
            self._quiet.append((row, quiet))
        return rates

    def finish(self, name: str) -> None:
        """Count omitted devices as idle if the tool omits idle ones; otherwise withdraw the sums without a device that
        comes back. Note omitted devices."""
        if self._zeros:
            self._withdraw_incomplete(name)
        elif self.counted and (self._lacking or self._quiet):
            for row, classes in self._quiet:
                self._set(row, classes & set(self.counted.values()), 0.0)
            self._recording.note(f"{name}: devices without I/O were left out in it; they count as 0 there.")
        names = frozenset(self._seen)
        left_out: dict[str, list[str]] = {}
        for device in sorted(names - self.counted.keys()):
            left_out.setdefault(_WORDS[role_of(_plain(device), frozenset(map(_plain, names)))], []).append(device)
        if left_out:
            parts = [f"{some_names(devices)}{words}" for words, devices in left_out.items()]
            self._recording.note(f"{name}: not counted are {'; '.join(parts)}.")

    def _withdraw_incomplete(self, name: str) -> None:
        missing = [
            (row, frozenset(self.counted[device] for device in devices if self._last.get(device, -1) > row))
            for row, devices in self._lacking
        ]
        unknown = [(row, classes) for row, classes in missing if classes]
        for row, classes in unknown:
            self._set(row, classes, float("nan"))
        if unknown:
            self._recording.note(
                f"{name}: what a class did is not known in samples that lack one of its devices: {len(unknown)}."
            )
        at_end = self._lacking[-1] if self._lacking else (0, frozenset[str]())
        if gone := {device for device in at_end[1] if self._last.get(device, -1) < at_end[0]}:
            self._recording.note(
                f"{name}: from some time on it has no more of {some_names(gone)}; it counts as 0 there."
            )

    def _set(self, row: int, classes: frozenset[FileClass], value: float) -> None:
        for key, column in self._recording.spans.columns.items():
            if row < len(column) and key.partition(".")[0] in classes:
                column[row] = value


_WORDS: Mapping[Role, str] = {
    "disk": "", "unknown": " (of a kind that is not known)", "partition": " (on the disks)",
    "path": " (paths to the disks)", "upper": " (on other devices)", "none": " (no disks)",
}  # fmt: skip


def is_idle(io: Io) -> bool:
    """Return whether all known rates of a device are zero."""
    known = [value for value in io.values() if value is not None]
    return bool(known) and not any(known)


def _head(path: str) -> str | None:
    """Return the disk behind a path of NVMe."""
    match = _PATH.fullmatch(path)
    return match["head"] + match["space"] if match else None
