"""Which ODBC driver is taken, and what is said where there is none."""

import builtins
import ctypes
import sys
import types
from pathlib import Path

import pytest

from stallmark.engines.mssql import odbc
from stallmark.errors import StallmarkError


@pytest.fixture(autouse=True)
def asked_anew():
    odbc.api.cache_clear()
    odbc.find_driver.cache_clear()
    yield
    odbc.api.cache_clear()
    odbc.find_driver.cache_clear()


@pytest.fixture
def installed(monkeypatch):
    """Set the drivers that the driver manager knows, and whether the wheel is there."""

    def install(*names: str, wheel: Path | None = None) -> None:
        fake = types.SimpleNamespace(drivers=lambda: list(names), pooling=True)
        monkeypatch.setitem(sys.modules, "pyodbc", fake)
        monkeypatch.setattr(odbc, "_in_wheel", lambda: wheel)

    return install


def test_microsofts_newest_installed_driver_comes_first(installed):
    installed("FreeTDS", "ODBC Driver 17 for SQL Server", "ODBC Driver 18 for SQL Server", wheel=Path("/w/lib.so"))
    assert odbc.find_driver() == odbc.Driver("ODBC Driver 18 for SQL Server")
    assert odbc.api().pooling is False


def test_then_the_one_in_the_wheel(installed, monkeypatch):
    monkeypatch.setattr(odbc, "missing_libraries", list)
    installed("FreeTDS", wheel=Path("/w/libmsodbcsql-18.6.so.2.1"))
    assert odbc.find_driver() == odbc.Driver("/w/libmsodbcsql-18.6.so.2.1")
    assert str(odbc.find_driver()) == "libmsodbcsql-18.6.so.2.1"


def test_freetds_is_refused(installed):
    """It accepts a certificate that nobody vouches for, and drops Encrypt, HostnameInCertificate, ApplicationIntent."""
    installed("FreeTDS", "PostgreSQL Unicode")
    with pytest.raises(
        StallmarkError, match=r"FreeTDS is not used: .*pip install 'stallmark\[sqlserver\]'.*msodbcsql18"
    ):
        odbc.find_driver()


class Connection:
    def __init__(self, driver: str):
        self._facts = ["", driver, "18.06.0002"]

    def getinfo(self, kind: int) -> str:
        return self._facts[kind]


@pytest.mark.parametrize("file", ["libmsodbcsql-18.6.so.2.1", "libmsodbcsql.18.dylib", "msodbcsql18.dll"])
def test_the_driver_is_named_with_its_version(monkeypatch, file):
    monkeypatch.setattr(odbc, "api", lambda: types.SimpleNamespace(SQL_DRIVER_NAME=1, SQL_DRIVER_VER=2))
    assert odbc.loaded_driver(Connection(file)) == f"{file} 18.06.0002"


def test_another_driver_under_its_name_is_refused(monkeypatch):
    monkeypatch.setattr(odbc, "api", lambda: types.SimpleNamespace(SQL_DRIVER_NAME=1, SQL_DRIVER_VER=2))
    with pytest.raises(StallmarkError, match="libtdsodbc is installed under the name of Microsoft's ODBC driver"):
        odbc.loaded_driver(Connection("libtdsodbc"))


def test_no_driver_at_all(installed):
    installed("PostgreSQL Unicode")
    with pytest.raises(StallmarkError, match=r"The ODBC driver .*pip install 'stallmark\[sqlserver\]'"):
        odbc.find_driver()


def test_what_the_wheels_driver_lacks_is_named_with_its_package(installed, monkeypatch):
    if sys.platform != "linux":
        pytest.skip("only the Linux driver loads the system's libraries")

    def load(name: str) -> None:
        raise OSError(f"{name}: cannot open shared object file")

    monkeypatch.setattr(ctypes, "CDLL", load)
    installed(wheel=Path("/w/lib.so"))
    with pytest.raises(StallmarkError, match=r"libgssapi_krb5\.so\.2 is missing: apt-get install libgssapi-krb5-2"):
        odbc.find_driver()


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (ModuleNotFoundError("No module named 'pyodbc'"), r"pip install 'stallmark\[sqlserver\]'"),
        (ImportError("libodbc.so.2: cannot open shared object file"), "apt-get install libodbc2"),
    ],
    ids=["no pyodbc", "no libodbc"],
)
def test_without_the_module_or_the_driver_manager(monkeypatch, error, sentence):
    real = builtins.__import__

    def failing(name, *rest, **more):
        if name == "pyodbc":
            raise error
        return real(name, *rest, **more)

    monkeypatch.delitem(sys.modules, "pyodbc", raising=False)
    monkeypatch.setattr(builtins, "__import__", failing)
    with pytest.raises(StallmarkError, match=sentence):
        odbc.api()


@pytest.mark.thorough
def test_the_tool_starts_without_the_driver_manager():
    """Only a server of that kind needs it."""
    import subprocess

    code = (
        "import sys; sys.modules['pyodbc'] = None; sys.modules['mssql_python'] = None\n"
        "import stallmark.cli.main, stallmark.experiment.runner, stallmark.cli.doctor\n"
        "from stallmark.collectors import REGISTRY\nprint(len(REGISTRY))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
