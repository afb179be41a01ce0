"""The answers of a large SQL Server to the collectors, for the responder: as many rows as there, with made-up values.

40 files and 30 users' sessions with 25 waits each, unless FILES and SESSIONS say otherwise; 1,000 wait types, the 55
performance counters that the query lets through of some 2,000, 40 plans, 250 durations in each histogram.
"""

import os
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
from support.tds.answers import Rows
from support.tds.datatypes import BIGINT, BIT, FLOAT, INT, MAX, nvarchar
from support.tds.script import Script
from support.tds.tokens import Column

from stallmark.collectors import ON_REQUEST, REGISTRY
from stallmark.collectors.sampler import Collector

_TYPES = {pa.int64(): BIGINT, pa.int32(): INT, pa.float64(): FLOAT, pa.bool_(): BIT, pa.string(): nvarchar(4000)}
_TEXT = nvarchar(4000)
FILES, SESSIONS = (int(os.environ.get(name, usual)) for name, usual in (("FILES", 40), ("SESSIONS", 30)))
_START = "start 2026-03-01T10:00:00.123"


def _rows(names_and_types: Iterable[tuple[str, Any]], values: Sequence[tuple]) -> Rows:
    return Rows([Column(name, kind) for name, kind in names_and_types], values)


def _as_declared(collector: type[Collector], values: Sequence[tuple]) -> Rows:
    return _rows([(field.name, _TYPES[field.type]) for field in collector.columns], values)


