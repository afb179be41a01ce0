"""The statements of our databases' procedures: how often and by which plan each was executed, and what it read."""

from typing import Any

import pyarrow as pa

from stallmark.collectors.base import COUNT, SERVER_CLOCK, TEXT, Row
from stallmark.collectors.mssql.collector import MssqlCollector
from stallmark.engines import sql_file
from stallmark.errors import StallmarkError
from stallmark.record.schema import column

MOST_PLANS = 20
"""Taken with one sample: each takes the server some milliseconds."""


class Statements(MssqlCollector):
    name = "statements"
    title = "Statements"
    help = (
        "Executions, time and pages of every statement of our databases' procedures, per cached plan, with the hash of "
        "the plan's shape (sys.dm_exec_query_stats). A plan that leaves the cache takes its counts with it. Every plan "
        "is kept once, beside the record's tables."
    )
    interval_s = 15.0
    on_azure = True
    named = ("procedure",)
    columns = pa.schema(
        [
            *SERVER_CLOCK,
            column("statement", TEXT, "procedure and place in its text"),
            column("planned", TEXT, "the same, and the hash of the plan"),
            column("procedure", TEXT, "name of the procedure"),
            column("position", COUNT, "before it in the procedure's text", "characters"),
            column("plan_hash", TEXT, "SQL Server's query_plan_hash"),
            column("plan", TEXT, "SQL handle and creation time; counts begin anew with each"),
            column("text", TEXT, "its beginning"),
            column("executions", COUNT, "so far", "executions"),
            column("worker_us", COUNT, "CPU time so far"),
            column("elapsed_us", COUNT, "time from begin to end so far"),
            column("physical_reads", COUNT, "read for it so far, read-ahead left out", "pages"),
            column("logical_reads", COUNT, "read in the pool so far", "pages"),
        ]
    )

    def __init__(self, *arguments: Any):
        super().__init__(*arguments)
        self._plans: dict[str, str | None] = {}  # None: the server had it no more

    def sample(self, now: float) -> list[Row]:
        rows = [self._named(row) for row in super().sample(now) if None not in (row["begins"], row["plan_hash"])]
        new = {row["planned"]: row for row in rows if row["planned"] not in self._plans}
        for planned, row in list(new.items())[:MOST_PLANS]:
            self._plans[planned] = self._plan(row)
        return [{name: row[name] for name in self.columns.names} for row in rows]

    def files(self) -> dict[str, str]:
        return {f"plans/{planned.replace('/', '_')}.sqlplan": plan for planned, plan in self._plans.items() if plan}

    def _named(self, row: Row) -> Row:
        position = row["begins"] // 2  # two bytes each
        name = f"{row['procedure']}-{position}"
        planned = f"{name}-{row['plan_hash'].removeprefix('0x').lower()}"
        text = "encrypted" if row["text"] is None else " ".join(row["text"].split())  # WITH ENCRYPTION
        return row | {"statement": name, "planned": planned, "position": position, "text": text}

    def _plan(self, row: Row) -> str | None:
        text = sql_file.read(__package__, "statements.plan")
        try:
            found = self.connection.rows(text.format(handle=row["plan_handle"], begin=row["begins"], end=row["ends"]))
        except StallmarkError:  # no reason to lose the counts
            return None
        return found[0]["query_plan"] if found else None
