"""A file or device that exists already: it is read when that is expressly asked for, and never written to."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from stallmark.errors import StallmarkError
from stallmark.storage.probe.probe_file import LEAST_BYTES, ProbeFile


@contextmanager
def existing_file(path: Path, most_bytes: int, i_know: bool) -> Iterator[ProbeFile]:
    """Yield the beginning of the file or device, at most `most_bytes`. `i_know`: reading it was expressly asked for.

    Raise StallmarkError where it was not, or where it cannot be probed.
    """
    if not i_know:
        what = "device" if path.is_block_device() else "file"
        raise StallmarkError(
            f"{path} is an existing {what}, which a probe leaves alone: name a folder on that storage, or give "
            "--i-know to have it read (it is never written to)."
        )
    if not (path.is_file() or path.is_block_device()):
        raise StallmarkError(f"{path} is neither a folder, a file nor a block device: name one of these.")
    try:
        with path.open("rb", buffering=0) as file:
            size = file.seek(0, os.SEEK_END)
    except OSError as error:
        raise StallmarkError(f"{path} cannot be read ({error.strerror}): probe it as a user who may.") from None
    if size < LEAST_BYTES:
        raise StallmarkError(
            f"{path} has {size / 2**20:.0f} MiB, too few to tell a device from its caches: a probe needs at least "
            f"{LEAST_BYTES // 2**20} MiB."
        )
    yield ProbeFile(path, min(size, most_bytes), ours=False)
