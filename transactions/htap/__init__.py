"""HTAP: the brokerage and the warehouse in one database, users of the one beside streams of the other's queries.

The two share no table, and a scale names the measures of both. What they compete for is the server: its buffer pool,
its cores, its devices. Their figures are kept apart.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sqlalchemy import MetaData, Table

from stallmark.transactions import brokerage, warehouse


def _together(*parts: MetaData) -> MetaData:
    """One of no schema of its own: each table keeps the one it has."""
    both = MetaData(naming_convention=parts[0].naming_convention)
    for part in parts:
        for table in part.sorted_tables:
            table.to_metadata(both, schema=str(part.schema), referred_schema_fn=_its_own)
    return both


def _its_own(table: Table, schema: str | None, *_: Any) -> str | None:
    """A foreign key names no schema, because that of its table is meant."""
    return schema


def _numbers(scale: Mapping[str, Any]) -> dict[str, int]:
    return {**brokerage.WORKLOAD.numbers(scale), **warehouse.WORKLOAD.numbers(scale)}


WORKLOAD = replace(
    brokerage.WORKLOAD,
    name="htap",
    version=100 * brokerage.WORKLOAD.version + warehouse.WORKLOAD.version,
    metadata=_together(brokerage.WORKLOAD.metadata, warehouse.WORKLOAD.metadata),
    conditions=(*brokerage.CONDITIONS, *warehouse.CONDITIONS),
    numbers=_numbers,
    queries=True,
)
