"""The tables of several workloads in one database, each in its own schema."""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa


def together(parts: Sequence[sa.MetaData]) -> sa.MetaData:
    """Return metadata without a schema of its own: each table keeps the one it has."""
    all_of_them = sa.MetaData(naming_convention=parts[0].naming_convention)
    for part in parts:
        for table in part.sorted_tables:
            table.to_metadata(all_of_them, schema=str(table.schema), referred_schema_fn=_its_own)
    return all_of_them


def _its_own(table: sa.Table, schema: str | None, *_: Any) -> str | None:
    """Return the schema of a foreign key: that of its table, because it names none."""
    return schema