def _views() -> dict[str, Rows]:
    """Return the rows of each answer, by words that its query contains."""
    kinds = {kind.name: kind for kind in (*REGISTRY["mssql"], *(k for ks in ON_REQUEST["mssql"].values() for k in ks))}
    wait = [(name, BIGINT) for name in ("waits", "wait_ms", "signal_ms", "max_ms")]
    clock = [("server_time", FLOAT), ("epoch", _TEXT)]
    slots = "".join(f'<Slot count="{90000 - n}"><value>{n}</value></Slot>' for n in range(250))
    histogram = f'<HistogramTarget truncated="0" buckets="4096">{slots}</HistogramTarget>'
    path = "/var/opt/mssql/data/warehouse_partition_{:02}.ndf"
    files = [
        (1.5e9, f"{_START} database 7 of 2026-03-02T08:00:00.456 handle 0x{n:016x}", f"warehouse/partition {n}", "data",
         10**9 + n, 10**13, 10**9, 10**8, 10**12, 10**8, 0, 0, 1 << 36, path.format(n), f"0x{n:016x}")
        for n in range(FILES)
    ]  # fmt: skip
    plan = "0x03000700ad3d7a5ae0b1f90079b2000001000000 0x05000700ad3d7a5ad0c9e1d3a9020000 2026-03-02T09:00:00.123"
    return {
        "dm_io_virtual_file_stats": _as_declared(kinds["server_io"], files),
        "LEFT JOIN sys.dm_exec_requests": _rows(
            [("application", _TEXT), ("status", _TEXT), ("wait_type", _TEXT), ("users", BIGINT)],
            [("stallmark-user", "suspended", f"PAGEIOLATCH_{n}", SESSIONS // 8) for n in range(8)],
        ),
        "session.program_name AS application,\n       STRING_AGG": _rows(
            [("epoch", _TEXT), ("application", _TEXT), ("sessions", nvarchar(MAX))]
            + [(name, BIGINT) for name in ("reads", "writes", "logical_reads")],
            [
                (
                    _START,
                    "stallmark-user",
                    ",".join(f"{n} since 2026-03-02T09:00:00.123" for n in range(SESSIONS)),
                    10**9,
                    10**8,
                    10**11,
                )
            ],
        ),
        "AS blocker": _rows(
            [(name, _TEXT) for name in ("blocked", "blocker", "wait_type")],
            [("brokerage.trade_result_5", "brokerage.trade_order_3", "LCK_M_X")] * 5,
        ),
        "fn_xe_file_target_read_file": _rows([("happened", _TEXT), ("event", nvarchar(MAX))], []),
        "dm_db_index_operational_stats": _rows(
            [("server_time", FLOAT), *((name, _TEXT) for name in ("epoch", "entity", "relation"))]
            + [
                (f"{of}_{what}", BIGINT)
                for of in ("row_lock", "page_lock", "page_latch", "page_io_latch")
                for what in ("waits", "wait_ms")
            ],
            [
                (1.5e9, f"{_START} object {n}", f"brokerage.t{n}/pk_{n}", f"brokerage.t{n}", *(10**6,) * 8)
                for n in range(60)
            ],
        ),
        "AS now,": _rows([("now", _TEXT), ("written", _TEXT)], [("2026-03-02T09:00:00.123", None)]),
        "dm_exec_text_query_plan": _rows([("query_plan", nvarchar(MAX))], [("<ShowPlanXML/>",)]),
        "STATS_DATE": _rows(
            [("server_time", FLOAT), ("table", _TEXT), ("statistic", _TEXT), ("counted_at", _TEXT)],
            [(1.5e9, f"brokerage.t{n}", f"pk_{n}", "2026-03-02T08:00:00.000") for n in range(200)],
        ),
        "CROSS APPLY sys.dm_exec_sql_text\\(used.sql_handle": _rows(
            [("server_time", FLOAT), *((name, _TEXT) for name in ("epoch", "procedure", "database"))]
            + [("begins", BIGINT), ("ends", BIGINT)]
            + [(name, _TEXT) for name in ("plan_hash", "plan_handle", "plan", "text")]
            + [(name, BIGINT) for name in ("executions", "worker_us", "elapsed_us", "physical_reads", "logical_reads")],
            [
                (
                    1.5e9,
                    "plan cache",
                    f"brokerage.frame_{n % 30}",
                    "brokerage",
                    100 * n,
                    100 * n + 90,
                    "0x1f2e3d4c5b6a7988",
                    plan,
                    f"{plan} {n}",
                    "SELECT t_id FROM brokerage.trade",
                    *(10**6,) * 5,
                )
                for n in range(120)
            ],
        ),
        "dm_os_wait_stats": _rows(
            [*clock, ("wait_type", _TEXT), *wait],
            [(1.5e9, _START, f"PREEMPTIVE_OS_WAIT_TYPE_{n}", 10**6 + n, 10**9, 10**7, 900) for n in range(1000)],
        ),
        "dm_exec_session_wait_stats": _rows(
            [*clock, ("session", _TEXT), ("wait_type", _TEXT), *wait],
            [
                (1.5e9, _START, f"{session} since 2026-03-02T09:00:00.123", f"PAGEIOLATCH_{n}", 1000, 9000, 30, 45)
                for session in range(51, 51 + SESSIONS)
                for n in range(25)
            ],
        ),
        r"COUNT\(\*\) FROM sys.dm_os_performance_counters": _rows([("count", INT)], [(2000,)]),
        "dm_os_performance_counters AS counters": _as_declared(
            kinds["performance"],
            [(1.5e9, _START, "Buffer Manager", f"Page lookups/sec {n}", "", 272696576, 10**12) for n in range(55)],
        ),
        "dm_exec_procedure_stats": _as_declared(
            kinds["procedures"], [(1.5e9, "plan cache", f"brokerage.frame_{n}", plan, *(10**9,) * 7) for n in range(40)]
        ),
        "dm_io_pending_io_requests": _as_declared(
            kinds["pending_io"], [(1.5e9, f"0x{n:016x}", "disk", True, 3, 12) for n in range(20)]
        ),
        "process_user_time_ms": _as_declared(kinds["server_cpu"], [(1.5e9, _START, 3600.0, 900.0)]),
        "dm_os_schedulers": _as_declared(kinds["schedulers"], [(1.5e9, 64, 900, 40, 5, 0, 120)]),
        "dm_db_log_space_usage": _as_declared(kinds["log_space"], [(1.5e9, 1 << 36, 1 << 30, 1 << 29, "LOG_BACKUP")]),
        "dm_db_file_space_usage": _as_declared(
            kinds["tempdb"], [(1.5e9, n, 8 << 30, 4 << 30, 0, 1 << 20, 1 << 20, 1 << 20) for n in range(8)]
        ),
        "dm_os_buffer_descriptors": _as_declared(
            kinds["buffer_pool"], [(1.5e9, "bank", n, "DATA_PAGE", 9000, 40, 0, 8500, 10**8) for n in range(200)]
        ),
        "dm_xe_session_targets": _rows(
            [*clock, ("session", _TEXT), ("dropped", BIGINT), ("histogram", nvarchar(MAX))],
            [(1.5e9, "session 1", name, 0, histogram) for name in ("stallmark_reads", "stallmark_log_writes")],
        ),
        "query_store_runtime_stats AS": _as_declared(
            kinds["query_store"],
            [
                (1.5e9, "query store", f"brokerage.frame_{n}", f"{n} in 345 as 0", 10**6, *(1e9,) * 5)
                for n in range(200)
            ],
        ),
        "query_store_wait_stats AS": _as_declared(
            kinds["query_store_waits"],
            [
                (1.5e9, "query store", f"brokerage.frame_{n}: Buffer IO {m}", f"{n} in 345 as 0", 10**6)
                for n in range(200)
                for m in range(3)
            ],
        ),
        r"COL_LENGTH\('sys.query_store_replicas": _rows(
            [(name, INT) for name in ("role", "counts", "waits")], [(1, 8, 8)]
        ),
        "current_storage_size_mb": _as_declared(
            kinds["query_store_state"], [(1.5e9, "query store", "READ_WRITE", 0, "ALL", "ON", 1 << 29, 1 << 30, None)]
        ),
        "msglangid": _rows([("name", _TEXT)], []),
        "dm_hadr_database_replica_states AS hidden": _rows([("replicas", INT)], [(0,)]),
        "server_event_sessions": _rows([("name", _TEXT)], []),
        "FROM sys.database_files AS log": _rows([("database", INT), ("log_file", INT)], [(7, 2)]),
        "HAS_PERMS_BY_NAME|is_user_process = 0": _rows([("may", INT)], [(1,)]),
        "committed_target_kb": _rows([("target", BIGINT), ("committed", BIGINT)], [(1 << 26, 1 << 26)]),
        "Target Server Memory": _rows([("name", _TEXT), ("value", BIGINT)], []),
        "dm_os_ring_buffers": _rows(
            [("server_time", FLOAT), ("age_ms", BIGINT), ("platform", _TEXT), ("record", _TEXT)], []
        ),
        "sp_readerrorlog": _rows(
            [(name, _TEXT) for name in ("LogDate", "ProcessInfo", "Text")],
            [(f"2026-03-02 09:00:00.{n}", "spid9s", "a line that holds the offset of something") for n in range(20)],
        ),
        r"SERVERPROPERTY\('ProductVersion'\)": _rows(
            [("v", _TEXT), ("l", _TEXT), ("e", _TEXT), ("n", INT), ("b", _TEXT)],
            [("16.0.4105.2", "RTM", "Enterprise Edition (64-bit)", 3, "Microsoft SQL Server 2022")],
        ),
    }


script = Script(answer_unknown=())
for _words, _answer in _views().items():
    script.sql(_words, _answer)
