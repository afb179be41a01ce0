"""The statements of our databases' procedures and of own SQL: executions, plans and reads of each."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

import pyarrow as pa

from stallmark.collectors.columns import COUNT, SERVER_CLOCK, STATEMENT_READS, TEXT, statement_names
from stallmark.collectors.mssql import MssqlCollector, ask, statement
from stallmark.collectors.sampler import Row
from stallmark.engines import sql_file
from stallmark.engines.base import Engine
from stallmark.engines.mssql.engine import MssqlEngine
from stallmark.engines.mssql.odbc import one_row
from stallmark.engines.mssql.odbc import text as constant
from stallmark.engines.mssql.server import OLDEST_MAJOR, SQL_SERVER_2025
from stallmark.engines.mssql.session import as_sent
from stallmark.errors import CallFailed, StallmarkError
from stallmark.record.schema import column, resume_command, stop_reason
from stallmark.transactions.workload import StatementFacts

# The statements of our databases' procedures: how often and by which plan each was executed, and what it read.


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
            column("plan", TEXT, "SQL handle and creation time; counts are per plan"),
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
        # None: the plan had left the server's cache.
        self._plans: dict[str, str | None] = {}

    def sample(self, now: float) -> list[Row]:
        rows = [self._add_text(row) for row in super().sample(now) if None not in (row["begins"], row["plan_hash"])]
        new = {row["planned"]: row for row in rows if row["planned"] not in self._plans}
        for planned, row in list(new.items())[:MOST_PLANS]:
            self._plans[planned] = self._plan(row)
        return [{name: row[name] for name in self.columns.names} for row in rows]

    def files(self) -> dict[str, str]:
        return {f"plans/{planned.replace('/', '_')}.sqlplan": plan for planned, plan in self._plans.items() if plan}

    def _add_text(self, row: Row) -> Row:
        position = row["begins"] // 2  # two bytes each
        name = f"{row['procedure']}-{position}"
        planned = f"{name}-{row['plan_hash'].removeprefix('0x').lower()}"
        text = "encrypted" if row["text"] is None else " ".join(row["text"].split())  # WITH ENCRYPTION
        return row | {"statement": name, "planned": planned, "position": position, "text": text}

    def _plan(self, row: Row) -> str | None:
        text = sql_file.read(__package__, "statements.plan")
        try:
            texts = self.connection.rows(text.format(handle=row["plan_handle"], begin=row["begins"], end=row["ends"]))
        except StallmarkError:  # no reason to lose the counts
            return None
        return texts[0]["query_plan"] if texts else None


# Query Store's counts of our databases' procedures: collected on request, and where it is on already.

_REPLICAS = """\
SELECT COL_LENGTH('sys.query_store_replicas', 'role_type'),
       COL_LENGTH('sys.query_store_runtime_stats', 'replica_group_id'),
       COL_LENGTH('sys.query_store_wait_stats', 'replica_group_id')
