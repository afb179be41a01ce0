"""pgbouncer before a server that is not ours, in each of its modes."""

import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from support.remote import PASSWORD, PREFIX, Remote, free_port
from support.waiting import eventually

PROGRAM = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")


@contextmanager
def pooler(remote: Remote, folder: Path, mode: str, ignored: str = "extra_float_digits") -> Iterator[Remote]:
    """Yield the same server as it is reached through a pooler; skip the test without the program."""
    if PROGRAM is None:
        pytest.skip("pgbouncer is not installed: apt-get install pgbouncer")
    port = free_port()
    users, settings = folder / "users.txt", folder / "pgbouncer.ini"
    users.write_text("".join(f'"{name}" "{PASSWORD}"\n' for name in ("boss", "plain")))
    settings.write_text(
        f"[databases]\nwork = host=127.0.0.1 port={remote.port} dbname=work\n[pgbouncer]\nlisten_addr = 127.0.0.1\n"
        f"listen_port = {port}\nunix_socket_dir =\nauth_type = scram-sha-256\nauth_file = {users}\npool_mode = {mode}\n"
        f"ignore_startup_parameters = {ignored}\n"
    )
    for path in (folder, users, settings):
        path.chmod(0o755)
    with (folder / "log").open("w") as log:
        process = subprocess.Popen([*PREFIX, PROGRAM, settings], stdout=log, stderr=log)

        def answers() -> bool:
            assert process.poll() is None, (folder / "log").read_text()
            try:
                psycopg.connect(Remote(folder, port).url()).close()
            except psycopg.OperationalError:
                return False
            return True

        try:
            eventually(answers, "a pooler that answers")
            yield Remote(folder, port)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait()
