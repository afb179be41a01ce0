"""The warehouse: 22 queries of decision support on eight tables, and two refresh functions, derived from TPC-H.

Not comparable with published TPC results: other refresh sets, other rules, no audit. It has no transactions that
virtual users start: streams execute the queries (`queries`) and one refreshes (`refresh`).
"""

from collections.abc import Mapping
from typing import Any

from stallmark.schema import warehouse
from stallmark.transactions.warehouse.queries import QUERIES, streams_for
from stallmark.transactions.workload import Condition, QueryStreams, Workload


def _numbers(scale: Mapping[str, Any]) -> dict[str, int]:
    factor = scale["factor"]
    refreshed = warehouse.count(factor, warehouse.ORDERS_OF_A_SET)
    return warehouse.rows(factor) | {"refreshed": refreshed}


WORKLOAD = Workload(
    name="warehouse",
    version=4,
    schema="warehouse",
    tables="stallmark.schema.warehouse.tables",
    package=__name__,
    conditions=Condition.read_all(__name__),
    numbers=_numbers,
    build_mib_per_s=25,
    streams=QueryStreams(QUERIES, lambda scale: streams_for(scale["factor"])),
)
