"""Restoring a database of a user's on a server by URL, from an archive of pg_dump."""

import os
import shutil
import subprocess
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict, make_conninfo

from stallmark.engines.abilities import UserBackup
from stallmark.engines.base import Engine
from stallmark.engines.postgres.session import first_line
from stallmark.errors import StallmarkError

PROGRAM = "pg_restore"


class Archive(UserBackup):
    """An archive of pg_dump, whose objects pg_restore drops and makes again.

    A copy of a template database would be faster. But the old database would have to be dropped, and with it the lock
    of the run, its settings and its rights.
    """

    def __init__(self, engine: Engine):
        self._engine = engine

    def refuse(self, source: str) -> None:
        if "sslpassword" in conninfo_to_dict(self._engine.spec()):
            raise StallmarkError(
                f"{PROGRAM} takes an sslpassword on its command line alone, which everybody on this machine can read: "
                "name a key without a passphrase, or restore by a command."
            )
        if shutil.which(PROGRAM) is None:
            raise StallmarkError(
                f"{PROGRAM} is not there to restore {source}: install the client programs of PostgreSQL "
                f"{self._engine.identity().version[0]} or later."
            )
        if not Path(source).is_file():
            raise StallmarkError(f"{source} is not a file of this machine: make it by pg_dump -Fc.")
        self._run(["--list", source], f"{source} cannot be restored")

    def restore(self, source: str) -> None:
        known = {key: str(value) for key, value in conninfo_to_dict(self._engine.spec()).items() if key != "password"}
        target = make_conninfo(**known, application_name="stallmark-restore")
        options = ["--clean", "--if-exists", "--no-owner", "--single-transaction", "--dbname", target]
        self._run([*options, source], f"Restoring {self._engine.database_name()} failed")
        # As after each build: the planner's statistics, and pages that no run is the first to write for it.
        self._engine.execute("VACUUM (FREEZE, ANALYZE)")

    def _run(self, arguments: list[str], problem: str) -> None:
        environment = dict(os.environ)
        if password := self._engine.login().password:  # arguments are seen by all users of this machine
            environment["PGPASSWORD"] = password
        argv = [PROGRAM, *arguments]
        done = subprocess.run(
            argv, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
        if done.returncode:
            reason = first_line(done.stderr.replace(f"{PROGRAM}: error: ", ""))
            raise StallmarkError(f"{problem} ({reason}): make it by pg_dump -Fc, or restore it by a command.")
