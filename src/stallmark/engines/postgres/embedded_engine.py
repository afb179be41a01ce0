"""The embedded engine, which can do what a remote one refuses, and its databases as they are on disk."""

import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil
from psycopg import sql

from stallmark.engines.abilities import (
    Backup,
    Caches,
    Folders,
    Memory,
    Missing,
    Placement,
    Recorded,
    ServerArrays,
    Tracing,
    VariantSetting,
)
from stallmark.engines.postgres import MINIMUM_POOL_BYTES, embedded_copies, settings
from stallmark.engines.postgres.embedded_copies import bytes_in, shares_blocks
from stallmark.engines.postgres.embedded_ownership import MARKER, is_of
from stallmark.engines.postgres.embedded_server import EmbeddedServer, check_pool
from stallmark.engines.postgres.engine import SYSTEM_DATABASE, PostgresEngine
from stallmark.errors import StallmarkError, as_reason
from stallmark.storage.emulator import ArrayModel, EmulatedArrayError
from stallmark.storage.emulator.arrays import EmulatedArrays
from stallmark.storage.io_trace import IoTrace

# Embedded databases as they lie on disk, found without starting a server.


_CONTENT = "content.json"


@dataclass(frozen=True)
class FoundDatabase:
    """A folder with an embedded database."""

    folder: Path
    wal_folder: Path | None
    holds: Sequence[Mapping[str, Any]]
    """Workload, scale and seed of each database in it; empty if an older version did not note them."""
    bytes: int
    used: datetime
    in_use_by: str | None
    """The process that has the folder open."""

    @property
    def name(self) -> str:
        return self.folder.name

    def remove(self) -> None:
        """Remove it with its copy and its WAL. Raise StallmarkError when it is in use."""
        wal = self.wal_folder
        if wal and not is_of(wal, self.folder):
            raise StallmarkError(
                f"The WAL of {self.folder} is in {wal}, which is not marked as its own: check that folder."
            )
        EmbeddedServer(self.folder, wal).remove()


def find(*places: Path) -> Iterator[FoundDatabase]:
    """Yield the databases that are these folders or are directly in them, sorted by name within each folder."""
    for place in places:
        within = sorted(place.iterdir()) if place.is_dir() else []
        for folder in [place, *within]:
            if (folder / MARKER).is_file():
                yield _describe_database(folder)


def note_content(folder: Path, content: Mapping[str, Any]) -> None:
    """Note a database in the place of what was noted of the same workload: a folder may hold one of each."""
    others = [held for held in _holds(folder) if held.get("workload") != content["workload"]]
    (folder / _CONTENT).write_text(json.dumps([*others, content]) + "\n")


def _describe_database(folder: Path) -> FoundDatabase:
    wal = folder / "data" / "pg_wal"
    elsewhere = wal.resolve() if wal.is_symlink() else None
    used = datetime.fromtimestamp((folder / MARKER).stat().st_mtime, UTC)
    size = bytes_in(folder) + (bytes_in(elsewhere) if elsewhere and is_of(elsewhere, folder) else 0)
    return FoundDatabase(folder, elsewhere, _holds(folder), size, used, _user(folder))


def _holds(folder: Path) -> list[dict[str, Any]]:
    try:
        content = json.loads((folder / _CONTENT).read_text())
    except (OSError, ValueError):
        return []
    noted = content if isinstance(content, list) else [content]  # a version before noted the last database alone
    return [entry for entry in noted if isinstance(entry, dict)]


def _user(folder: Path) -> str | None:
    """Return the process that has the lock of a database; None if none has it."""
    import fcntl  # not on Windows, where there is no embedded server

    try:
        lock = os.open(folder / "lock", os.O_RDONLY)
    except OSError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return os.read(lock, 32).decode() or "unknown"
    finally:
        os.close(lock)
    return None


# The embedded engine: a database on a server of our own, which can do what a remote one refuses.


class EmbeddedMemory(Memory):
    smallest_bytes = MINIMUM_POOL_BYTES

    def __init__(self, engine: "EmbeddedEngine"):
        self.largest_bytes = psutil.virtual_memory().total
        self._engine = engine
        self._original_bytes = engine.server.buffer_pool_bytes

    def cap(self, size_bytes: int) -> int:
        server = self._engine.server
        if size_bytes != server.buffer_pool_bytes:
            check_pool(size_bytes)
            server.stop()
            server.buffer_pool_bytes = size_bytes
        server.start()
        return self._engine.buffer_pool_bytes()

    def give_back(self) -> None:
        self.cap(self._original_bytes)


class EmbeddedCaches(Caches):
    def __init__(self, server: EmbeddedServer):
        self._server = server

    def empty(self) -> list[str]:
        """Restart: with direct I/O the pool is the only cache of data pages on this machine."""
        self._server.stop()
        self._server.start()
        return []


