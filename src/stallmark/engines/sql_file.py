"""SQL statements in files, in the folders of the modules that send them."""

import re
from functools import cache
from importlib.resources import files


@cache
def read(package: str, name: str) -> str:
    """Return the text of `name`.sql in the caller's `package`: `sql_file.read(__package__, "tables.mssql")`."""
    return files(package).joinpath(f"{name}.sql").read_text()


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
