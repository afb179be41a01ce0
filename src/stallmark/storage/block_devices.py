"""The block device under a directory: its counters in the Linux kernel, limits on a process's I/O, and the emulated
array that it is or is on.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

import psutil
from pydantic import BaseModel, ConfigDict, ValidationError

from stallmark.errors import StallmarkError
from stallmark.record.manifest.storage import EmulatedArray, IoLimit, Limited
from stallmark.storage.emulator import ArrayModel
from stallmark.storage.emulator.layout import ArrayCounters

# The block device behind a directory, and the Linux kernel's counters of it.

SYS_BLOCK = Path("/sys/dev/block")
DISKSTATS = Path("/proc/diskstats")
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
# Unit of /proc/diskstats, independent of the device's sector.
SECTOR_BYTES = 512
_IN_MEMORY = ("tmpfs", "ramfs")


class NoBlockDevice(Exception):
    """An error: not exactly one block device of this machine is under a directory. The message is the reason."""


class InMemory(NoBlockDevice):
    """The error that a directory is in memory, with no device behind it."""


@dataclass(frozen=True)
class BlockDevice:
    """A disk, a partition or a volume. `counts_syncs`: the kernel counts flushes of whole disks only."""

    number: str  # "254:0"
    name: str  # "vda"
    counts_syncs: bool
    epoch: str


@dataclass(frozen=True)
class DiskCounters:
    """Counters of a device, cumulative since it appeared; times in ms. Syncs are None if the kernel does not
    count them."""

    reads: int
    read_bytes: int
    read_ms: int
    writes: int
    write_bytes: int
    write_ms: int
    syncs: int | None
    sync_ms: int | None
    busy_ms: int
    queue_ms: int


def parse_diskstats(text: str) -> dict[str, DiskCounters]:
    """Return the counters in /proc/diskstats (Documentation/admin-guide/iostats.rst) by device number, "254:0".

    Kernels of 14 fields, 18 (discards) and 20 (flushes) are understood; later ones may append more.
    """
    counters = {}
    for line in text.splitlines():
        major, minor, _name, *fields = line.split()
        reads, _, read_sectors, read_ms, writes, _, write_sectors, write_ms, _, busy_ms, queue_ms = map(
            int, fields[:11]
        )
        syncs, sync_ms = map(int, fields[15:17]) if len(fields) >= 17 else (None, None)
        counters[f"{major}:{minor}"] = DiskCounters(
            reads=reads,
            read_bytes=read_sectors * SECTOR_BYTES,
            read_ms=read_ms,
            writes=writes,
            write_bytes=write_sectors * SECTOR_BYTES,
            write_ms=write_ms,
            syncs=syncs,
            sync_ms=sync_ms,
            busy_ms=busy_ms,
            queue_ms=queue_ms,
        )
    return counters


def read_counters(device: BlockDevice) -> DiskCounters:
    """Read the counters of a device; raise NoBlockDevice when it is gone."""
    try:
        return parse_diskstats(DISKSTATS.read_text())[device.number]
    except KeyError:
        raise NoBlockDevice(f"The block device {device.name} is gone.") from None


def device_behind(directory: Path) -> BlockDevice:
    """Return the block device that holds `directory`: a partition is itself, not its disk. Raise NoBlockDevice."""
    directory = directory.resolve()
    number = os.stat(directory).st_dev
    # File systems without a device have an anonymous number: btrfs, overlay, tmpfs, network …
    if not _sys(number).exists():
        return _device_of_mount(directory, mount_of(directory))
    return device_of_number(number)


@dataclass(frozen=True)
class Mount:
    source: str
    point: Path
    file_system: str
    options: str


def mount_of(directory: Path) -> Mount:
    mounts = [
        Mount(p.device, Path(p.mountpoint), p.fstype, p.opts)
        for p in psutil.disk_partitions(all=True)
        if directory.is_relative_to(p.mountpoint)
    ]
    if not mounts:
        raise NoBlockDevice(f"The mount that holds {directory} is not known here.")
    longest = max(len(mount.point.parts) for mount in mounts)
    # The last mount covers the others.
    return [mount for mount in mounts if len(mount.point.parts) == longest][-1]


def _device_of_mount(directory: Path, mount: Mount) -> BlockDevice:
    if mount.file_system in _IN_MEMORY:
        raise InMemory(f"{directory} is in memory ({mount.file_system}): no device is behind it.")
    if mount.file_system == "overlay":
        options = dict(option.partition("=")[::2] for option in mount.options.split(","))
        upper = Path(options.get("upperdir", ""))
        if upper.is_absolute() and upper.is_dir() and upper.resolve() != directory:
            return device_behind(upper)
        raise NoBlockDevice(
            f"{directory} is in a container's own layers (overlay), whose device cannot be seen from inside: "
            "put it on a volume."
        )
    try:
        source = os.stat(mount.source)
    except OSError:
        source = None
    if source is None or not stat.S_ISBLK(source.st_mode) or not _sys(source.st_rdev).exists():
        raise NoBlockDevice(f"{directory} is on {mount.file_system}, which is not a block device of this machine.")
    device = device_of_number(source.st_rdev)
    if (members := _btrfs_members(device.name)) > 1:
        raise NoBlockDevice(f"{directory} is on a {mount.file_system} file system spread over {members} devices.")
    return device


def _btrfs_members(name: str) -> int:
    """Return the number of devices that share a btrfs with the device of this name, or 0 without a btrfs."""
    for member in Path("/sys/fs/btrfs").glob(f"*/devices/{name}"):
        return len(list(member.parent.iterdir()))
    return 0


def _sys(number: int) -> Path:
    return SYS_BLOCK / f"{os.major(number)}:{os.minor(number)}"


def device_of_number(number: int) -> BlockDevice:
    """Return the block device of a device number (st_dev of a file on it, st_rdev of its node)."""
    folder = _sys(number).resolve()
    is_partition = (folder / "partition").exists()
    disk = folder.parent if is_partition else folder
    sequence = (disk / "diskseq").read_text().strip() if (disk / "diskseq").exists() else "?"
    return BlockDevice(
        number=f"{os.major(number)}:{os.minor(number)}",
        name=folder.name,
        counts_syncs=not (is_partition or (folder / "dm").exists() or (folder / "md").exists()),
        # A device that is replaced or plugged in again counts from 0.
        epoch=f"boot {BOOT_ID.read_text().strip()} disk {sequence}",
    )


# Limits on a process's I/O to a device, as the kernel's block controllers have them.
#
# Version 1 of control groups has a file for each (`blkio.throttle.read_iops_device`), version 2 has `io.max`. A
# limit of a group holds for all groups within it. (Linux, Documentation/admin-guide/cgroup-v1/blkio-controller.rst and
# cgroup-v2.rst.)

PROC = Path("/proc")
_V1: dict[str, Limited] = {
    "blkio.throttle.read_iops_device": "reads",
    "blkio.throttle.write_iops_device": "writes",
    "blkio.throttle.read_bps_device": "bytes read",
    "blkio.throttle.write_bps_device": "bytes written",
}
_V2: dict[str, Limited] = {"riops": "reads", "wiops": "writes", "rbps": "bytes read", "wbps": "bytes written"}


def io_limits(pid: int, devices: set[str]) -> tuple[IoLimit, ...]:
    """Return the limits on a process's I/O to devices, by their numbers ("7:1"). Unreadable limits are omitted."""
    return tuple(limit for folder in _groups(pid) for limit in _limits(folder, devices))


