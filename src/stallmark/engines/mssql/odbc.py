"""The ODBC driver, T-SQL by it, and its errors as ours: names and texts quoted, statements run to their end."""

import ctypes
import platform
import re
import struct
import sys
import time
from collections.abc import Sequence, Sized
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

from stallmark.errors import CallFailed, ErrorClass, StallmarkError
from stallmark.stopping import lost_in

# SQL Server's errors as ours, by their number (sys.messages) or, where there is none, by SQLSTATE.

_BY_NUMBER = {
    1205: ErrorClass.DEADLOCK,
    1222: ErrorClass.LOCK_TIMEOUT,
    3960: ErrorClass.SERIALIZATION,
    3961: ErrorClass.SERIALIZATION,
    41301: ErrorClass.SERIALIZATION,  # memory-optimised tables: depends on a transaction that was aborted
    41302: ErrorClass.SERIALIZATION,
    41305: ErrorClass.SERIALIZATION,
    41325: ErrorClass.SERIALIZATION,
    41839: ErrorClass.SERIALIZATION,  # too many such dependencies
    845: ErrorClass.TIMEOUT,  # waiting for a page's latch
    8628: ErrorClass.TIMEOUT,  # waiting to be compiled
    8645: ErrorClass.TIMEOUT,  # waiting for a memory grant
    1101: ErrorClass.OUT_OF_SPACE,
    1104: ErrorClass.OUT_OF_SPACE,  # tempdb, for what a query spills
    1105: ErrorClass.OUT_OF_SPACE,
    1121: ErrorClass.OUT_OF_SPACE,
    1132: ErrorClass.OUT_OF_SPACE,  # Azure: the elastic pool
    1133: ErrorClass.OUT_OF_SPACE,  # Azure: the managed instance
    1136: ErrorClass.OUT_OF_SPACE,  # Azure: tempdb
    1138: ErrorClass.OUT_OF_SPACE,  # the workload group may have no more of tempdb
    3907: ErrorClass.OUT_OF_SPACE,  # row versions that are kept in the database, as the next
    3911: ErrorClass.OUT_OF_SPACE,
    3958: ErrorClass.OUT_OF_SPACE,  # row versions that are kept in tempdb, as the next
    3966: ErrorClass.OUT_OF_SPACE,
    9002: ErrorClass.OUT_OF_SPACE,
    40544: ErrorClass.OUT_OF_SPACE,  # Azure: the size of the database
    40551: ErrorClass.OUT_OF_SPACE,  # Azure: the session ends for what it has of tempdb
    40552: ErrorClass.OUT_OF_SPACE,  # Azure: the session ends for what it has of the log
    41822: ErrorClass.OUT_OF_SPACE,  # checkpoint of memory-optimised tables
    823: ErrorClass.STORAGE,
    824: ErrorClass.STORAGE,
    211: ErrorClass.STORAGE,  # the catalogue does not fit itself
    605: ErrorClass.STORAGE,  # a page of another object was read
    610: ErrorClass.STORAGE,  # a page's header is not valid
    822: ErrorClass.STORAGE,  # no read or write could be started
    825: ErrorClass.STORAGE,
    829: ErrorClass.STORAGE,  # a page that a restore is to bring
    832: ErrorClass.STORAGE,  # a page changed in memory
    926: ErrorClass.STORAGE,  # the database is suspect
    1102: ErrorClass.STORAGE,  # an allocation map is wrong
    3313: ErrorClass.STORAGE,  # a record of the log could not be applied, as the next
    3314: ErrorClass.STORAGE,
    3864: ErrorClass.STORAGE,  # no entry of an index in the catalogue
    3908: ErrorClass.STORAGE,  # the database is damaged
    5159: ErrorClass.STORAGE,  # an error of the operating system on a file
    5180: ErrorClass.STORAGE,  # a page points to a file that is not there
    5242: ErrorClass.STORAGE,  # an inconsistency, as the next
    5243: ErrorClass.STORAGE,
    7105: ErrorClass.STORAGE,  # a part of a long value is lost; dirty reads, which we do not do, meet it too
    8646: ErrorClass.STORAGE,  # an index does not fit its table, as 9100
    9001: ErrorClass.STORAGE,
    9003: ErrorClass.STORAGE,  # a number in the log that is beyond its end
    9004: ErrorClass.STORAGE,  # a record of the log
    9100: ErrorClass.STORAGE,
    701: ErrorClass.OUT_OF_MEMORY,
    802: ErrorClass.OUT_OF_MEMORY,  # no page of the buffer pool
    1204: ErrorClass.OUT_OF_MEMORY,  # wait for another lock
    8651: ErrorClass.OUT_OF_MEMORY,  # no grant, as the next
    8657: ErrorClass.OUT_OF_MEMORY,
    8902: ErrorClass.OUT_OF_MEMORY,  # raised in DBCC
    17803: ErrorClass.OUT_OF_MEMORY,  # wait for another session
    40553: ErrorClass.OUT_OF_MEMORY,  # Azure: the session ends for its memory
    41805: ErrorClass.OUT_OF_MEMORY,  # this and the next: memory-optimised tables
    41823: ErrorClass.OUT_OF_MEMORY,
    41840: ErrorClass.OUT_OF_MEMORY,
    8642: ErrorClass.RESOURCE_LIMIT,  # no threads for a parallel query
    10928: ErrorClass.RESOURCE_LIMIT,  # Azure: workers or sessions of the database, as the next
    10929: ErrorClass.RESOURCE_LIMIT,
    10936: ErrorClass.RESOURCE_LIMIT,  # the elastic pool's limit
    40550: ErrorClass.RESOURCE_LIMIT,  # Azure: the session ends for its locks
    49918: ErrorClass.RESOURCE_LIMIT,  # Azure: too few resources for the request, as the next
    49919: ErrorClass.RESOURCE_LIMIT,
    49920: ErrorClass.RESOURCE_LIMIT,
    64: ErrorClass.CONNECTION_LOST,  # Windows: the network name is gone
    121: ErrorClass.CONNECTION_LOST,  # Windows: the semaphore timeout
    233: ErrorClass.CONNECTION_LOST,
    596: ErrorClass.CONNECTION_LOST,  # the session was killed
    1219: ErrorClass.CONNECTION_LOST,  # the session had to give way to a DDL statement
    6005: ErrorClass.CONNECTION_LOST,  # shutdown in progress
    10053: ErrorClass.CONNECTION_LOST,
    10054: ErrorClass.CONNECTION_LOST,
    10060: ErrorClass.CONNECTION_LOST,
    40197: ErrorClass.CONNECTION_LOST,  # Azure: reconfigured under way
    # Azure: too busy. "Error Messages (Azure SQL Database)" has it of severity 20, which ends a session, and among the
    # errors of connection loss.
    40501: ErrorClass.CONNECTION_LOST,
    40549: ErrorClass.CONNECTION_LOST,  # Azure: the session ends for its long transaction
    40613: ErrorClass.CONNECTION_LOST,  # Azure: the database moves
}
STORAGE_ERRORS = frozenset(number for number, kind in _BY_NUMBER.items() if kind is ErrorClass.STORAGE)
# Refused before anything was done, as by a replica that is not the primary any more: another login finds the primary.
_REFUSED_HERE = {
    921: ErrorClass.CONNECTION_LOST,  # not recovered yet, as the next
    922: ErrorClass.CONNECTION_LOST,
    952: ErrorClass.CONNECTION_LOST,  # between two states
    954: ErrorClass.CONNECTION_LOST,  # a mirror
    976: ErrorClass.CONNECTION_LOST,  # a secondary that nobody may read
    978: ErrorClass.CONNECTION_LOST,  # a secondary for those alone who only read
    983: ErrorClass.CONNECTION_LOST,  # neither primary nor secondary: it is failing over
    988: ErrorClass.CONNECTION_LOST,  # no quorum
    3906: ErrorClass.CONNECTION_LOST,  # read-only: it was the primary
    4221: ErrorClass.CONNECTION_LOST,  # a secondary that has no row versions yet
}
_BY_NUMBER |= _REFUSED_HERE
_BY_STATE = {
    "40001": ErrorClass.DEADLOCK,
    "HYT00": ErrorClass.TIMEOUT,
    "HYT01": ErrorClass.CONNECTION_LOST,
    "HY008": ErrorClass.TIMEOUT,  # cancelled
    "08004": ErrorClass.OTHER,  # refused, as the way into another database is (916): this connection is there
    "08": ErrorClass.CONNECTION_LOST,
    "01002": ErrorClass.CONNECTION_LOST,
}
# A general error or warning of the driver: it does not say whether the server got the call.
_DRIVERS_OWN = ("HY000", "01000")
_BY_SERVER = "[SQL Server]"  # stands in front of each message of a server
# Babelfish has one number for all that it has no number of SQL Server's for.
_BABELFISH_ANY = 33557097
# pyodbc's own, with neither number nor state: the connection was closed before the call, which was not sent.
_CLOSED_HERE = "connection has been closed"
_BY_WORDS = {"could not serialize access": ErrorClass.SERIALIZATION, "due to lock timeout": ErrorClass.LOCK_TIMEOUT}
# "[Microsoft][ODBC Driver 18 for SQL Server][SQL Server]text (1205) (SQLExecDirectW)", several joined by "; [".
_NUMBERED = re.compile(r"\((-?\d+)\) \(SQL\w+\)")


