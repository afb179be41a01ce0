"""The warehouse: 22 queries of decision support on eight tables, and two refresh functions, derived from TPC-H.

Not comparable with published TPC results: other refresh sets, other rules, no audit. It has no transactions that
virtual users start: streams execute the queries (`queries`, `streams`, `parameters`) and one refreshes (`refresh`).
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

from stallmark.schema.warehouse import refresh as warehouse_refresh
from stallmark.schema.warehouse import scale as warehouse_scale
from stallmark.transactions.warehouse.queries import QUERIES, streams_for
from stallmark.transactions.workload import Condition, QueryStreams, Workload

_condition = partial(Condition.from_file, __name__)

CONDITIONS = (
    _condition("rows", "tables have the rows that the scale says", "scan"),
    _condition("loaded_lines", "as many lineitems as the generator makes", "scan", fresh_only=True),
    _condition("loaded_keys", "orders leave the keys for refresh sets free", "scan", fresh_only=True),
    _condition("refresh", "no refresh set is half done", "cheap"),
    _condition("order_lines", "orders have one to seven lineitems, and these their order", "scan"),
    _condition("order_totals", "an order's total and status are its lineitems'", "scan"),
    _condition("line_dates", "lineitems are shipped and received after the order", "scan"),
    _condition("line_prices", "lineitems cost what their part costs", "scan"),
    _condition("parts", "parts cost what their key says, and have four suppliers", "scan"),
    _condition("buyers", "every third customer never orders", "scan"),
    _condition("phones", "telephone numbers begin with the code of the nation", "cheap"),
    _condition("regions", "a region has five nations", "cheap"),
)


def _numbers(scale: Mapping[str, Any]) -> dict[str, int]:
    factor = scale["factor"]
    refreshed = warehouse_scale.count(factor, warehouse_refresh.ORDERS_OF_A_SET)
    return warehouse_scale.rows(factor) | {"refreshed": refreshed}


WORKLOAD = Workload(
    name="warehouse",
    version=4,
    schema="warehouse",
    tables="stallmark.schema.warehouse.tables",
    package=__name__,
    conditions=CONDITIONS,
    numbers=_numbers,
    build_mib_per_s=25,
    streams=QueryStreams(QUERIES, lambda scale: streams_for(scale["factor"])),
)