def _groups(pid: int) -> Iterator[Path]:
    """Yield the folders of the process's control groups for block devices, outermost last."""
    mounts = _mounts()
    for line in _read(PROC / str(pid) / "cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        kind = "blkio" if "blkio" in controllers.split(",") else "" if not controllers else None
        if kind is None or (root := mounts.get(kind)) is None:
            continue
        folder = root / path.lstrip("/")
        yield from (parent for parent in (folder, *folder.parents) if parent.is_relative_to(root))


def _mounts() -> dict[str, Path]:
    """Return the mount points of the groups of version 1 ("blkio") and of version 2 ("")."""
    mounts = {}
    for line in _read(PROC / "self" / "mounts").splitlines():
        _, point, kind, options, *_ = line.split(" ")
        if kind == "cgroup2":
            mounts[""] = Path(point)
        elif kind == "cgroup" and "blkio" in options.split(","):
            mounts["blkio"] = Path(point)
    return mounts


def _limits(folder: Path, devices: set[str]) -> Iterator[IoLimit]:
    for name, limited in _V1.items():
        for line in _read(folder / name).splitlines():
            number, value = line.split()
            if number in devices:
                yield IoLimit(limited=limited, per_s=int(value), file=str(folder / name))
    for line in _read(folder / "io.max").splitlines():
        number, *pairs = line.split()
        for key, _, value in (pair.partition("=") for pair in pairs):
            if number in devices and key in _V2 and value != "max":
                yield IoLimit(limited=_V2[key], per_s=int(value), file=str(folder / "io.max"))


def _read(file: Path) -> str:
    try:
        return file.read_text()
    except OSError:
        return ""


# The facts kept about an emulated array that is a block device, and which devices are on one: measurements there are
# EMULATED.

RUNTIME = Path("/dev/shm")
SYS = Path("/sys/class/block")


class BlockDeviceError(StallmarkError):
    """An error: an emulated array cannot be made, changed or destroyed. The message names the remedy."""


class ReadTimes(NamedTuple):
    """Reads of a block device, cumulative since it appeared. `ms`: the sum of the times they took."""

    reads: int
    ms: int


class ArrayFacts(BaseModel):
    """The facts about one array."""

    model_config = ConfigDict(extra="forbid")

    name: str
    size: int
    model: ArrayModel
    loop: str | None = None
    """The path of the block device, or None while the array is being made, or if that was interrupted."""
    counters_before: ArrayCounters | None = None
    """The counters of the array when it was created or last changed."""
    reads_before: ReadTimes = ReadTimes(0, 0)
    """The reads of the block device when the array was created or last changed."""


def runtime_folder(folder: Path) -> Path:
    """Return the folder in memory of the running array that is kept in `folder`."""
    digest = hashlib.sha256(os.fsencode(folder)).hexdigest()[:12]
    return RUNTIME / f"stallmark-array-{digest}"


def read_facts(file: Path) -> ArrayFacts | None:
    """Return the facts in a file, or None. Raise BlockDeviceError for facts that cannot be read."""
    try:
        return ArrayFacts.model_validate_json(file.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValidationError) as error:
        raise BlockDeviceError(
            f"{file} cannot be read as an emulated array's ({str(error).splitlines()[0]}): `stallmark array destroy "
            f"{file.parent.name}` removes the emulated array."
        ) from None


def base_devices(device: str) -> list[str]:
    """Return the names of the lowest devices: `["loop0"]` of `loop0p1`, or of an encrypted volume on it (LVM, dm-crypt,
    md, bcache: `slaves`). Return the device itself where nothing is under it, or outside Linux.
    """
    folder = (SYS / device).resolve()
    if (folder / "partition").exists():
        return base_devices(folder.parent.name)
    slaves = folder / "slaves"
    parts = [slave.name for slave in slaves.iterdir()] if slaves.is_dir() else []
    return sorted({bottom for part in parts for bottom in base_devices(part)}) or [device]


def file_behind(loop: str) -> Path | None:
    """Return the present file of a loop device, even a removed one; None if the kernel names none."""
    try:
        named = (SYS / loop / "loop" / "backing_file").read_text()
    except OSError:
        return None
    return Path(named.removesuffix("\n").removesuffix(" (deleted)"))


def emulated_array_under(device: str) -> tuple[ArrayFacts, Path | None] | None:
    """Return the emulated array that a block device (`loop0`, `loop0p1`, `dm-0`) is or is on, even in part.

    With it comes the array's state file, which only root may open. The file is None for a partition or a volume, as the
    array counts the I/O of everything on it. The result is None without an emulated array.
    """
    bottom = base_devices(device)
    for published in RUNTIME.glob("stallmark-array-*/facts"):
        try:
            facts = read_facts(published)
        except BlockDeviceError:
            continue
        loop = facts and facts.loop and Path(facts.loop).name
        if facts and loop in bottom and _still_has(loop, published.parent):
            return facts, published.with_name("state") if device == loop else None
    return None


def _still_has(loop: str, runtime: Path) -> bool:
    """Return True if the loop device is still this array's: after a crash it may belong to another array."""
    file = file_behind(loop)
    return file is not None and runtime_folder(file.parent.parent) == runtime


def emulated_array_of(device: str) -> EmulatedArray | None:
    """Return the emulated array that a block device is or is on, in the form of the manifest; None without one."""
    if (array := emulated_array_under(device)) is None:
        return None
    facts, _ = array
    return EmulatedArray(block_device=True, name=facts.name, **asdict(facts.model))
