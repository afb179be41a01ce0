"""Folders for the servers of tests: in memory where there is room, because files on a disk cost most of their time."""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import psutil
import pytest

MEMORY = Path("/dev/shm")
ROOM_BYTES = 8 * 1024**3  # that must be free; a server of a test has less than 1 GiB
PREFIX = "stallmark-memory-"


@contextmanager
def server_folder() -> Iterator[Path]:
    """Yield a new folder, which is removed afterwards."""
    folder = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-", dir=_memory()))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """A temporary folder for a test of a room that starts servers in it."""
    with server_folder() as folder:
        yield folder


@cache
def _memory() -> Path | None:
    """Return where folders in memory are made, cleared of those of killed processes; None where there is no room."""
    if not sys.platform.startswith("linux") or not os.access(MEMORY, os.W_OK):
        return None
    for left in MEMORY.glob(f"{PREFIX}*"):
        if not psutil.pid_exists(int(left.name.split("-")[2])):
            shutil.rmtree(left, ignore_errors=True)
    room = min(shutil.disk_usage(MEMORY).free, psutil.virtual_memory().available)
    return MEMORY if room >= ROOM_BYTES and _has_direct_io() else None


def _has_direct_io() -> bool:
    """Tell whether PostgreSQL can read and write there as it does on a disk: Linux 6.6 and later."""
    probe = MEMORY / f"{PREFIX}{os.getpid()}-probe"
    try:
        os.close(os.open(probe, os.O_RDWR | os.O_CREAT | os.O_DIRECT))
    except OSError:
        return False
    finally:
        probe.unlink(missing_ok=True)
    return True