class EmbeddedBackup(Backup):
    """A copy of the data directory, made while the server is stopped."""

    of_server = True

    def __init__(self, server: EmbeddedServer):
        self._server = server

    def label(self) -> str | None:
        return self._server.snapshot.label

    def keep(self, label: str) -> None:
        self._server.keep(label)

    def restore(self, to: Folders | None = None) -> None:
        self._server.restore(to)

    def refuse_folders(self, to: Folders, size_bytes: int) -> None:
        embedded_copies.refuse_impossible_folders(self._server.folder, to, size_bytes)

    def bring_home(self) -> None:
        self._server.bring_home()

    def drop(self) -> None:
        self._server.snapshot.drop()

    def copy_bytes(self, size_bytes: int) -> int:
        return 0 if shares_blocks(self._server.folder) else size_bytes


class EmbeddedSettings(VariantSetting):
    """Settings on the command line of the server, which is restarted: they end with it, whatever happens to us."""

    def __init__(self, engine: "EmbeddedEngine"):
        self._engine = engine
        self._names: set[str] = set()

    def check(self, wanted: Mapping[str, str]) -> None:
        settings.refuse_reserved(self._engine, wanted, is_ours=True)
        try:
            # PostgreSQL judges some values, and values together, only when it starts.
            self.make(wanted)
        finally:
            self.give_back()
            self._engine.server.start()
        self._names.update(wanted)

    def recorded(self) -> Recorded:
        return settings.recorded(self._engine, self._names)

    def make(self, wanted: Mapping[str, str]) -> None:
        server = self._engine.server
        if wanted == server.settings:
            return
        server.stop()
        server.settings = wanted
        try:
            server.start()
        except StallmarkError as error:
            server.settings = {}
            raise StallmarkError(f"With `settings: {{{settings.in_words(wanted)}}}`: {error}") from None

    def give_back(self) -> None:
        self.make({})


class EmbeddedDevices(ServerArrays):
    def __init__(self, server: EmbeddedServer):
        self._server = server

    @property
    def models(self) -> Mapping[str, ArrayModel]:
        return self._server.models or {}

    @property
    def array(self) -> EmulatedArrays | None:
        return self._server.devices

    def refusal(self) -> str | None:
        return _build_failure(EmulatedArrays.prepare, self._server)

    def use(self, models: Mapping[str, ArrayModel] | None) -> None:
        self._server.use_devices(models)
        self._server.start()

    def engage(self) -> None:
        self._server.engage_devices()

    def relax(self) -> None:
        self._server.relax_devices()


class EmbeddedTracing(Tracing):
    def __init__(self, server: EmbeddedServer):
        self._server = server

    @property
    def trace(self) -> IoTrace | None:
        return self._server.trace

    def refusal(self) -> str | None:
        return _build_failure(IoTrace.prepare, self._server)

    def use(self) -> None:
        self._server.use_trace()
        self._server.start()


def _build_failure(prepare: Callable[[Path], Path], server: EmbeddedServer) -> str | None:
    """Return the reason why a library for the server's processes cannot be built, which is found before anything is
    loaded.
    """
    try:
        prepare(server.folder)
    except EmulatedArrayError as error:
        reason = as_reason(error)
        return f"{reason[0].lower()}{reason[1:]}"
    return None


class EmbeddedEngine(PostgresEngine):
    """A database on an embedded server."""

    is_local = True
    no_restart_reason = "Stallmark restarts the embedded server itself"

    def __init__(self, server: EmbeddedServer, database: str):
        server.start()
        self.server = server
        super().__init__(server.url(database))
        self.memory = EmbeddedMemory(self)
        self.caches = EmbeddedCaches(server)
        self.backup = EmbeddedBackup(server)
        self.user_backup = Missing("the embedded database starts from a copy of its own: write `reset: restore`")
        self.placement = Placement()
        self.devices = EmbeddedDevices(server)
        self.tracing = EmbeddedTracing(server)
        self.variant_settings = {**self.variant_settings, "settings": EmbeddedSettings(self)}
        self._admin = PostgresEngine(server.url(SYSTEM_DATABASE))
        if not self._admin.has_database(database):
            self._admin.make_database(database)

    def clear_database(self) -> None:
        name = self.database_name()
        self._admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)).as_string())
        self._admin.make_database(name)

    def on_database(self, name: str) -> "EmbeddedEngine":
        return EmbeddedEngine(self.server, name)

    @contextmanager
    def hold(self) -> Iterator[Callable[[], None]]:
        """Do nothing: the folder is locked while the server is open."""
        yield lambda: None

    def directories(self) -> dict[str, Path]:
        return self.server.directories()

    def storage_here(self) -> dict[str, Path]:
        return self.directories()

    def built_in(self) -> dict[str, Path]:
        wal = self.server.wal_folder
        return {"data": self.server.folder.resolve(), **({"wal": wal.resolve()} if wal else {})}

    def note_content(self, content: Mapping[str, Any]) -> None:
        note_content(self.server.folder, content)

    def free_bytes(self) -> int:
        return shutil.disk_usage(self.server.data).free

    def cores(self) -> int:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

    def process(self) -> int | None:
        return self.server.process()

    def unexpected_end(self) -> str | None:
        return self.server.unexpected_end()

    def close(self) -> None:
        self.server.close()
