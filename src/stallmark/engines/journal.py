"""The note of a server's original settings: written before a run changes them, removed when they are restored.

The server itself keeps the note, outside the database that is driven. There the note outlives this process and its
machine or container, a restart of the server, and a restore. If this login may not write there, the note is a file on
this machine, and only a Stallmark on this machine can read it.
"""

import json
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import platformdirs

from stallmark.engines.abilities import VariantSetting
from stallmark.errors import CallFailed, NotGivenBack, StallmarkError, as_reason


class Journal(ABC):
    """One note on a `subject`."""

    def __init__(self, subject: str):
        self._name = f"stallmark.{subject}"

    @abstractmethod
    def _read_on_server(self) -> str | None:
        """Return the note that the server keeps; None without one."""

    @abstractmethod
    def _write_on_server(self, text: str) -> bool:
        """Have the server keep a note; return whether it could."""

    @abstractmethod
    def _remove_on_server(self) -> None:
        """Remove the note that the server keeps."""

    @abstractmethod
    def _removal_statement(self) -> str:
        """Return the statement that removes it."""

    @abstractmethod
    def _server_name(self) -> str:
        """Return a name that only this server has."""

    def note(self, original: dict[str, Any]) -> None:
        """Store the original values. An earlier note stays, because only that one has the true original."""
        if self.read():
            return
        text = json.dumps(original)
        if self._write_on_server(text):
            return
        self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = self._file.with_suffix(".new")
        # The file names a server and its settings, which are for this user alone.
        draft.touch(mode=0o600)
        with draft.open("w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(self._file)

    def read(self) -> dict[str, Any]:
        """Return the original values; empty without a note."""
        if text := self._read_on_server():
            return json.loads(text)
        return json.loads(self._file.read_text()) if self._file.exists() else {}

    def remove(self) -> None:
        if self.is_on_server:
            self._remove_on_server()
        self._file.unlink(missing_ok=True)

    @contextmanager
    def restored(self, title: str, by_hand: Callable[[], str]) -> Iterator[None]:
        """Remove the note once its settings are restored. Raise NotGivenBack, with a way `by_hand`, if they are not."""
        try:
            yield
        except (CallFailed, StallmarkError) as error:
            raise NotGivenBack(
                f"{title} could not be given back, which the next run tries again. {as_reason(error)}. Or {by_hand()} "
                f"yourself, then {self.removal_hint}."
            ) from error
        self.remove()

    @property
    def is_on_server(self) -> bool:
        return self._read_on_server() is not None

    @property
    def removal_hint(self) -> str:
        """Return the way to remove the note, for someone who has restored its settings by hand."""
        return self._removal_statement() if self.is_on_server else f"remove {self._file}"

    @cached_property
    def _file(self) -> Path:
        folder = Path(os.environ.get("STALLMARK_STATE") or platformdirs.user_state_dir("stallmark"))
        name = re.sub(r"[^\w.-]", "_", f"{self._server_name()}.{self._name}")
        return folder / "changed-settings" / f"{name}.json"


def give_back_each(settings: Mapping[str, VariantSetting]) -> list[str]:
    """Restore what variants have changed; return a sentence on each setting that is still as one had it."""
    left = []
    for name, setting in settings.items():
        try:
            setting.give_back()
        except NotGivenBack as error:
            left.append(str(error))
        except (CallFailed, StallmarkError) as error:  # the server is away, and its journal with it
            if setting.was_made:
                left.append(f"`{name}` is still as the variant had it, which the next run gives back. {error}")
    return left
