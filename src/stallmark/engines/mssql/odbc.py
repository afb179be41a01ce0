"""The ODBC driver, and T-SQL by it: names and texts quoted, statements run to their end, their one row taken."""

import ctypes
import platform
import sys
import time
from collections.abc import Sequence, Sized
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

from stallmark.engines.mssql.errors import failed
from stallmark.errors import StallmarkError

# The ODBC driver: the one of this machine, and what is missing when it has none.
#
# Microsoft's driver 18 (or 17) as installed, else the one inside the wheel `mssql-python-odbc`. No other is used:
# FreeTDS takes any certificate, and drops options of the URL that it does not know without a word.


INSTALLED = ("ODBC Driver 18 for SQL Server", "ODBC Driver 17 for SQL Server")
INSTALL = "Microsoft's comes with pip install 'stallmark[sqlserver]', or with the package msodbcsql18."
_MICROSOFTS_FILES = ("libmsodbcsql", "msodbcsql")

# Where the wheel keeps the driver: by operating system, then by C library or distribution, then by machine.
_IN_WHEEL = {
    "Linux": "libs/linux/*/{machine}/lib/libmsodbcsql-*.so.*",
    "Darwin": "libs/macos/{machine}/lib/libmsodbcsql.*.dylib",
    "Windows": "libs/windows/{machine}/msodbcsql*.dll",
}
_FAMILY = {"alpine": "alpine", "debian": "debian_ubuntu", "ubuntu": "debian_ubuntu", "rhel": "rhel", "suse": "suse"}
_NEEDED = {"libgssapi_krb5.so.2": "apt-get install libgssapi-krb5-2", "libssl.so.3": "apt-get install libssl3"}


@dataclass(frozen=True)
class Driver:
    """`name` as it stands in a connection string after `Driver=`."""

    name: str

    def __str__(self) -> str:
        return Path(self.name).name if "/" in self.name or "\\" in self.name else self.name


def loaded_driver(connection: Any) -> str:
    """Return file and version of a connection's driver, as "libmsodbcsql-18.6.so.2.1 18.06.0002". Raise StallmarkError
    if another driver is installed under the name of Microsoft's."""
    odbc = api()
    name = str(connection.getinfo(odbc.SQL_DRIVER_NAME))
    if not name.startswith(_MICROSOFTS_FILES):
        raise StallmarkError(f"{name} is installed under the name of Microsoft's ODBC driver and is not it. {INSTALL}")
    return f"{name} {connection.getinfo(odbc.SQL_DRIVER_VER)}"


@cache
def api() -> Any:
    """Return the module pyodbc, with its pooling off: every virtual user has a connection of its own.

    Raise StallmarkError with what is to be installed.
    """
    try:
        import pyodbc
    except ModuleNotFoundError:
        raise StallmarkError("SQL Server needs more packages: pip install 'stallmark[sqlserver]'.") from None
    except ImportError as error:
        raise StallmarkError(
            f"SQL Server needs the ODBC driver manager, which is missing ({error}): apt-get install libodbc2."
        ) from None
    pyodbc.pooling = False
    return pyodbc


@cache
def find_driver() -> Driver:
    """Return Microsoft's driver of this machine, the newest first. Raise StallmarkError if none can be loaded."""
    installed = api().drivers()
    for name in INSTALLED:
        if name in installed:
            return Driver(name)
    if path := _in_wheel():
        if missing := missing_libraries():
            raise StallmarkError(f"Microsoft's ODBC driver is here and cannot be loaded: {' '.join(missing)}")
        return Driver(str(path))
    if "FreeTDS" in installed:
        raise StallmarkError(f"FreeTDS is not used: it takes any certificate and drops options of the URL. {INSTALL}")
    raise StallmarkError(f"There is no ODBC driver for SQL Server. {INSTALL}")


def missing_libraries() -> list[str]:
    """Return the libraries that Microsoft's driver needs and this Linux lacks, as sentences."""
    if sys.platform != "linux":
        return []
    missing = []
    for library, remedy in _NEEDED.items():
        try:
            ctypes.CDLL(library)
        except OSError:
            missing.append(f"{library} is missing: {remedy}.")
    return missing


def _in_wheel() -> Path | None:
    spec = find_spec("mssql_python_odbc")
    if spec is None or spec.origin is None:
        return None
    machine = platform.machine().lower().replace("aarch64", "arm64")
    pattern = _IN_WHEEL.get(platform.system(), "").format(machine=machine.replace("amd64", "x86_64"))
    found = sorted(Path(spec.origin).parent.glob(pattern)) if pattern else []
    ours = [path for path in found if _family() in path.parts]
    return next(iter(ours or found), None)


def _family() -> str:
    """Return the wheel's word for this Linux; an empty text elsewhere."""
    try:
        known = platform.freedesktop_os_release()
    except OSError:
        return ""
    names = [known.get("ID", ""), *known.get("ID_LIKE", "").split()]
    return next((_FAMILY[name] for name in names if name in _FAMILY), "")


# T-SQL: names and texts quoted, statements run to their end, their one row taken.

_Row = TypeVar("_Row", bound=Sized)

MODEL_IN_USE = "1807"
MODEL_IS_FREE_WITHIN_S = 30


def name(text: str) -> str:
    """Return a delimited identifier."""
    return f"[{text.replace(']', ']]')}]"


def text(value: str) -> str:
    """Return a Unicode constant."""
    return "N'" + value.replace("'", "''") + "'"


def stay_open(database: str) -> str:
    """Return the statement by which a database no longer closes, and loses its pages, once no session is in it."""
    return f"ALTER DATABASE {name(database)} SET AUTO_CLOSE OFF"


def execute(connection: Any, statement: str) -> None:
    """Run a statement. Raise the driver's errors.

    CREATE DATABASE copies `model`, which another session may be in, as just after a start: then it is tried again for
    a while.
    """
    deadline = time.monotonic() + MODEL_IS_FREE_WITHIN_S
    while True:
        try:
            rows(connection.execute(statement))
            return
        except api().Error as error:
            if failed(error).code != MODEL_IN_USE or time.monotonic() > deadline:
                raise
        time.sleep(1)


def rows(cursor: Any) -> list[tuple]:
    """Return the rows of all results of what was executed, one result after the other.

    All results are read: the error of a later statement comes with its own, a backup whose messages are not read is
    broken off, and what is unread keeps the connection busy.
    """
    found: list[tuple] = []
    more = True
    while more:
        if cursor.description:
            found += map(tuple, cursor.fetchall())
        more = cursor.nextset()
    return found


def one_row(answer: Sequence[_Row], columns: int) -> _Row:
    """Return the row of a statement that must answer one. Raise StallmarkError if the server answered otherwise."""
    if len(answer) != 1 or len(answer[0]) != columns:
        raise StallmarkError("the server did not answer with the one row that was asked for")
    return answer[0]
