"""Facts kept about an emulated array that is a block device, and where: enough to remove it after any crash."""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import asdict
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from stallmark.errors import StallmarkError
from stallmark.record.manifest import EmulatedArray
from stallmark.storage.block_device.path import Waits
from stallmark.storage.emulator import ArrayCounters, ArrayModel

RUNTIME = Path("/dev/shm")
SYS = Path("/sys/class/block")
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,29}")


class BlockDeviceError(StallmarkError):
    """An emulated array cannot be made, changed or destroyed as a block device; the message says what to do."""


class Facts(BaseModel):
    """Facts about one array. `loop` is the path of its block device; None while it is being made, or if that was
    cut short.

    `counters_before` and `waits_before`: what had been counted, by the array and at the block device, when the array
    became what it is.
    """

    model_config = ConfigDict(extra="forbid")

    name: str
    size: int
    model: ArrayModel
    loop: str | None = None
    counters_before: ArrayCounters | None = None
    waits_before: Waits = Waits(0, 0)


class Places:
    """The files of an emulated array: what is kept in its folder, and what only a running one has, in memory.

    The path of the latter is short, for a socket's may not be long, and its own: a process that has it on its command
    line is this array's.
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

    def read(self) -> Facts | None:
        """None: there is no such lab."""
        return _read(self.facts)

    def write(self, facts: Facts) -> None:
        """Into its folder; of a running one also where everybody can read it, who may not look into root's folders.

        Raises BlockDeviceError where that cannot be, and what was written before is still there.
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


def _read(file: Path) -> Facts | None:
    try:
        return Facts.model_validate_json(file.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValidationError) as error:
        raise BlockDeviceError(
            f"{file} cannot be read as an emulated array's ({str(error).splitlines()[0]}): `stallmark array destroy "
            f"{file.parent.name}` removes the emulated array."
        ) from None


def beneath(device: str) -> list[str]:
    """The names of the devices at the bottom, `["loop0"]` of `loop0p1` or of an encrypted volume on it (LVM, dm-crypt,
    md, bcache: `slaves`); itself where nothing is beneath it, or this is no Linux."""
    folder = (SYS / device).resolve()
    if (folder / "partition").exists():
        return beneath(folder.parent.name)
    slaves = folder / "slaves"
    parts = [each.name for each in slaves.iterdir()] if slaves.is_dir() else []
    return sorted({bottom for part in parts for bottom in beneath(part)}) or [device]


def file_behind(loop: str) -> Path | None:
    """The file that a loop device has now, also one that has been removed; None where the kernel names none."""
    try:
        named = (SYS / loop / "loop" / "backing_file").read_text()
    except OSError:
        return None
    return Path(named.removesuffix("\n").removesuffix(" (deleted)"))


def behind(device: str) -> tuple[Facts, Path | None] | None:
    """Return the emulated array that a block device (`loop0`, `loop0p1`, `dm-0`) is or lies on, even in part.

    With it comes the array's state file, which only root may open; None for a partition or a volume, as the array
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
    """What an emulated array left in memory when it crashed may name a loop device that is another's by now."""
    file = file_behind(loop)
    return file is not None and _runtime(file.parent.parent) == runtime


def emulated_array_of(device: str) -> EmulatedArray | None:
    """Return the emulated array that a block device is or lies on, as a record has it; None without one."""
    if (found := behind(device)) is None:
        return None
    facts, _ = found
    return EmulatedArray(block_device=True, name=facts.name, **asdict(facts.model))
