"""Collectors that ask PostgreSQL 16 and later.

A query named `<collector>.<major>.sql` serves that major version and all later ones up to the next file.
"""

from stallmark.engines import sql_file


def statement(name: str, major: int) -> str | None:
    """The text of the newest query of this name that a server of this major version understands."""
    fitting = [version for version in sql_file.versions(__name__, name) if version <= major]
    return sql_file.read(__name__, f"{name}.{max(fitting)}") if fitting else None


def oldest(name: str) -> int:
    """The oldest major version that a query of this name exists for."""
    return min(sql_file.versions(__name__, name))
