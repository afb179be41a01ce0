"""A check of the rows that are read from a record: columns of the kinds they have, and times of a run.

Checksums find damage. A record may also come from an untrusted source, or from another version. Rows refused here would
abort the analysis, or fill the memory.
"""

import json
import re
from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.types as kinds

from stallmark.record.manifest.course import LONGEST_S
from stallmark.record.schema import (
    EXTERNAL,
    MAINTENANCE,
    OWN_STATEMENTS,
    QUERIES,
    QUERIES_LEFT,
    RAW_IO,
    TABLES,
    added_tables,
)

TEXTS: Final = frozenset((
    "application", "blocked", "blocker", "capture", "code", "collector", "commit_mode", "counter", "database", "entity",
    "epoch", "error", "error_class", "event", "graph", "handle", "happened", "instance", "isolation", "kind",
    "load", "log_time", "message", "object", "operation", "others", "page_type", "path",
    "phase", "plan", "plan_hash", "planned", "procedure", "process", "query", "relation", "replica", "resources",
    "reuse_wait", "role", "session", "source", "state", "statement", "statistic", "table", "text", "transaction",
    "unit", "victim", "volume", "wait", "wait_capture", "wait_class", "wait_type",
))  # fmt: skip
"""The columns of text, in whatever table; the tables of capabilities have others."""
_NEVER_NULL: Final = frozenset(("second", "t", "samples", "polls"))
_EITHER: Final = frozenset(("type", "wait_ms"))
_LISTS = ("_gaps", "_counts")
_ADDED_LATER: Final = {name: frozenset(("load", "machine", "due_s")) for name in TABLES} | {
    "transaction_io": frozenset(("load", "writes")),
    "raw_io": frozenset(("waiting_gaps", "waiting_counts")),
}
"""Columns that older records lack, by table."""
_NEEDED: Final = {
    "waits": ("second", "wait_class", "event", "samples", "polls"),
    "blocking": ("second", "blocked", "blocker", "wait_type", "samples"),
    "deadlocks": ("victim", "others", "isolation", "resources", "graph"),
    "database": ("blocks_read",),
    "volumes": ("t", "volume", "queue", "read_ms", "write_ms", "reads_per_s", "writes_per_s"),
    "error_log": ("number", "text"),
    "row_locks": ("relation",),
    "io_trace": ("begun_us", "file", "offset", "bytes", "pid", "op", "lost"),
    "io_files": ("file", "relation", "table", "kind", "size_bytes"),
}
"""Columns of collectors' tables that are read by row."""
_UNKNOWN: Final = {
    "errors": frozenset(("message",)),
    "transaction_io": frozenset(("read_us", "writes")),
    "queries": frozenset(QUERIES.names) - {"phase", "stream", "position", "query", "started_s", "seconds"},
    "maintenance": frozenset(("error",)),
    "queries_left": frozenset(("started_s",)),
    "raw_io": _ADDED_LATER["raw_io"],
}
"""Columns that may be null, of our own tables."""
_OWN: Final = TABLES | {
    "raw_io": RAW_IO,
    "maintenance": MAINTENANCE,
    "queries_left": QUERIES_LEFT,
    "own_statements": OWN_STATEMENTS,
}


def wrong_columns(table: str, schema: pa.Schema) -> str | None:
    """Return the fault in the columns of a table, or None without one."""
    if len(set(schema.names)) < len(schema.names):
        return "it has a column twice"
    own = EXTERNAL if table.startswith("external_") else _columns(table)
    for name in _NEEDED.get(table, ()):
        if name not in schema.names:
            return f"it has no column {name}"
    for field in own or ():
        if field.name not in schema.names and field.name not in _added_later(table):
            return f"it has no column {field.name}"
        # A column without any value has no type to check.
        if field.name not in schema.names or _is_empty(table, schema.field(field.name)):
            continue
        if not _alike(field.type, schema.field(field.name).type):
            return f"its column {field.name} is {schema.field(field.name).type}"
    return None