class _Lost:
    connections = 0


def lost_connections() -> int:
    """Return the number of errors of this process that meant a lost connection."""
    return _Lost.connections


def failed(error: Exception, *, commits: bool = False) -> CallFailed:
    """Return a `pyodbc.Error` as ours.

    Of a call that `commits` the outcome is unknown when the connection was lost under way; when the driver gives only a
    general error of its own; and when it gave the call up (HYT00 after the timeout, HY008 after a cancel): what it then
    sends to the server may come when the commit is on disk already. An error with a number is the server's own word
    that the statement failed. Raise StopSignal if one came under the call.
    """
    if stop := lost_in(error):
        raise stop
    state, text = (*map(str, error.args), "", "")[:2]
    numbers = [int(number) for number in _NUMBERED.findall(text)]
    known = next((number for number in numbers if number in _BY_NUMBER), None)
    number = known if known is not None else next((n for n in numbers if n > 0), 0)
    kind = _BY_NUMBER.get(number) or _BY_STATE.get(state) or _BY_STATE.get(state[:2]) or ErrorClass.OTHER
    if number == _BABELFISH_ANY:
        kind = next((known for words, known in _BY_WORDS.items() if words in text), kind)
    if _CLOSED_HERE in state:
        return CallFailed(ErrorClass.CONNECTION_LOST, "", sentence(state))
    unanswered = kind is ErrorClass.OTHER and state in _DRIVERS_OWN and _BY_SERVER not in text
    given_up = kind is ErrorClass.TIMEOUT and not number
    lost = kind is ErrorClass.CONNECTION_LOST and number not in _REFUSED_HERE
    if lost:
        _Lost.connections += 1
    if commits and (lost or given_up or unanswered):
        kind = ErrorClass.UNKNOWN_OUTCOME
    return CallFailed(kind, str(number or state), sentence(text))


