"""The other replicas of our database: how far they were behind while a step was measured."""

from collections.abc import Mapping, Sequence
from typing import Any

from stallmark.analysis.read.interval import Interval
from stallmark.analysis.read.server_summary import ReplicaState
from stallmark.record.reader import Record

TABLE = "replicas"
COLUMNS = ("t", "replica", "commit_mode", "state", "send_queue_bytes", "redo_queue_bytes")


def read_replicas(record: Record) -> list[Mapping[str, Any]]:
    """Return the rows of the table; none where there is no availability group."""
    return [row for batch in record.batches(TABLE, COLUMNS) for row in batch.to_pylist()]


def summarise_replicas(rows: Sequence[Mapping[str, Any]], interval: Interval) -> list[ReplicaState]:
    inside = [row for row in rows if interval.begin <= row["t"] <= interval.end]
    found = []
    for name in sorted({row["replica"] for row in inside}):
        own = [row for row in inside if row["replica"] == name]
        send, redo = ([row[queue] for row in own if row[queue] is not None] for queue in COLUMNS[-2:])
        found.append(
            ReplicaState(
                name,
                own[-1]["commit_mode"] == "SYNCHRONOUS_COMMIT",
                sum(row["state"] == "SYNCHRONIZED" for row in own) / len(own),
                sum(send) / len(send) if send else None,
                max(send, default=None),
                sum(redo) / len(redo) if redo else None,
                max(redo, default=None),
            )
        )
    return found
