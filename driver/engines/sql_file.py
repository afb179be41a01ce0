"""Statements that stand in files beside the modules that send them."""

from importlib.resources import files


def read(package: str, name: str) -> str:
    """The text of `name`.sql in `package`, which is the caller's own: `sql_file.read(__package__, "tables.mssql")`."""
    return files(package).joinpath(f"{name}.sql").read_text()
