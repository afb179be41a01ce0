"""Statements beside transactions: queries by EXPLAIN ANALYZE, a rebuild of indexes, prefill, bulk load and restore."""

import hashlib
import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from stallmark.engines.abilities import Answer, Maintenance, MaintenanceWork, Measures, Missing, Prefill, UserBackup
from stallmark.engines.base import Engine
from stallmark.engines.postgres.session import PostgresSession, as_call_failed, call_failed, first_line
from stallmark.errors import StallmarkError
from stallmark.processes import run_guarded

if TYPE_CHECKING:
    import pyarrow as pa

# Queries on PostgreSQL, executed by EXPLAIN ANALYZE.
#
# It is the only way to know the reads, the spill and the workers of one query over all its parallel workers without an
# extension: a session's own counters (pg_stat_get_backend_io) lack its workers', and pg_stat_statements and
# auto_explain need a library that the server may not have. What it costs was measured by benchmarks/query_cost.py
# (e53481b5). No single node is timed (TIMING OFF), because that would cost most. From PostgreSQL 17 on every value of
# the answer is converted to text (SERIALIZE) as for a client; it is just not sent.


SERIALIZES = 170_000

_EXPLAIN = "EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, {more}SETTINGS, FORMAT JSON)\n"
_UNTIMED = (
    "track_io_timing is off on the server: what queries waited for is not known. To know it, run ALTER SYSTEM SET "
    "track_io_timing = on; SELECT pg_reload_conf()"
)
# By what they are waits for, the names of an EXPLAIN: since 17, and before.
_WAITS = {
    "data file read": ("Shared I/O Read Time", "I/O Read Time"),
    "data file write": ("Shared I/O Write Time", "I/O Write Time"),
    "temporary file read": ("Temp I/O Read Time",),
    "temporary file write": ("Temp I/O Write Time",),
}
# What makes the shape of a plan: no costs, no counts, no values of parameters.
_SHAPE = (
    *("Node Type", "Parent Relationship", "Subplan Name", "Strategy", "Partial Mode", "Parallel Aware", "Operation"),
    *("Join Type", "Relation Name", "Alias", "Index Name", "Scan Direction", "CTE Name"),
)  # fmt: skip


class PostgresQueries(PostgresSession):
    """A session for queries. No grants and no CPU: PostgreSQL has no grants, and counts no CPU by query."""

    plan_suffix: ClassVar[str] = "json"

    def __init__(self, conninfo: str):
        super().__init__(conninfo)
        more = "SERIALIZE TEXT, " if self._connection.server_version >= SERIALIZES else ""
        self._dop: int | None = None
        self._explain = _EXPLAIN.format(more=more)
        self._block_bytes = int(self._value("SHOW block_size"))
        self.limited = None if self._value("SHOW track_io_timing") == "on" else _UNTIMED

    def set_dop(self, dop: int | None) -> None:
        """Limit the processes of a query, its leader included. The server's max_worker_processes stays the limit."""
        if dop == self._dop:
            return
        for name in ("max_parallel_workers_per_gather", "max_parallel_workers"):
            statement = f"RESET {name}" if dop is None else f"SET {name} = {int(dop) - 1}"
            self._execute(statement.encode(), commits=False)
        self._dop = dop

    def execute(self, text: str) -> Answer:
        return Answer(None, self._value(self._explain + text))

    def with_notes(self, answer: Answer) -> Answer:
        return answer

    def measures(self, answer: Answer) -> Measures:
        if answer.plan is None:
            return Measures(answer.rows)
        [explained] = json.loads(answer.plan)
        return measures(explained["Plan"], self._block_bytes)

    def _value(self, text: str) -> str:
        return (self._result(text).get_value(0, 0) or b"").decode()

    def _result(self, text: str) -> psycopg.pq.abc.PGresult:
        try:
            result = self._connection.exec_(text.encode())
        except psycopg.OperationalError as error:
            raise call_failed(error) from None
        if result.status != psycopg.pq.ExecStatus.TUPLES_OK:
            raise self._failure(result, commits=False)
        return result


