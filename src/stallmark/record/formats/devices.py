"""The devices of a Linux machine that a profile counts, and their classes. If classes of devices are given, only those
devices count. Otherwise all disks count together, and each I/O once: not again for a partition, for LVM or RAID on the
disk, or for one of its paths."""

import json
import re
from collections.abc import Collection, Iterable, Mapping
from importlib import resources
from typing import Literal, NamedTuple

import numpy as np

from stallmark.record.formats.amounts import Amounts, Part, Recording, Wanted, some_names
from stallmark.record.formats.sample import refusal
from stallmark.record.profile import FileClass

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
_BEYOND = 1.5  # caches and compression of a stacked device may hide some of its bytes from the disks
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
        by_path = name.startswith("nvme") and not disks.isdisjoint(map(head_of_path, names))
        return "disk" if name in disks or not (disks & names or by_path) else "partition"
    return "unknown"


def _plain(name: str) -> str:
    """Return the name without the folder that old versions of iostat write in front of it."""
    return name.removeprefix("/dev/")


def canonical(name: str) -> str:
    """Return the name of a device in a comparable form: sda for /dev/sda, d: for D:\\."""
    return _plain(name.lower().strip()).rstrip("\\")


def classify(moved: Mapping[str, float], recording: Recording, wanted: Wanted) -> dict[str, FileClass]:
    """Return the classes of the devices that count, of those that `moved` bytes: the given ones, or those of all disks.

    Raise StallmarkError for more devices than a machine can have, or for one of an unknown kind that may be a disk.
    """
    names = moved.keys()
    recording.devices |= names
    if len(names) > MOST_DEVICES:
        raise refusal("many_devices", most=MOST_DEVICES)
    if not wanted.classes:
        counted = choose_disks(names).counted
        roles = {name: role_of(_plain(name), frozenset()) for name in names - counted if not NUMBERED.match(name)}
        others = [name for name, role in roles.items() if role in ("unknown", "upper")]
        by_path: dict[str | None, float] = {}  # before Linux 6.5 these count, and the disk nothing
        for name in names:
            by_path[head_of_path(name)] = by_path.get(head_of_path(name), 0.0) + moved[name]
        busiest = max(others, key=lambda name: moved[name], default="")
        # With fewer bytes it may be stacked on the disks, and would count twice.
        if busiest and moved[busiest] > _BEYOND * sum(max(moved[disk], by_path.get(disk, 0.0)) for disk in counted):
            raise refusal(
                "busy_device", device=busiest.strip(), reason=_WORDS[roles[busiest]], counted=some_names(counted)
            )
        return dict.fromkeys(sorted(counted), FileClass.DEVICE)
    given = {canonical(name): (name, held) for name, held in wanted.classes.items()}
    classes = {name: given[canonical(name)] for name in names if canonical(name) in given}
    recording.mapped |= {own for own, _ in classes.values()}
    return {name: held for name, (_, held) in classes.items()}


def note_uncounted(names: Collection[str], counted: Collection[str], recording: Recording, file: str) -> None:
    """Note the devices of a file that do not count, with the reason."""
    plain = frozenset(map(_plain, names))
    left_out: dict[str, list[str]] = {}
    for name in sorted(set(names) - set(counted)):
        left_out.setdefault(_WORDS[role_of(_plain(name), plain)], []).append(name)
    if left_out:
        parts = [f"{some_names(devices)}{words}" for words, devices in left_out.items()]
        recording.note("uncounted", file=file, devices="; ".join(parts))


_WORDS: Mapping[Role, str] = {
    "disk": "", "unknown": " (of a kind that is not known)", "partition": " (on the disks)",
    "path": " (paths to the disks)", "upper": " (on other devices)", "none": " (no disks)",
}  # fmt: skip


def head_of_path(path: str) -> str | None:
    """Return the disk behind a path of NVMe."""
    match = _PATH.fullmatch(path)
    return match["head"] + match["space"] if match else None


def settle_idle(
    amounts: Amounts, object: str, counted: Collection[str], recording: Recording, *, omits_idle: bool = False
) -> None:
    """Take the I/O of an idle NVMe disk from its paths, and that of omitted devices as 0.

    Before Linux 6.5 the paths count the I/O, and the disk itself nothing.
    """
    disks: dict[str, list[Part]] = {}
    paths: dict[tuple[str, str, int], list[Part]] = {}
    for part in amounts.parts:
        if part.entity[0] == object:
            disks.setdefault(part.entity[1], []).append(part)
            if disk := head_of_path(part.entity[1]):
                paths.setdefault((disk, part.column, part.rank), []).append(part)
    for name in disks.keys() & set(counted):
        known = np.array([part.amounts for part in disks[name]])
        is_idle = (known == 0).any(axis=0) & ~(known > 0).any(axis=0)
        for part in disks[name]:
            if own := paths.get((name, part.column, part.rank)):
                by_path = (~part.here | is_idle) & np.any([path.here for path in own], axis=0)
                count = np.sum([np.where(path.here, path.amounts, 0.0) for path in own], axis=0)
                part.amounts = np.where(by_path, count, part.amounts)
                part.here, part.needed = part.here | by_path, part.needed | by_path
            if omits_idle and not part.here.all():
                part.amounts = np.where(part.here, part.amounts, 0.0)
                part.needed = np.ones_like(part.here)
                recording.note("idle", file=amounts.name)