def is_gone(failure: CallFailed) -> bool:
    """Return True if the connection itself is lost, and not only access to a database."""
    return failure.kind is ErrorClass.CONNECTION_LOST and failure.code not in map(str, _REFUSED_HERE)


def sentence(text: str) -> str:
    """Return the server's message without the names of driver and server in front."""
    first = _NUMBERED.split(text, maxsplit=1)[0].splitlines()
    words = re.sub(r"^(\[[^]]*\]\s*)+", "", first[0] if first else "").strip()
    return words.rstrip(". ") or "no reason given"


_CERTIFICATE = {
    *(-2146893022, -2146893019, -2146893017, -2146893016),  # SEC_E_WRONG_PRINCIPAL, _UNTRUSTED_ROOT, _CERT_UNKNOWN …
    *(-2146762495, -2146762487, -2146762481),  # CERT_E_EXPIRED, _UNTRUSTEDROOT, _CN_NO_MATCH
}
_NO_COMMON_TLS = {-2146893054, -2146893018, -2146893007}  # SEC_E_UNSUPPORTED_FUNCTION, _ILLEGAL_MESSAGE, _ALGORITHM_…
_OPENSSL_NO_COMMON_TLS = ("unsupported protocol", "protocol version", "no protocols available")
_RESET = 10054
_TLS_1_2 = (
    "the server may offer TLS 1.0 and 1.1 alone, which this machine no longer takes: enable TLS 1.2 on the server, or "
    "if you trust this network, add ?Encrypt=no to the URL"
)


