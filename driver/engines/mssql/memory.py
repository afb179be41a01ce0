"""The cap on the server's memory: set, waited for, and given back whatever happens.

Before the first change the original values go into a journal on this machine; the journal is removed when they are
back. A Stallmark that was killed leaves it behind, and the next one that works on the same server gives them back
first. So that two runs never restore each other's settings, a run holds a lock on the server.
"""

import json
import os
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING

import platformdirs

from stallmark.driver.engines.errors import CallFailed, StallmarkError

if TYPE_CHECKING:
    from stallmark.driver.engines.mssql.engine import MssqlEngine

MIB = 1024**2
SMALLEST_BYTES = 2048 * MIB  # for the whole server; below, 2017 and later do not serve a load
REACHED_WITHIN_S = 300
CLOSE_ENOUGH = 1.05  # Total over Target Server Memory

_CAP, _ADVANCED = "max server memory (MB)", "show advanced options"

_COUNTERS = """\
SELECT RTRIM(counter_name), cntr_value
  FROM sys.dm_os_performance_counters
 WHERE counter_name IN ('Target Server Memory (KB)', 'Total Server Memory (KB)')
"""
_PERMITTED = "SELECT HAS_PERMS_BY_NAME(NULL, NULL, 'ALTER SETTINGS')"


def cannot(engine: "MssqlEngine") -> str | None:
    """Why the cap cannot be set on this server, as a sentence; None when it can."""
    if engine.is_azure_database:
        return "Azure SQL Database has no `max server memory`: choose a service tier for every size instead"
    if engine.identity().product != "SQL Server":
        return f"{engine.identity().product} has no `max server memory`"
    [(permitted,)] = engine.query(_PERMITTED)
    if not permitted:
        return "this login may not change `max server memory`: GRANT ALTER SETTINGS TO it, or use sysadmin"
    return None


def target_bytes(engine: "MssqlEngine") -> int | None:
    """What the server may hold (Target Server Memory), and will when its load needs it; None where it does not tell."""
    return _counters(engine).get("Target Server Memory (KB)")


def cap(engine: "MssqlEngine", size_bytes: int) -> int:
    """Set the cap and wait until the server has come down to it; returns the bytes it may hold then.

    Raises StallmarkError when it has not after five minutes.
    """
    megabytes = size_bytes // MIB
    Journal(_server_name(engine)).note(_configured(engine))
    _configure(engine, {_ADVANCED: 1, _CAP: megabytes})
    deadline = time.monotonic() + REACHED_WITHIN_S
    while True:
        known = _counters(engine)
        total, target = known.get("Total Server Memory (KB)"), known.get("Target Server Memory (KB)")
        if total is None or target is None:
            raise StallmarkError(
                "The server does not tell how much memory it holds: GRANT VIEW SERVER STATE to this login, "
                "without which no cap can be trusted."
            )
        if total <= CLOSE_ENOUGH * min(target, size_bytes):
            return min(target, size_bytes)
        if time.monotonic() > deadline:
            raise StallmarkError(
                f"The server still holds {total // MIB:,} MiB {REACHED_WITHIN_S // 60} minutes after "
                f"`{_CAP}` was set to {megabytes:,}: something keeps memory from it (locked pages, other databases)."
            )
        time.sleep(1)


def give_back(engine: "MssqlEngine") -> None:
    """Restore what the journal holds for this server, if it holds anything."""
    journal = Journal(_server_name(engine))
    if not (original := journal.read()):
        return
    try:
        _configure(engine, original)
    except CallFailed as error:
        wanted = " and ".join(f"'{name}' to {value}" for name, value in original.items())
        raise StallmarkError(
            f"The server's memory settings could not be given back ({error.message}): set {wanted} with "
            f"sp_configure yourself, then remove {journal.path}."
        ) from None
    journal.remove()


class Journal:
    """The original settings of one server, on this machine's disk, written before they are changed."""

    def __init__(self, server: str):
        folder = Path(os.environ.get("STALLMARK_STATE") or platformdirs.user_state_dir("stallmark"))
        self.path = folder / "changed-settings" / f"{re.sub(r'[^A-Za-z0-9.-]', '_', server)}.json"

    def note(self, original: dict[str, int]) -> None:
        """Keep the originals; what an earlier note says stays, because only that one was original."""
        if self.read():
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        draft = self.path.with_suffix(".new")
        with draft.open("w") as file:
            json.dump(original, file)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(self.path)

    def read(self) -> dict[str, int]:
        return json.loads(self.path.read_text()) if self.path.exists() else {}

    def remove(self) -> None:
        self.path.unlink()


def _configured(engine: "MssqlEngine") -> dict[str, int]:
    rows = engine.query(
        "SELECT name, CAST(value AS bigint) FROM sys.configurations WHERE name IN (?, ?)", [_CAP, _ADVANCED]
    )
    return dict(rows)


def _configure(engine: "MssqlEngine", values: dict[str, int]) -> None:
    """The cap is an advanced option: those must be shown while it is set."""
    engine.execute(f"EXEC sp_configure '{_ADVANCED}', 1; RECONFIGURE")
    engine.execute(f"EXEC sp_configure '{_CAP}', {int(values[_CAP])}; RECONFIGURE")
    engine.execute(f"EXEC sp_configure '{_ADVANCED}', {int(values[_ADVANCED])}; RECONFIGURE")


def _server_name(engine: "MssqlEngine") -> str:
    """As the server calls itself: a URL may name it in several ways."""
    [(name,)] = engine.query("SELECT CAST(SERVERPROPERTY('ServerName') AS nvarchar(128)) AS name")
    return name


def _counters(engine: "MssqlEngine") -> dict[str, int]:
    try:
        return {name: kilobytes * 1024 for name, kilobytes in engine.query(_COUNTERS)}
    except CallFailed:
        return {}
