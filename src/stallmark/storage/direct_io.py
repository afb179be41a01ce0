"""The device under a folder: described, and tried whether I/O with O_DIRECT really goes past the page cache."""

import ctypes
import mmap
import os
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from stallmark.errors import StallmarkError
from stallmark.record.manifest.storage import Device, DirectIo
from stallmark.storage.block_devices import (
    SECTOR_BYTES,
    SYS_BLOCK,
    NoBlockDevice,
    base_devices,
    device_behind,
    emulated_array_of,
    io_limits,
    mount_of,
)

# A trial of direct I/O: a small file tells if I/O with O_DIRECT really goes past the page cache in a folder.
#
# A file system may take O_DIRECT and use the page cache all the same, as ext4 with data=journal and tmpfs do. Then its
# memory would be measured instead of storage. A file that was only ever written with O_DIRECT has pages in the cache
# (mincore) only in this case.

_BYTES = 512 * 1024
_PIECE_BYTES = 64 * 1024
_JOURNALLED = "data=journal"
_HIDES_A_CACHE = ("fuse", "virtiofs", "9p", "zfs")
"""Types of file systems with a cache that mincore does not see: their files are in another file system, on this machine
or below it, or they have one of their own, as ZFS, which takes O_DIRECT and uses it all the same up to 2.2.
"""


def direct_io(folder: Path) -> DirectIo | None:
    """Return the target of direct I/O in `folder`, or in its next parent that exists.

    A file is made there and removed, but not beside a file that is named in the folder's place. None for a block device
    and outside Linux.
    """
    if not sys.platform.startswith("linux"):
        return None
    if folder.is_block_device():
        return None
    existing = next(place for place in (folder.absolute(), *folder.absolute().parents) if place.is_dir())
    file_system = _file_system(existing)
    if file_system and file_system.startswith(_HIDES_A_CACHE):
        return DirectIo("unknown", file_system)
    # Nothing is tried next to a file that is not ours: only the file system decides.
    if folder.is_file():
        return DirectIo("through" if file_system and _JOURNALLED in file_system else "unknown", file_system)
    try:
        cached = _is_cached(existing)
    except OSError:
        return DirectIo("unknown", file_system)
    if cached:
        return DirectIo("through", file_system)
    loop = _cached_loop(existing)
    return DirectIo("unknown" if loop else "past", file_system, loop)


def refuse_cached(folder: Path) -> None:
    """Raise StallmarkError if direct I/O in `folder` goes through the page cache."""
    tried = direct_io(folder)
    if tried is not None and tried.goes == "through":
        raise StallmarkError(
            f"Direct I/O in {folder} goes through the system's page cache ({tried.file_system or 'unknown file system'}"
            "), so memory would be measured: name a folder on a file system without it (XFS, or ext4 that is mounted "
            "with data=ordered)."
        )


def _is_cached(folder: Path) -> bool:
    """Return True if a file written with O_DIRECT has pages in the cache. Raise OSError if this cannot be tried."""
    descriptor, name = tempfile.mkstemp(prefix=".stallmark-direct-", dir=folder)
    try:
        os.close(descriptor)
        descriptor = os.open(name, os.O_RDWR | os.O_DIRECT)
        try:
            # O_DIRECT requires memory aligned to pages, which mmap gives.
            with mmap.mmap(-1, _PIECE_BYTES) as piece:
                piece.write(os.urandom(_PIECE_BYTES))
                for offset in range(0, _BYTES, _PIECE_BYTES):
                    os.pwrite(descriptor, piece, offset)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        return _resident_pages(name) > 0
    finally:
        with suppress(OSError):
            os.unlink(name)


