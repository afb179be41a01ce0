"""The facts kept about an emulated array that is a block device: enough to remove it after any crash."""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import asdict
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from stallmark.errors import StallmarkError
from stallmark.record.manifest.storage import EmulatedArray
from stallmark.storage.block_device.path import ReadTimes
from stallmark.storage.emulator import ArrayCounters, ArrayModel

RUNTIME = Path("/dev/shm")
SYS = Path("/sys/class/block")
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,29}")


class BlockDeviceError(StallmarkError):
    """The error that an emulated array cannot be made, changed or destroyed; the message says what to do."""


class ArrayFacts(BaseModel):
    """The facts about one array. `loop` is the path of its block device; None while it is being made, or if that was
    cut short.

    `counters_before` and `reads_before`: the counts of the array and of its block device when the array
    was created or last changed.
    """

    model_config = ConfigDict(extra="forbid")

    name: str
    size: int
    model: ArrayModel
    loop: str | None = None
    counters_before: ArrayCounters | None = None
    reads_before: ReadTimes = ReadTimes(0, 0)


class Places:
    """The files of an emulated array: those kept in its folder, and those of a running one, in memory.

    The path in memory is short, because a socket's must be, and unique: processes with it on their command line belong
    to this array.
    """

    def __init__(self, home: Path, name: str):
        if not _NAME.fullmatch(name):
            raise BlockDeviceError(
                f"{name!r} is no name of an array: take small letters, digits and hyphens, 30 characters at most."
            )
        self.folder = (home / name).resolve()
        self.runtime = _runtime(self.folder)
        self.facts = self.folder / "array.json"
        self.disk = self.folder / "disk"
        self.lock = self.folder / "lock"
        self.mount = self.folder / "mount"
        self.file = self.mount / "array"
        self.state = self.runtime / "state"
        self.socket = self.runtime / "socket"
        self.log = self.runtime / "log"
        self.published = self.runtime / "facts"

    def read(self) -> ArrayFacts | None:
        """Return the facts; None when there is no such array. Raise BlockDeviceError for facts that cannot be read."""
        return _read(self.facts)

    def write(self, facts: ArrayFacts) -> None:
        """Write the facts into the array's folder; of a running one also where everybody may read them, root or not.

        Raise BlockDeviceError where that fails; the facts written before are then still there.
        """
        targets = [target for target in (self.facts, self.published) if target.parent.is_dir()]
        drafts = [target.with_suffix(".new") for target in targets]
        for draft in drafts:
            try:
                draft.write_text(facts.model_dump_json(indent=2) + "\n")
                draft.chmod(0o644)
            except OSError as error:
                raise BlockDeviceError(
                    f"{draft} cannot be written ({error.strerror}), and nothing has changed: make room, and do the "
                    "same again."
                ) from None
        for draft, target in zip(drafts, targets, strict=True):
            os.replace(draft, target)


def _runtime(folder: Path) -> Path:
    digest = hashlib.sha256(os.fsencode(folder)).hexdigest()[:12]
    return RUNTIME / f"stallmark-array-{digest}"


def _read(file: Path) -> ArrayFacts | None:
    try:
        return ArrayFacts.model_validate_json(file.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValidationError) as error:
        raise BlockDeviceError(
            f"{file} cannot be read as an emulated array's ({str(error).splitlines()[0]}): `stallmark array destroy "
            f"{file.parent.name}` removes the emulated array."
        ) from None


def beneath(device: str) -> list[str]:
    """Return the names of the lowest devices: `["loop0"]` of `loop0p1`, or of an encrypted volume on it (LVM, dm-crypt,
    md, bcache: `slaves`). Return the device itself where nothing lies beneath it, or outside Linux."""
    folder = (SYS / device).resolve()
    if (folder / "partition").exists():
        return beneath(folder.parent.name)
    slaves = folder / "slaves"
    parts = [each.name for each in slaves.iterdir()] if slaves.is_dir() else []
    return sorted({bottom for part in parts for bottom in beneath(part)}) or [device]


def file_behind(loop: str) -> Path | None:
    """Return the present file of a loop device, even a removed one; None where the kernel names none."""
    try:
        named = (SYS / loop / "loop" / "backing_file").read_text()
    except OSError:
        return None
    return Path(named.removesuffix("\n").removesuffix(" (deleted)"))


def behind(device: str) -> tuple[ArrayFacts, Path | None] | None:
    """Return the emulated array that a block device (`loop0`, `loop0p1`, `dm-0`) is or lies on, even in part.

    With it comes the array's state file, which only root may open. It is None for a partition or a volume, as the array
    counts the I/O of all that lie on it. None altogether where there is no emulated array.
    """
    bottom = beneath(device)
    for published in RUNTIME.glob("stallmark-array-*/facts"):
        try:
            facts = _read(published)
        except BlockDeviceError:
            continue
        loop = facts and facts.loop and Path(facts.loop).name
        if facts and loop in bottom and _still_has(loop, published.parent):
            return facts, published.with_name("state") if device == loop else None
    return None


def _still_has(loop: str, runtime: Path) -> bool:
    """Tell whether the loop device is still this array's: after a crash it may belong to another by now."""
    file = file_behind(loop)
    return file is not None and _runtime(file.parent.parent) == runtime


def emulated_array_of(device: str) -> EmulatedArray | None:
    """Return the emulated array that a block device is or lies on, in the form of the manifest; None without one."""
    if (found := behind(device)) is None:
        return None
    facts, _ = found
    return EmulatedArray(block_device=True, name=facts.name, **asdict(facts.model))
