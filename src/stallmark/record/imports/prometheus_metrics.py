"""The metrics of exporters that a profile has a use for, and the column each goes to.

node_exporter (collector/diskstats_common.go, cpu_linux.go), windows_exporter (docs/collector.logical_disk.md,
collector.mssql.md), postgres_exporter (collector/pg_stat_database.go, pg_stat_bgwriter.go, pg_stat_checkpointer.go),
and sql_exporter's mssql_standard.collector.yml. A metric of another name is not read.
"""

from dataclasses import dataclass
from typing import Literal

from stallmark.record.imports.perfmon import SYSTEM_DATABASES

_PAGE, _TO_MS = 8192.0, 1000.0


@dataclass(frozen=True)
class Metric:
    """One metric. Of a `device` it goes to the device's class; of the `server` to a column, summed over its series,
    without those of `skip`: label and values."""

    to: Literal["device", "server"]
    column: str
    factor: float = 1.0
    device_label: str = "device"
    skip: tuple[str, frozenset[str]] | None = None
    engine: Literal["mssql", "postgresql"] | None = None


def _node(column: str, factor: float = 1.0) -> Metric:
    return Metric("device", column, factor)


def _volume(column: str, factor: float = 1.0) -> Metric:
    return Metric("device", column, factor, "volume")


def _mssql(column: str, factor: float = 1.0) -> Metric:
    return Metric("server", column, factor, engine="mssql")


def _postgres(column: str) -> Metric:
    return Metric("server", column, engine="postgresql")


_SYSTEM = ("database", SYSTEM_DATABASES | {"_Total"})
_TEMPLATES = ("datname", frozenset({"template0", "template1"}))
METRICS: dict[str, tuple[Metric, ...]] = {
    "node_disk_reads_completed_total": (_node("reads"),),
    "node_disk_read_bytes_total": (_node("read_bytes"),),
    "node_disk_read_time_seconds_total": (_node("read_stall_ms", _TO_MS),),
    "node_disk_writes_completed_total": (_node("writes"),),
    "node_disk_written_bytes_total": (_node("write_bytes"),),
    "node_disk_write_time_seconds_total": (_node("write_stall_ms", _TO_MS),),
    "node_cpu_seconds_total": (Metric("server", "cpu_s", skip=("mode", frozenset({"idle", "iowait", "steal"}))),),
    "windows_logical_disk_reads_total": (_volume("reads"),),
    "windows_logical_disk_read_bytes_total": (_volume("read_bytes"),),
    "windows_logical_disk_read_latency_seconds_total": (_volume("read_stall_ms", _TO_MS),),
    "windows_logical_disk_writes_total": (_volume("writes"),),
    "windows_logical_disk_write_bytes_total": (_volume("write_bytes"),),
    "windows_logical_disk_write_latency_seconds_total": (_volume("write_stall_ms", _TO_MS),),
    "windows_cpu_time_total": (Metric("server", "cpu_s", skip=("mode", frozenset({"idle"}))),),
    "windows_mssql_databases_log_flushes": (Metric("server", "log_flushes", skip=_SYSTEM, engine="mssql"),),
    "windows_mssql_databases_log_flushed_bytes": (Metric("server", "log_bytes", skip=_SYSTEM, engine="mssql"),),
    "windows_mssql_databases_transactions": (Metric("server", "transactions", skip=_SYSTEM, engine="mssql"),),
    "windows_mssql_sqlstats_batch_requests": (_mssql("batches"),),
    "windows_mssql_memmgr_target_server_memory_bytes": (_mssql("memory_target_bytes"),),
    "windows_mssql_memmgr_stolen_server_memory_bytes": (_mssql("stolen_bytes"),),
    "windows_mssql_bufman_database_pages": (_mssql("database_pages_bytes", _PAGE),),
    "windows_mssql_bufman_page_life_expectancy_seconds": (_mssql("page_life_expectancy_s"),),
    "windows_mssql_bufman_checkpoint_pages": (_mssql("checkpoint_pages"),),
    "windows_mssql_bufman_background_writer_pages": (_mssql("checkpoint_pages"),),
    "windows_mssql_bufman_lazywrites": (_mssql("background_pages"),),
    "windows_mssql_bufman_page_reads": (_mssql("pages_read"),),
    "windows_mssql_bufman_read_ahead_pages": (_mssql("readahead_pages"),),
    "windows_mssql_bufman_page_lookups": (_mssql("page_lookups"),),
    "windows_mssql_genstats_user_connections": (_mssql("connections"),),
    "mssql_batch_requests": (_mssql("batches"),),
    "mssql_page_life_expectancy_seconds": (_mssql("page_life_expectancy_s"),),
    "pg_stat_database_xact_commit": (Metric("server", "transactions", skip=_TEMPLATES, engine="postgresql"),),
    "pg_stat_database_xact_rollback": (Metric("server", "transactions", skip=_TEMPLATES, engine="postgresql"),),
    "pg_stat_database_numbackends": (_postgres("connections"),),
    "pg_stat_database_blks_read": (_postgres("pages_read"), _postgres("page_lookups")),
    "pg_stat_database_blks_hit": (_postgres("page_lookups"),),
    "pg_stat_bgwriter_buffers_checkpoint_total": (_postgres("checkpoint_pages"),),
    "pg_stat_checkpointer_buffers_written_total": (_postgres("checkpoint_pages"),),
    "pg_stat_bgwriter_buffers_clean_total": (_postgres("background_pages"),),
    "pg_settings_shared_buffers_bytes": (_postgres("memory_target_bytes"),),
}