def handshake_remedy(error: Exception) -> str | None:
    """Return the remedy for a server that was reached and with which no encrypted connection could be made.

    None for every other error. The driver names its layer ("SSL Provider", "SSL-Anbieter") and gives a number; its
    words are in the language of Windows.
    """
    text = str(error.args[-1]) if error.args else ""
    numbers, words = {int(number) for number in _NUMBERED.findall(text)}, text.lower()
    encrypts = "ssl" in words
    if (numbers & _CERTIFICATE and "sspi" not in words) or "certificate" in words:  # OpenSSL's texts are English
        return "If you trust this network, add ?TrustServerCertificate=yes to the URL"
    if "encryption not supported" in words:
        return "If you trust this network, add ?Encrypt=no to the URL"
    if numbers & _NO_COMMON_TLS or (encrypts and any(part in words for part in _OPENSSL_NO_COMMON_TLS)):
        return f"The server answers, but {_TLS_1_2}"
    if _RESET in numbers:
        return f"Something answers at this port and ends the connection while it is being made: {_TLS_1_2}"
    if encrypts:
        return "The server answers, but no encrypted connection could be made"
    return None


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
    """An ODBC driver. `name` is its value of `Driver=` in a connection string."""

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


_MOMENT, _OF_CLR = -155, -151  # datetimeoffset; hierarchyid, geography and geometry
_MOMENT_PARTS = struct.Struct("<6hI2h")  # msodbcsql.h, SQL_SS_TIMESTAMPOFFSET_STRUCT


def fetch_every_type(connection: Any) -> None:
    """Have pyodbc fetch the types too that it refuses without a converter (pyodbc #134, #404)."""
    connection.add_output_converter(_MOMENT, _moment_as_text)
    connection.add_output_converter(_OF_CLR, lambda value: value)


def _moment_as_text(value: bytes | None) -> str | None:
    if value is None:
        return None
    year, month, day, hour, minute, second, ns, hours, minutes = _MOMENT_PARTS.unpack(value)
    sign = "-" if min(hours, minutes) < 0 else "+"
    return (
        f"{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ns // 100:07}"
        f"{sign}{abs(hours):02}:{abs(minutes):02}"
    )


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
    raise StallmarkError(f"The ODBC driver for SQL Server is missing. {INSTALL}")


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
    libraries = sorted(Path(spec.origin).parent.glob(pattern)) if pattern else []
    ours = [path for path in libraries if _family() in path.parts]
    return next(iter(ours or libraries), None)


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
    all_rows: list[tuple] = []
    more = True
    while more:
        if cursor.description:
            all_rows += map(tuple, cursor.fetchall())
        more = cursor.nextset()
    return all_rows


def one_row(answer: Sequence[_Row], columns: int) -> _Row:
    """Return the row of a statement that must answer one. Raise StallmarkError if the server answered otherwise."""
    if len(answer) != 1 or len(answer[0]) != columns:
        raise StallmarkError("the server did not answer with the one row that was asked for")
    return answer[0]
