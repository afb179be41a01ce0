"""Disks that are small, or that stop taking anything: file systems in memory, where this system lets us mount them."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk(place: Path, megabytes: int) -> Iterator[Path]:
    """Yield a file system in memory of that size at `place`. Skip the test where none can be mounted."""
    with _mounted(place, "-t", "tmpfs", "-o", f"size={megabytes}m", "none"):
        yield place


@contextmanager
def disk_that_fails(place: Path, megabytes: int) -> Iterator[Path]:
    """Yield a file system that `fail` can end. Skip the test where none can be mounted."""
    image = place.with_suffix(".image")
    with image.open("wb") as file:
        file.truncate(megabytes << 20)
    subprocess.run(["mkfs.ext4", "-q", str(image)], check=True)
    with _mounted(place, "-o", "loop", str(image)):
        yield place


def fail(disk: Path) -> None:
    """Have a disk take nothing any more, as the kernel does when it fails, whoever has files open for writing."""
    subprocess.run(["mount", "-o", "remount,abort", str(disk)], check=True)


def fill(disk: Path) -> Path:
    """Take all that is free of a disk; returns the file."""
    with (disk / "filler").open("wb", buffering=0) as file:
        for size in (1 << 20, 4096):
            try:
                while True:
                    file.write(bytes(size))
            except OSError:
                pass
    return disk / "filler"


@contextmanager
def _mounted(place: Path, *arguments: str) -> Iterator[None]:
    place.mkdir()
    mounted = subprocess.run(["mount", *arguments, str(place)], capture_output=True, text=True)
    if mounted.returncode:
        pytest.skip(f"No disk can be mounted here, which takes root: {mounted.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)
