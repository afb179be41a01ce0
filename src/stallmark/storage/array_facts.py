"""The facts kept about an emulated array that is a block device, and which devices are on one: measurements there are
EMULATED.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict, ValidationError

from stallmark.errors import StallmarkError
from stallmark.record.manifest.storage import EmulatedArray
from stallmark.storage.emulator.layout import ArrayCounters
from stallmark.storage.emulator.models import ArrayModel

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