def measures(plan: Mapping[str, Any], block_bytes: int) -> Measures:
    """Return the measures of the top node of an EXPLAIN, which include all below it, in workers too."""
    read, temp = plan["Shared Read Blocks"], plan["Temp Written Blocks"]
    return Measures(
        rows=round(plan["Actual Rows"] * plan["Actual Loops"]),
        logical_reads=plan["Shared Hit Blocks"] + read,
        physical_reads=read,
        read_bytes=read * block_bytes,
        spill_bytes=temp * block_bytes,
        actual_dop=1 + _workers(plan),
        wait_ms=_waits(plan),
        plan_hash=plan_hash(plan),
    )


def plan_hash(plan: Mapping[str, Any]) -> str:
    """Return a hash of the shape alone, whatever the plan costs and how many rows it finds."""
    return hashlib.sha256(json.dumps(_shape(plan)).encode()).hexdigest()[:12]


def _shape(node: Mapping[str, Any]) -> list[Any]:
    own = [node.get(name) for name in _SHAPE]
    return [own, [_shape(below) for below in node.get("Plans", ())]]


def _workers(node: Mapping[str, Any]) -> int:
    """Return the most workers that any part of the plan had."""
    return max([node.get("Workers Launched", 0), *map(_workers, node.get("Plans", ()))])


def _waits(plan: Mapping[str, Any]) -> dict[str, float] | None:
    """Return waits in ms, summed over workers, so that they may exceed the run time; None if not timed."""
    known = {kind: plan[name] for kind, names in _WAITS.items() for name in names if plan.get(name) is not None}
    return {kind: ms for kind, ms in known.items() if ms} if known else None


# The work of an administrator beside users, as far as PostgreSQL has a statement for it: a rebuild of indexes.


class Rebuild(Maintenance):
    def __init__(self, connect: Callable[[str], psycopg.Connection]):
        self._connect = connect

    def open(self, name: str) -> "_Work":
        table = sql.Identifier(*name.split("."))
        statement = sql.SQL("REINDEX TABLE CONCURRENTLY {}").format(table)
        return _Work(self._connect("stallmark-maintenance"), statement)


class _Work(MaintenanceWork):
    def __init__(self, connection: psycopg.Connection, statement: sql.Composed):
        self._connection, self._statement = connection, statement

    def execute(self) -> None:
        with as_call_failed():
            self._connection.execute(self._statement)

    def cancel(self) -> None:
        self._connection.cancel()

    def close(self) -> None:
        self._connection.close()


def maintenance(connect: Callable[[str], psycopg.Connection]) -> Mapping[str, Maintenance | Missing]:
    return {
        "backup": Missing("PostgreSQL has no statement that backs a database up"),
        "check": Missing("PostgreSQL has no statement that checks a database"),
        "rebuild": Rebuild(connect),
    }


# The buffer pool, filled before a run.

_RELATIONS_TO_PREFILL = """
SELECT CASE c.relkind WHEN 'i' THEN 'index' ELSE 'table' END,
       coalesce(i.indrelid, c.oid)::regclass::text,
       (SELECT string_agg(pg_get_indexdef(c.oid, n, false), ', ' ORDER BY n) FROM generate_series(1, i.indnkeyatts) n),
       coalesce(pg_get_expr(i.indpred, i.indrelid), 'true'),
       pg_relation_size(c.oid) / current_setting('block_size')::int,
       current_setting('block_size')::int
  FROM pg_class c
  JOIN pg_namespace n ON n.oid = c.relnamespace
  JOIN pg_am m ON m.oid = c.relam
  LEFT JOIN pg_index i ON i.indexrelid = c.oid
 WHERE n.nspname = ANY(%s)
   AND (c.relkind = 'r' AND m.amname = 'heap' OR c.relkind = 'i' AND m.amname = 'btree' AND i.indisvalid)
   AND has_table_privilege(coalesce(i.indrelid, c.oid), 'SELECT')
   AND pg_relation_size(c.oid) > 0
 ORDER BY c.relkind, pg_relation_size(c.oid)
"""