"""


class QueryStore(MssqlCollector):
    name = "query_store"
    title = "Query Store"
    help = (
        "Runs, time and pages of every plan of our databases' statements, by procedure, in the current interval of "
        "Query Store (sys.query_store_runtime_stats: mean × runs). Nothing is lost when a plan leaves the cache. "
        "Statements are counted: a procedure of three statements counts three."
    )
    interval_s = 15.0
    on_azure = True
    of_each_database = True
    named: ClassVar[Sequence[str]] = ("epoch", "procedure", "plan")
    columns = pa.schema(
        [
            *SERVER_CLOCK,
            column("procedure", TEXT, "name of the procedure"),
            column("plan", TEXT, "plan, interval and kind of end; counts are per combination"),
            column("executions", COUNT, "of statements, in the interval so far", "executions"),
            column("worker_us", pa.float64(), "CPU time so far"),
            column("elapsed_us", pa.float64(), "time from begin to end so far"),
            column("physical_reads", pa.float64(), "read for it so far, read-ahead left out", "pages"),
            column("logical_reads", pa.float64(), "read in the pool so far", "pages"),
            column("logical_writes", pa.float64(), "changed in the pool so far", "pages"),
        ]
    )

    @cached_property
    def sql(self) -> str:
        # Of 2022 and of Managed Instance the update decides whether these columns are there, not the version.
        try:
            lengths = one_row(ask(self.engine, _REPLICAS), 3)
        except CallFailed as failure:
            raise StallmarkError(f"the server refused the query ({failure.message})") from failure
        return statement(self.name, OLDEST_MAJOR if None in lengths else SQL_SERVER_2025)

    def refusal(self) -> str | None:
        return super().refusal() or self._disabled_reason()

    def limits(self) -> str | None:
        for where, engine in self.engines_by_prefix.items():
            _, capture, _, _ = _options(engine)
            if capture != "ALL":
                return (
                    f"{where}Query Store captures {capture}, so it leaves out statements that it thinks do not matter."
                )
        return None

    def _disabled_reason(self) -> str | None:
        for where, engine in self.engines_by_prefix.items():
            state, _, _, reason = _options(engine)
            if state != "READ_WRITE":
                detail = f" ({cause})" if (cause := stop_reason(reason)) else ""
                return (
                    f"{where}Query Store is {state} in this database{detail}, and Stallmark leaves it so: to have it, "
                    f"{resume_command(state, reason)}"
                )
        return None


class QueryStoreWaits(QueryStore):
    name = "query_store_waits"
    title = "Query Store: waits"
    help = (
        "The waits of statements in our databases' procedures, by Query Store's own categories: Buffer IO is a data "
        "page read, Tran Log IO a log write (sys.query_store_wait_stats)."
    )
    named = ("epoch", "wait", "plan")
    columns = pa.schema(
        [
            *SERVER_CLOCK,
            column("wait", TEXT, "Query Store's category of the wait"),
            column("plan", TEXT, "plan, interval and kind of end; counts are per combination"),
            column("wait_ms", COUNT, "summed time of the waits"),
        ]
    )

    def limits(self) -> str | None:
        # The collector of Query Store reports the reason already.
        return None

    def _disabled_reason(self) -> str | None:
        if reason := super()._disabled_reason():
            return reason
        for where, engine in self.engines_by_prefix.items():
            _, _, waits, _ = _options(engine)
            if waits != "ON":
                return f"{where}Query Store counts no waits in this database (WAIT_STATS_CAPTURE_MODE = OFF)."
        return None


class QueryStoreState(QueryStore):
    name = "query_store_state"
    title = "Query Store: state"
    help = (
        "The state of Query Store (sys.database_query_store_options): it becomes READ_ONLY by itself, for example when "
        "it is full, and then stops counting. Its capture mode may change as well."
    )
    named = ()
    columns = pa.schema(
        [
            *SERVER_CLOCK,
            column("state", TEXT, "READ_WRITE: it counts"),
            column("readonly_reason", COUNT, "bits of why it is READ_ONLY; 65536: it is full", "bits"),
            column("capture", TEXT, "the statements that it counts (QUERY_CAPTURE_MODE)"),
            column("wait_capture", TEXT, "ON: it counts waits (WAIT_STATS_CAPTURE_MODE)"),
            column("stored_bytes", COUNT, "what it has on disk"),
            column("most_bytes", COUNT, "what it may have (MAX_STORAGE_SIZE_MB)"),
            column("database", TEXT, "one of several that are ours; null: the only one"),
        ]
    )

    def limits(self) -> str | None:
        # The collector of Query Store reports the reason already.
        return None


def _options(engine: MssqlEngine) -> tuple[str, str, str, int | None]:
    """Return the state of Query Store, which statements it captures, whether it counts waits, and why it is
    read-only."""
    options = ask(engine, statement(QueryStoreState.name, OLDEST_MAJOR))
    if not options:
        return "OFF", "NONE", "OFF", None  # system databases have none
    _, _, state, reason, capture, waits, *_ = one_row(options, 8)
    return state, capture, waits, reason if isinstance(reason, int) else None


# The reads of each statement of SQL of a user's own, as the plan cache counts them.
#
# A statement is a batch for the server, which knows it by its text: the driver sends ours with @P1, @P2 … in the places
# of parameters, after a list of their types.

_DECLARED = re.compile(r"(?:\((?:@P\d+ \w+(?:\([\w, ]+\))?,?)+\))?")
_NAME = r"(?:[\w$#]+|\[[^\]]+\])"
_CALL = re.compile(rf"EXEC(?:UTE)?\s+({_NAME}(?:\.{_NAME})*)(?=\s|;|$)(.*)", re.IGNORECASE | re.DOTALL)
_OURS = "(N'statement', N'text', N'procedure')"
"""The place of our statements in the query."""
_OTHER_WORK = re.compile(r"\b(?:SELECT|INSERT|UPDATE|DELETE|MERGE|EXEC|EXECUTE)\b", re.IGNORECASE)


def called_procedure(brief: str) -> str | None:
    """Return the procedure that a statement calls, or None if it does anything else."""
    call = _CALL.fullmatch(brief)
    return call[1] if call and not _OTHER_WORK.search(call[2]) else None


class StatementReads(MssqlCollector):
    name = "statement_reads"
    title = "Reads of statements"
    help = (
        "Executions and pages of each statement of SQL of a user's own, per cached plan (sys.dm_exec_query_stats), or "
        "of the procedure that it calls (sys.dm_exec_procedure_stats). A plan that leaves the cache takes its counts "
        "with it. Physical reads are pages read for the statement, read-ahead left out."
    )
    interval_s = 15.0
    on_azure = True
    columns = STATEMENT_READS

    def __init__(self, engine: Engine, statements: Mapping[str, Sequence[StatementFacts]]):
        super().__init__(engine)
        texts = {
            name: (as_sent(fact.sql), called_procedure(fact.text))
            for facts in statement_names(statements).values()
            for name, fact in facts.items()
        }
        counts = Counter(procedure or text for text, procedure in texts.values())
        self._alike = [name for name, (text, procedure) in texts.items() if counts[procedure or text] > 1]
        self._texts = {name: both for name, both in texts.items() if name not in self._alike}

    @cached_property
    def sql(self) -> str:
        rows = [
            f"({constant(name)}, {constant(text)}, {constant(procedure) if procedure else 'NULL'})"
            for name, (text, procedure) in self._texts.items()
        ]
        return statement(self.name, self.major).replace(_OURS, ", ".join(rows))

    def not_here(self) -> str | None:
        if not self._texts:
            return "All statements are alike to the server, so their reads are not known."
        if self.several:
            return "Reads of statements are shown of one database at a time."
        return super().not_here()

    def limits(self) -> str | None:
        if not self._alike:
            return None
        return f"The server counts these statements as one, so their reads are not known: {', '.join(self._alike)}."

    def sample(self, now: float) -> list[Row]:
        rows = [dict(row) for row in super().sample(now)]
        return [row for row in rows if _DECLARED.fullmatch(row.pop("declared") or "")]
