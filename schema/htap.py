"""The tables of the brokerage and of the warehouse in one database, each in its own schema."""

from typing import Any

import sqlalchemy as sa

from stallmark.schema.brokerage import tables as brokerage
from stallmark.schema.warehouse import tables as warehouse


def _together(*parts: sa.MetaData) -> sa.MetaData:
    """One of no schema of its own: each table keeps the one it has."""
    both = sa.MetaData(naming_convention=parts[0].naming_convention)
    for part in parts:
        for table in part.sorted_tables:
            table.to_metadata(both, schema=str(part.schema), referred_schema_fn=_its_own)
    return both


def _its_own(table: sa.Table, schema: str | None, *_: Any) -> str | None:
    """A foreign key names no schema, because that of its table is meant."""
    return schema


METADATA = _together(brokerage.METADATA, warehouse.METADATA)
