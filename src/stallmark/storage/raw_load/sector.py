"""The smallest I/O that goes past the page cache on a file."""

import mmap
import os
from pathlib import Path

from stallmark.errors import StallmarkError

_SIZES = (512, 1024, 2048, 4096, 8192, 16384, 32768, 65536)


def least_direct_bytes(file: Path) -> int:
    """Return the size of the smallest read that the file's device takes, its sector. It is tried: what the file system
    asks for may be more than what the device tells. Raise StallmarkError where none is taken.
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


def _refusal(file: Path, why: str | None) -> StallmarkError:
    return StallmarkError(
        f"Files in {file.parent} take no direct I/O ({why}), and the system's memory would be measured: choose a "
        "folder on a file system that has it (ext4, XFS)."
    )
