"""Collectors that ask SQL Server 2017 and later, Azure SQL Managed Instance, and what they can Azure SQL Database.

A query named `<collector>.<major>.sql` serves that major version (14 is 2017, 15 is 2019, 16 is 2022) and all later
ones up to the next file. `<collector>.azure.sql` serves Azure SQL Database, which has other views. Statements that are
no queries stand beside them: `<collector>.<what>.sql`.
"""

from importlib.resources import files

from stallmark.engines import sql_file
from stallmark.engines.mssql.server import AZURE

_EVERGREEN = 1000  # the cloud calls itself version 12 and is ahead of every version there is


def statement(name: str, major: int) -> str:
    """The text of the newest query of this name that a server of this major version understands."""
    fitting = [version for version in sql_file.versions(__name__, name) if version <= major]
    return sql_file.read(__name__, f"{name}.{max(fitting)}")


def azure_statement(name: str) -> str | None:
    """The text of the query for Azure SQL Database, where it has one of its own."""
    own = f"{name}.azure"
    return sql_file.read(__name__, own) if files(__name__).joinpath(f"{own}.sql").is_file() else None


def known_as(major: int, edition: int) -> int:
    """The major version whose views this server has."""
    return _EVERGREEN if edition in AZURE else major
