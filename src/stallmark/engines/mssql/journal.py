"""A note on the server of what a run changes there: written before the change, kept until it is put right.

The server itself keeps it, as an extended property of `master`: there it outlives this process and the machine or
container it ran on, a restart of the server, and a restore of the database that is driven. Where this login may not
write there, it is a file on this machine, and only a Stallmark on this machine knows of it.
"""

import json
import os
import re
from functools import cached_property
from pathlib import Path
from typing import Any

import platformdirs

from stallmark.engines.mssql import sql
from stallmark.engines.mssql.server import Server
from stallmark.errors import CallFailed

_READ = """\
SELECT CAST(value AS nvarchar(3750)) AS value
  FROM sys.extended_properties
 WHERE class_desc = 'DATABASE' AND name = ?
"""
_NOTE = "EXEC sys.sp_addextendedproperty @name = ?, @value = ?"
_REMOVE = "EXEC sys.sp_dropextendedproperty @name = ?"


class Journal:
    """One note on `what`. `server` is on any database that can be opened."""

    def __init__(self, server: Server, what: str):
        self._server = server
        self._master = None if server.is_azure_database else server.on_database("master")
        self._name = f"stallmark.{what}"

    def note(self, found: dict[str, Any]) -> None:
        """Keep what was found; what an earlier note says stays, because only that one knew the original."""
        if self.read():
            return
        text = json.dumps(found)
        if self._master:
            try:
                self._master.query(_NOTE, [self._name, text])
                return
            except CallFailed:  # no right to, or longer than a property may be
                pass
        self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = self._file.with_suffix(".new")
        draft.touch(mode=0o600)  # it names a server and its settings, which are nobody else's business
        with draft.open("w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(self._file)

    def read(self) -> dict[str, Any]:
        """Return what was found; nothing where nothing is noted."""
        if text := self._on_server():
            return json.loads(text)
        return json.loads(self._file.read_text()) if self._file.exists() else {}

    def remove(self) -> None:
        if self._master and self.is_on_server:
            self._master.query(_REMOVE, [self._name])
        self._file.unlink(missing_ok=True)

    @property
    def is_on_server(self) -> bool:
        return self._on_server() is not None

    @property
    def how_to_remove(self) -> str:
        """Return how to remove the note, for somebody who has put right by hand what it says."""
        if self.is_on_server:
            return f"EXEC master.sys.sp_dropextendedproperty @name = {sql.text(self._name)}"
        return f"remove {self._file}"

    def _on_server(self) -> str | None:
        found = self._master.query(_READ, [self._name]) if self._master else []
        return found[0][0] if found else None

    @cached_property
    def _file(self) -> Path:
        server = (self._master or self._server).name()
        folder = Path(os.environ.get("STALLMARK_STATE") or platformdirs.user_state_dir("stallmark"))
        return folder / "changed-settings" / (re.sub(r"[^\w.-]", "_", f"{server}.{self._name}") + ".json")
