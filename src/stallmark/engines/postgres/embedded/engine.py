"""The embedded engine: a database on a server of our own, which can do what a remote one refuses."""

import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from stallmark.engines.abilities import Backup, Caches, Folders, Memory, Placement, ServerArrays, Tracing
from stallmark.engines.postgres.embedded import placed
from stallmark.engines.postgres.embedded.copies import shares_blocks
from stallmark.engines.postgres.embedded.found import note_content
from stallmark.engines.postgres.embedded.server import MINIMUM_POOL_BYTES, EmbeddedServer, check_pool
from stallmark.engines.postgres.engine import SYSTEM_DATABASE, PostgresEngine
from stallmark.errors import as_reason
from stallmark.storage.emulator import ArrayModel, EmulatedArrayError, EmulatedArrays
from stallmark.storage.io_trace import IoTrace


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
        return self._server.snapshot.of

    def keep(self, label: str) -> None:
        self._server.keep(label)

    def restore(self, to: Folders | None = None) -> None:
        self._server.restore(to)

    def refuse_folders(self, to: Folders, size_bytes: int) -> None:
        placed.refuse_impossible(self._server.folder, to, size_bytes)

    def bring_home(self) -> None:
        self._server.bring_home()

    def drop(self) -> None:
        self._server.snapshot.drop()

    def copy_bytes(self, size_bytes: int) -> int:
        return 0 if shares_blocks(self._server.folder) else size_bytes


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
        return _why_not(EmulatedArrays.prepare, self._server)

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
        return _why_not(IoTrace.prepare, self._server)

    def use(self) -> None:
        self._server.use_trace()
        self._server.start()


def _why_not(prepare: Callable[[Path], Path], server: EmbeddedServer) -> str | None:
    """Return why a library for the server's processes cannot be built, which is found before anything is loaded."""
    try:
        prepare(server.folder)
    except EmulatedArrayError as error:
        why = as_reason(error)
        return f"{why[0].lower()}{why[1:]}"
    return None


class EmbeddedEngine(PostgresEngine):
    """A database on an embedded server."""

    is_local = True

    def __init__(self, server: EmbeddedServer, database: str):
        server.start()
        self.server = server
        super().__init__(server.url(database))
        self.memory = EmbeddedMemory(self)
        self.caches = EmbeddedCaches(server)
        self.backup = EmbeddedBackup(server)
        self.placement = Placement()
        self.devices = EmbeddedDevices(server)
        self.tracing = EmbeddedTracing(server)
        admin = PostgresEngine(server.url(SYSTEM_DATABASE))
        if not admin.has_database(database):
            admin.make_database(database)

    def on_database(self, name: str) -> "EmbeddedEngine":
        return EmbeddedEngine(self.server, name)

    @contextmanager
    def hold(self) -> Iterator[Callable[[], None]]:
        """Do nothing: the folder is ours alone as long as the server is open."""
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

    def gone(self) -> str | None:
        return self.server.gone()

    def close(self) -> None:
        self.server.close()