def wrong_rows(table: str, rows: pa.RecordBatch) -> str | None:
    """Return the fault in some columns of a table, or None without one."""
    own = added_tables().get(table)
    for name, column in zip(rows.schema.names, rows.columns, strict=True):
        if _is_empty(table, rows.schema.field(name)):
            continue
        declared = own.columns if own and name in own.columns.names else None
        if not (_alike(declared.field(name).type, column.type) if declared else _is_as_named(name, column.type)):
            return f"its column {name} is {column.type}"
        if column.null_count and not may_be_null(table, name):
            return f"its column {name} has rows without a value"
        if name in ("second", "t") and len(column):
            times = column.to_numpy(zero_copy_only=False)
            # Each second of a run takes memory in the analysis, so a false time would fill it.
            if not np.all(np.abs(times.astype(float)) < LONGEST_S) or (name == "second" and times.min() < 0):
                return f"its column {name} has what is no time of a run"
        if kinds.is_floating(column.type) and np.isinf(column.to_numpy(zero_copy_only=False)).any():
            return f"its column {name} has a value without bounds"
        if kinds.is_list(column.type) and column.flatten().null_count:
            return f"its column {name} has buckets without a value"
        reads = _is_positive if own and name in own.positive else _READS.get((table, name))
        if reads and not all(map(reads, column.unique().drop_null().to_pylist())):
            return f"its column {name} has what no run writes"
    return None


def _is_waits(text: str) -> bool:
    """Return True if a text is a JSON object of numbers."""
    try:
        waits = json.loads(text)
        return isinstance(waits, dict) and all(
            type(value) in (int, float) and isfinite(value) for value in waits.values()
        )
    except (ValueError, OverflowError, RecursionError):
        return False


def _is_positive(value: float) -> bool:
    return value > 0


_READS: Final[Mapping[tuple[str, str], Callable[[Any], object]]] = {
    ("queries", "phase"): re.compile("power|throughput|each|concurrent|beside").fullmatch,
    ("queries", "query"): re.compile(r"Q([1-9]|1\d|2[0-2])|RF[12]").fullmatch,
    ("queries", "wait_ms"): _is_waits,
}
"""The columns whose values are checked one by one."""


def _columns(table: str) -> pa.Schema | None:
    """Return the columns of a table of ours, or None for one of a collector."""
    own = added_tables().get(table)
    return own.columns if own else _OWN.get(table)


def _added_later(table: str) -> frozenset[str]:
    own = added_tables().get(table)
    return own.added_later if own else _ADDED_LATER.get(table, frozenset())


def may_be_null(table: str, column: str) -> bool:
    """Return True if a column may lack values: in collectors' tables all columns may, except the times and counts of
    sampling."""
    own = _columns(table) is not None or table.startswith("external_")
    may = {*_UNKNOWN.get(table, ()), *_added_later(table)}
    return column not in _NEVER_NULL and (not own or column in may)


def _is_empty(table: str, field: pa.Field) -> bool:
    """Return True if a column that may be empty has no value at all."""
    return kinds.is_null(field.type) and may_be_null(table, field.name)


def _is_as_named(name: str, kind: pa.DataType) -> bool:
    if name in _EITHER:
        return _is_text(kind) or _is_number(kind)
    if name in TEXTS:
        return _is_text(kind)
    if name == "second":
        return kinds.is_integer(kind)
    if name.endswith(_LISTS):
        return kinds.is_list(kind) and kinds.is_integer(kind.value_type)
    return _is_number(kind)


def _alike(left: pa.DataType, right: pa.DataType) -> bool:
    if kinds.is_integer(left):
        return kinds.is_integer(right)
    return any(is_kind(left) and is_kind(right) for is_kind in (_is_text, kinds.is_boolean, _is_amount, kinds.is_list))


def _is_text(kind: pa.DataType) -> bool:
    return kinds.is_string(kind.value_type if kinds.is_dictionary(kind) else kind)


def _is_amount(kind: pa.DataType) -> bool:
    return kinds.is_integer(kind) or kinds.is_float32(kind) or kinds.is_float64(kind)


def _is_number(kind: pa.DataType) -> bool:
    return _is_amount(kind) or kinds.is_boolean(kind)
