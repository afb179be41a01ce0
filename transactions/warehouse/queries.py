"""The 22 queries of the warehouse, as one statement each."""

import re
from collections.abc import Mapping

from stallmark.engines import sql_file

QUERIES = tuple(range(1, 23))

# What a literal may hold: nothing that ends a string, begins a comment or names a parameter.
_PLAIN = re.compile(r"(?!.*--)[A-Za-z0-9 #.-]+")
_NAMED = re.compile(r"(?<![:\w]):([a-z]\w*)")


def text(query: int, dialect: str, parameters: Mapping[str, str], dop: int | None = None) -> str:
    """Return the text of a query for a dialect ("postgresql" or "mssql"), with literals for its parameters.

    It begins with a comment that names it, by which a DBA finds it in a trace. `dop` is the most processors that SQL
    Server may execute it with; PostgreSQL has a setting for that, and no word in the statement.

    Raise ValueError for an unknown query or dialect, for parameters that are not its own, and for a `dop` that cannot
    be. A value may hold only letters, digits, spaces and `# - .`; others raise it too.
    """
    template = _template(query, dialect)
    if names(query) != parameters.keys():
        raise ValueError(f"q{query} has the parameters {sorted(names(query))}, and not {sorted(parameters)}")
    for name, value in parameters.items():
        if not _PLAIN.fullmatch(value):
            raise ValueError(f"q{query}: {name} cannot be {value!r}")
    statement = _NAMED.sub(lambda found: parameters[found[1]], template)
    if dop is None:
        return statement
    if dialect != "mssql" or dop < 1:
        raise ValueError(f"q{query} cannot say in {dialect} that it is to take {dop} processors")
    return f"{statement}OPTION (MAXDOP {dop})\n"


def names(query: int) -> set[str]:
    """Return the names of a query's parameters; both twins have the same."""
    return set(_NAMED.findall(_template(query, "postgresql")))


def _template(query: int, dialect: str) -> str:
    if query not in QUERIES or dialect not in ("postgresql", "mssql"):
        raise ValueError(f"no query {query} for {dialect}: there are 1 to {len(QUERIES)}, for postgresql and mssql")
    return sql_file.read(__package__, f"q{query:02}.{dialect}")
