"""SQL statements in files, in the folders of the modules that send them. A file holds one statement, or several below
headings."""

import re
from functools import cache
from importlib.resources import files
from typing import NamedTuple

_HEADING = re.compile(r"^-- \[(.+?)\] ?(.*)\n", re.MULTILINE)


class Statement(NamedTuple):
    """One of several statements in a file, below its heading `-- [key] title`."""

    key: str
    title: str
    text: str


@cache
def read(package: str, name: str) -> str:
    """Return the text of `name`.sql in the caller's `package`: `sql_file.read(__package__, "tables.mssql")`."""
    return files(package).joinpath(f"{name}.sql").read_text()


def statement(module: str, key: str) -> str:
    """Return a statement of the file beside the caller's module: `sql_file.statement(__name__, "blockers")`."""
    return _by_key(module)[key]


@cache
def _by_key(module: str) -> dict[str, str]:
    return {statement.key: statement.text for statement in statements(module)}


def statements(module: str) -> tuple[Statement, ...]:
    """Return the statements of the file of a module, in its order."""
    package, _, name = module.rpartition(".")
    return split(read(package, name))


def split(text: str) -> tuple[Statement, ...]:
    """Return the statements of the text of a file; empty if it has no headings."""
    _, *parts = _HEADING.split(text)
    return tuple(map(Statement, parts[::3], parts[1::3], parts[2::3]))


@cache
def exists(package: str, name: str) -> bool:
    return files(package).joinpath(f"{name}.sql").is_file()


def newest(package: str, name: str, major: int) -> str | None:
    """Return the newest statement of this name that a server of this major version understands; None without one."""
    fitting = [version for version in versions(package, name) if version <= major]
    return read(package, f"{name}.{max(fitting)}") if fitting else None


def versions(package: str, name: str) -> list[int]:
    """Return the major versions of the server from which on there is a statement `<name>.<major>.sql`."""
    named = re.compile(rf"{re.escape(name)}\.(\d+)\.sql")
    return [int(match[1]) for path in files(package).iterdir() if (match := named.fullmatch(path.name))]
