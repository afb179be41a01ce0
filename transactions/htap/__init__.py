"""HTAP: the brokerage and the warehouse in one database, virtual users of the one and concurrent streams of the other's
queries.

The two share no table, and a scale names the measures of both. What they compete for is the server: its buffer pool,
its cores, its devices. Their figures are kept apart.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from stallmark.transactions import brokerage, warehouse


def _numbers(scale: Mapping[str, Any]) -> dict[str, int]:
    return {**brokerage.WORKLOAD.numbers(scale), **warehouse.WORKLOAD.numbers(scale)}


WORKLOAD = replace(
    brokerage.WORKLOAD,
    name="htap",
    version=100 * brokerage.WORKLOAD.version + warehouse.WORKLOAD.version,
    tables="stallmark.schema.htap",
    conditions=(*brokerage.CONDITIONS, *warehouse.CONDITIONS),
    numbers=_numbers,
    streams=warehouse.WORKLOAD.streams,
)
