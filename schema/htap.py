"""The tables of the brokerage and of the warehouse in one database, each in its own schema."""

from typing import Any

import sqlalchemy as sa

from stallmark.schema.brokerage import tables as brokerage
from stallmark.schema.warehouse import tables as warehouse


def _together(*parts: sa.MetaData) -> sa.MetaData:
    """Return metadata without a schema of its own: each table keeps the one it has."""
    both = sa.MetaData(naming_convention=parts[0].naming_convention)
    for part in parts:
        for table in part.sorted_tables:
            table.to_metadata(both, schema=str(part.schema), referred_schema_fn=_its_own)
    return both


def _its_own(table: sa.Table, schema: str | None, *_: Any) -> str | None:
    """Return the schema of a foreign key: that of its table, because it names none."""
    return schema


METADATA = _together(brokerage.METADATA, warehouse.METADATA)
