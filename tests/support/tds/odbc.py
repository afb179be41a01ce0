"""Where Microsoft's ODBC driver is, and how it is told to connect."""

import configparser
import ctypes
import functools
import importlib.util
import platform
import subprocess
from pathlib import Path

import pytest

DRIVER = "ODBC Driver 18 for SQL Server"


@functools.cache
def find_driver() -> str | None:
    """Return the value of DRIVER=: an installed driver's name, or the file in the wheel mssql-python-odbc."""
    return _installed() or _in_wheel()


@functools.cache
def missing() -> str | None:
    """Say what keeps pyodbc and Microsoft's driver from working here; None: they do."""
    try:
        import pyodbc
    except ImportError as error:
        return f"pyodbc does not load ({error}): pip install pyodbc, and apt install libodbc2."
    pyodbc.pooling = False  # before the first connection
    driver = find_driver()
    if driver is None:
        return "Microsoft's ODBC driver is not here: pip install mssql-python-odbc."
    if "/" in driver:
        try:
            ctypes.CDLL(driver)
        except OSError as error:
            return f"Microsoft's ODBC driver does not load ({error}): apt install libgssapi-krb5-2 libssl3."
    return None


def connection_string(
    port: int,
    *,
    database: str = "stallmark",
    user: str = "tester",
    password: str = "not a secret",
    encrypt: str = "no",
    **more: object,
) -> str:
    """For a responder on this machine. `more`: any other keyword, such as APP or LoginTimeout."""
    fields = {
        "DRIVER": f"{{{find_driver()}}}", "SERVER": f"tcp:127.0.0.1,{port}", "DATABASE": database, "UID": user,
        "PWD": f"{{{password}}}", "Encrypt": encrypt, "TrustServerCertificate": "yes", **more,
    }  # fmt: skip
    return ";".join(f"{name}={value}" for name, value in fields.items())


def _installed() -> str | None:
    try:
        found = subprocess.run(["odbcinst", "-q", "-d"], capture_output=True, text=True).stdout
    except FileNotFoundError:
        return DRIVER if _in_file(Path("/etc/odbcinst.ini")) else None
    return DRIVER if f"[{DRIVER}]" in found else None


def _in_file(path: Path) -> bool:
    parser = configparser.RawConfigParser()
    try:
        parser.read(path)
    except configparser.Error:
        return False
    return DRIVER in parser


def _in_wheel() -> str | None:
    spec = importlib.util.find_spec("mssql_python_odbc")
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent / "libs" / "linux" / "debian_ubuntu"
    machine = {"aarch64": "arm64"}.get(platform.machine(), platform.machine())
    return next((str(path) for path in sorted((folder / machine).glob("lib/libmsodbcsql-18.*.so.*"))), None)


needs_odbc = pytest.mark.skipif(missing() is not None, reason=missing() or "")
"""For tests that open an engine of SQL Server."""
