"""What is written down about a lab, and where: enough to find and remove it after any crash."""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import asdict
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from stallmark.record.manifest import EmulatedArray
from stallmark.storage.block_device.beneath import beneath, file_behind
from stallmark.storage.block_device.errors import LabError
from stallmark.storage.block_device.path import Waits
from stallmark.storage.emulator import DeviceCounters, DeviceModel

RUNTIME = Path("/dev/shm")
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,29}")


class Facts(BaseModel):
    """Of one lab. `loop` is the path of its block device; None while it is being made, or if that was cut short.

    `counters_before` and `waits_before`: what had been counted, by the array and at the block device, when the array
    became what it is.
    """

    model_config = ConfigDict(extra="forbid")

    name: str
    size: int
    model: DeviceModel
    loop: str | None = None
    counters_before: DeviceCounters | None = None
    waits_before: Waits = Waits(0, 0)


class Places:
    """The files of a lab: what is kept in its folder, and what only a running one has, in memory.

    The path of the latter is short, for a socket's may not be long, and its own: a process that has it on its command
    line is this lab's.
    """

    def __init__(self, home: Path, name: str):
        if not _NAME.fullmatch(name):
            raise LabError(
                f"{name!r} is no name of a lab: take small letters, digits and hyphens, 30 characters at most."
            )
        self.folder = (home / name).resolve()
        self.runtime = _runtime(self.folder)
        self.facts = self.folder / "lab.json"
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

        Raises LabError where that cannot be, and what was written before is still there.
        """
        targets = [target for target in (self.facts, self.published) if target.parent.is_dir()]
        drafts = [target.with_suffix(".new") for target in targets]
        for draft in drafts:
            try:
                draft.write_text(facts.model_dump_json(indent=2) + "\n")
                draft.chmod(0o644)
            except OSError as error:
                raise LabError(
                    f"{draft} cannot be written ({error.strerror}), and nothing has changed: make room, and do the "
                    "same again."
                ) from None
        for draft, target in zip(drafts, targets, strict=True):
            os.replace(draft, target)


def _runtime(folder: Path) -> Path:
    digest = hashlib.sha256(os.fsencode(folder)).hexdigest()[:12]
    return RUNTIME / f"stallmark-lab-{digest}"


def _read(file: Path) -> Facts | None:
    try:
        return Facts.model_validate_json(file.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValidationError) as error:
        raise LabError(
            f"{file} cannot be read as a lab's ({str(error).splitlines()[0]}): `stallmark lab destroy "
            f"{file.parent.name}` removes the lab."
        ) from None


def behind(device: str) -> tuple[Facts, Path | None] | None:
    """The lab that a block device (`loop0`, `loop0p1`, `dm-0`) is or lies on, wholly or in part, and the lab's state
    file, which only root may open. Not of a partition or a volume, on which there may be others: the array counts the
    I/O of all. None altogether: no lab is there."""
    bottom = beneath(device)
    for published in RUNTIME.glob("stallmark-lab-*/facts"):
        try:
            facts = _read(published)
        except LabError:
            continue
        loop = facts and facts.loop and Path(facts.loop).name
        if facts and loop in bottom and _still_has(loop, published.parent):
            return facts, published.with_name("state") if device == loop else None
    return None


def _still_has(loop: str, runtime: Path) -> bool:
    """What a lab left in memory when it crashed may name a loop device that is another's by now."""
    file = file_behind(loop)
    return file is not None and _runtime(file.parent.parent) == runtime


def lab_of(device: str) -> EmulatedArray | None:
    """Return the lab that a block device is or lies on, as a record has it; None without one."""
    if (found := behind(device)) is None:
        return None
    facts, _ = found
    return EmulatedArray(block_device=True, name=facts.name, **asdict(facts.model))