class PostgresPrefill(Prefill):
    def __init__(self, engine: Engine):
        self._engine = engine

    def fill(self, *schemas: str) -> int:
        """Fill the pool with the B-tree indexes, then the tables of `schemas`, until it is full.

        A plain sequential scan would pass through a ring of 256 KiB and leave nothing behind; a scan by tuple
        identifier range has no ring. Return the bytes that now can be in the pool.
        """
        budget = self._engine.buffer_pool_bytes() or 0
        used = 0
        with self._engine.cursor() as cursor:
            cursor.execute("SET enable_seqscan = off; SET enable_bitmapscan = off; SET jit = off")
            cursor.execute("SET max_parallel_workers_per_gather = 0")
            for kind, relation, columns, predicate, pages, page_bytes in cursor.execute(
                _RELATIONS_TO_PREFILL, [list(schemas)]
            ).fetchall():
                pages = min(pages, (budget - used) // page_bytes)
                if pages <= 0:
                    break
                if kind == "index":
                    ordered = f"SELECT {columns} FROM {relation} WHERE {predicate} ORDER BY {columns}"
                    cursor.execute(f"SELECT count(*) FROM ({ordered}) t")
                else:
                    cursor.execute(f"SELECT count(*) FROM {relation} WHERE ctid < '({pages},0)'::tid")
                used += pages * page_bytes
        return used


# Tables, filled.


class PostgresBulkWriter:
    """COPY in binary form, encoded by pgpq, with other statements in the same transaction.

    ADBC's ingest would do it too, at three times the client's CPU per row.
    """

    transactional = True
    limited: str | None = None

    def __init__(self, connection: psycopg.Connection):
        self._connection = connection

    def write(self, table: str, rows: "pa.Table") -> None:
        from pgpq import ArrowToPostgresBinaryEncoder  # imports pyarrow, which driving a load does not need

        columns = sql.SQL(", ").join(map(sql.Identifier, rows.column_names))
        target = sql.SQL(".").join(map(sql.Identifier, table.split(".")))
        encoder = ArrowToPostgresBinaryEncoder(rows.schema)
        statement = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT binary)").format(target, columns)
        with as_call_failed(), self._connection.cursor() as cursor, cursor.copy(statement) as copy:
            copy.write(encoder.write_header())
            for batch in rows.to_batches():
                copy.write(encoder.write_batch(batch))
            copy.write(encoder.finish())

    def execute(self, statement: str) -> int:
        with as_call_failed():
            return self._connection.execute(statement.encode()).rowcount

    def commit(self) -> None:
        with as_call_failed():
            self._connection.commit()


# A database of a user's on a server by URL, restored from an archive of pg_dump.

PROGRAM = "pg_restore"


class Archive(UserBackup):
    """An archive of pg_dump, whose objects pg_restore drops and makes again.

    A copy of a template database would be faster. But the old database would have to be dropped, and with it the lock
    of the run, its settings and its rights.
    """

    def __init__(self, engine: Engine):
        self._engine = engine

    def refuse(self, source: str) -> None:
        if "sslpassword" in conninfo_to_dict(self._engine.spec()):
            raise StallmarkError(
                f"{PROGRAM} takes an sslpassword on its command line alone, which everybody on this machine can read: "
                "name a key without a passphrase, or restore by a command."
            )
        if shutil.which(PROGRAM) is None:
            raise StallmarkError(
                f"{PROGRAM} is not there to restore {source}: install the client programs of PostgreSQL "
                f"{self._engine.identity().version[0]} or later."
            )
        if not Path(source).is_file():
            raise StallmarkError(f"{source} is not a file of this machine: make it by pg_dump -Fc.")
        self._run(["--list", source], f"{source} cannot be restored")

    def restore(self, source: str) -> None:
        known = {key: str(value) for key, value in conninfo_to_dict(self._engine.spec()).items() if key != "password"}
        target = make_conninfo(**known, application_name="stallmark-restore")
        options = ["--clean", "--if-exists", "--no-owner", "--single-transaction", "--dbname", target]
        self._run([*options, source], f"Restoring {self._engine.database_name()} failed")
        # As after each build: the planner's statistics, and pages that no run is the first to write for it.
        self._engine.execute("VACUUM (FREEZE, ANALYZE)")

    def _run(self, arguments: list[str], problem: str) -> None:
        password = self._engine.login().password
        # Arguments are seen by all users of this machine.
        environment = {"PGPASSWORD": password} if password else {}
        done = run_guarded("restore", [PROGRAM, *arguments], environment)
        if done.returncode:
            reason = first_line(done.stderr.replace(f"{PROGRAM}: error: ", ""))
            raise StallmarkError(f"{problem} ({reason}): make it by pg_dump -Fc, or restore it by a command.")
