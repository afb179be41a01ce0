"""The files of an emulated array that is a block device: enough to remove it after any crash."""

import os
import re
from pathlib import Path

from stallmark.storage.array_facts import ArrayFacts, BlockDeviceError, read_facts, runtime_folder

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,29}")


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
        self.runtime = runtime_folder(self.folder)
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
        return read_facts(self.facts)

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