def _resident_pages(name: str) -> int:
    """Return the number of pages of a file that are in the page cache. Nothing is read for it."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open(name, "rb+", buffering=0) as file, mmap.mmap(file.fileno(), _BYTES, flags=mmap.MAP_PRIVATE) as mapped:
        pages = (ctypes.c_ubyte * (_BYTES // mmap.PAGESIZE))()
        start = ctypes.c_char.from_buffer(mapped)
        failed = libc.mincore(ctypes.c_void_p(ctypes.addressof(start)), ctypes.c_size_t(_BYTES), pages)
        # A reference would keep the map from being closed.
        del start
        if failed:
            raise OSError(ctypes.get_errno(), "mincore")
        return sum(page & 1 for page in pages)


def _file_system(folder: Path) -> str | None:
    try:
        mount = mount_of(folder.resolve())
    except NoBlockDevice:
        return None
    journalled = _JOURNALLED in mount.options.split(",")
    return f"{mount.file_system}, {_JOURNALLED}" if journalled else mount.file_system


def _cached_loop(folder: Path) -> str | None:
    """Return the loop device under a folder whose file is used through the page cache; None without one. Emulated
    arrays are loop devices too: the duration of their I/O is their model's.
    """
    try:
        device = device_behind(folder).name
    except NoBlockDevice:
        return None
    if emulated_array_of(device):
        return None
    for name in base_devices(device):
        with suppress(OSError):
            if Path("/sys/block", name, "loop", "dio").read_text().strip() == "0":
                return name
    return None


# Describe the block device under a folder: model, size, rotation, scheduler, write cache, and how it is mounted.


def describe(folder: Path, server: int | None = None) -> Device:
    """Describe the block device under `folder` as the system reports it, or the reason why it is unknown. `server` is a
    process whose limits are reported; None if it is unknown.
    """
    try:
        device = device_behind(folder)
    except NoBlockDevice as reason:
        return Device(why=str(reason))
    entry = SYS_BLOCK / device.number
    queue = entry / "queue"
    # A partition has no queue of its own: its disk has.
    if not queue.exists():
        queue = entry.resolve().parent / "queue"
    mount = mount_of(folder.resolve())
    sectors, tags = _read(entry / "size"), _read(queue / "nr_requests")
    disk = queue.parent.resolve().name
    numbers = {_read(Path("/sys/class/block", name, "dev")) or "" for name in (device.name, disk, *base_devices(disk))}
    return Device(
        name=device.name,
        disk=disk,
        model=_read(queue.parent / "device" / "model"),
        size_bytes=int(sectors) * SECTOR_BYTES if sectors else None,
        rotational=_read(queue / "rotational") == "1",
        scheduler=_read(queue / "scheduler"),
        write_cache=_read(queue / "write_cache"),
        file_system=mount.file_system,
        mount_options=mount.options,
        emulated_array=emulated_array_of(device.name),
        limits=io_limits(server, numbers) if server else (),
        tags=int(tags) if tags else None,
    )


def _read(path: Path) -> str | None:
    try:
        return path.read_text().strip()
    except OSError:
        return None


# The smallest I/O that goes past the page cache on a file.

_SIZES = (512, 1024, 2048, 4096, 8192, 16384, 32768, 65536)


def least_direct_bytes(file: Path) -> int:
    """Return the size of the smallest read that the file's device takes, its sector.

    Reads are tried: the file system may need more than the device reports. Raise StallmarkError if no size is taken.
    """
    if not hasattr(os, "O_DIRECT"):  # macOS asks for no size
        return _SIZES[0]
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_DIRECT)
    except OSError as error:
        raise _refusal(file, error.strerror) from None
    try:
        with mmap.mmap(-1, _SIZES[-1]) as block:
            return next(size for size in _SIZES if _takes(descriptor, memoryview(block)[:size], size))
    except StopIteration:
        raise _refusal(file, "no size is taken") from None
    finally:
        os.close(descriptor)


def _takes(descriptor: int, part: memoryview, offset: int) -> bool:
    try:
        with part:
            return os.preadv(descriptor, [part], offset) == offset
    except OSError:
        return False


def _refusal(file: Path, reason: str | None) -> StallmarkError:
    return StallmarkError(
        f"Files in {file.parent} take no direct I/O ({reason}), and the system's memory would be measured: choose a "
        "folder on a file system that has it (ext4, XFS)."
    )
