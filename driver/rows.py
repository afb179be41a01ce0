"""The rows of the record's tables as executors report them, each a part of its second, and how parts are merged.

The conductor passes them on as they come. NumPy, which it would import in vain, is imported where parts are merged.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from stallmark.record.packed_histogram import Histogram


class Row(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """A row of one of the record's tables, whose columns are its fields (record/schema.py), or a part of one."""

    second: int
    load: str

    def columns(self) -> dict[str, Any]:
        return msgspec.structs.asdict(self)


class TransactionRow(Row):
    transaction: str
    committed: int
    rolled_back: int
    failed: int
    retries: int
    latency_us: int
    service_us: int
    latency: Histogram
    service: Histogram

    def columns(self) -> dict[str, Any]:
        from stallmark.record import histogram as hdr

        found = msgspec.structs.asdict(self)
        for name in ("latency", "service"):
            found |= hdr.columns(name, found.pop(name))
        return found


class UserRow(Row):
    machine: int
    executor: int
    running: float = 0.0
    busy_us: int = 0
    think_us: int = 0
    lag_us: int = 0
    lag_max_us: int = 0
    cpu_us: int = 0


class DeferredRow(Row):
    machine: int
    executor: int
    taken: int = 0
    late_us: int = 0
    late_max_us: int = 0
    waiting: int = 0


class OwnIORow(Row):
    transaction: str
    sampled: int
    reads: int
    read_bytes: int
    hits: int
    read_us: int | None
    writes: int


class ErrorRow(Row):
    transaction: str
    error_class: str
    code: str
    attempts: int
    given_up: int
    message: str


class Rows(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """All rows of one report."""

    transactions: list[TransactionRow] = []
    users: list[UserRow] = []
    errors: list[ErrorRow] = []
    deferred_queue: list[DeferredRow] = []
    transaction_io: list[OwnIORow] = []


def merge(rows: Sequence[TransactionRow]) -> TransactionRow:
    """Return one row of the parts that executors have sent of it."""
    from stallmark.record import histogram as hdr

    if len(rows) == 1:
        return rows[0]
    sums = ("committed", "rolled_back", "failed", "retries", "latency_us", "service_us")
    return msgspec.structs.replace(
        rows[0],
        latency=hdr.merge([row.latency for row in rows]),
        service=hdr.merge([row.service for row in rows]),
        **{name: sum(getattr(row, name) for row in rows) for name in sums},
    )


def merge_own_io(rows: Sequence[OwnIORow]) -> OwnIORow:
    sums = [name for name in OwnIORow.__struct_fields__ if name not in ("second", "load", "transaction")]
    return msgspec.structs.replace(rows[0], **{name: sum_known([getattr(row, name) for row in rows]) for name in sums})


def sum_known(values: Sequence[int | None]) -> int | None:
    """Return the sum; None where a value is not known."""
    return None if None in values else sum(values)  # type: ignore[arg-type]
