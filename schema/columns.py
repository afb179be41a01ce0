"""The columns of tables that our loaders fill. Each is required unless it says otherwise, and no engine makes up a key.

`mean_bytes` is the mean length of a text, or of a number as PostgreSQL stores it, in the data of the loaders: the
estimates of `schema.size` go by it.
"""

from functools import partial
from typing import Any

from sqlalchemy import Column, Numeric, String

NAMING = {
    "pk": "%(table_name)s_pkey",
    "fk": "%(table_name)s_%(column_0_name)s_fkey",
    "ix": "%(table_name)s_%(column_0_N_name)s_idx",
    "ck": "%(table_name)s_%(constraint_name)s_check",
}

column = partial(Column, nullable=False, autoincrement=False)


def text(name: str, longest: int, mean_bytes: int, *more: Any, **options: Any) -> Column[str]:
    return column(name, String(longest), *more, info={"mean_bytes": mean_bytes}, **options)


def amount(name: str, digits: int, mean_bytes: int, *more: Any, **options: Any) -> Column[Any]:
    """Return a column of dollars and cents."""
    return column(name, Numeric(digits, 2), *more, info={"mean_bytes": mean_bytes}, **options)
