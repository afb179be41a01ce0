"""Latency histograms of I/Os, which event sessions of ours keep in the server's memory: of log writes wherever the
login may, of reads on request, as there are far more of them.

The sessions live from `open` to `close`. What a killed run has left is dropped by the next one that holds the server.
"""

import xml.etree.ElementTree as ElementTree
from collections.abc import Collection, Iterator
from contextlib import suppress
from typing import ClassVar

import pyarrow as pa

from stallmark.collectors.base import COUNT, SERVER_CLOCK, TEXT, Row
from stallmark.collectors.mssql.collector import MssqlCollector
from stallmark.engines import sql_file
from stallmark.engines.mssql.engine import MssqlEngine
from stallmark.errors import CallFailed, StallmarkError
from stallmark.record.schema import column

SESSIONS = {
    "stallmark_reads": ("read", "io_latency.reads"),
    "stallmark_log_writes": ("log write", "io_latency.log_writes"),
}
"""By name: what it counts, and the text that makes it. Our runs exclude each other on a server: no number is needed."""

_FILES = "SELECT DB_ID(), MIN(log.file_id) FROM sys.database_files AS log WHERE log.type = 1"
_MAY = "SELECT HAS_PERMS_BY_NAME(NULL, NULL, 'ALTER ANY EVENT SESSION')"
_PRESENT = "SELECT session.name FROM sys.server_event_sessions AS session"


_UNIT = (
    "Microsoft does not document the unit; those who use it take it for milliseconds, and the analysis holds that "
    "against the file counters."
)


class LogLatency(MssqlCollector):
    name = "io_latency"
    title = "I/O latency"
    help = f"How many writes of our database's log took how long (Extended Events file_write_completed). {_UNIT}"
    sessions: ClassVar[Collection[str]] = ("stallmark_log_writes",)
    interval_s = 10.0
    columns = pa.schema(
        [
            *SERVER_CLOCK,
            column("operation", TEXT, "read or log write"),
            column(
                "duration",
                COUNT,
                "of an I/O; null in the only row of an empty histogram",
                "as the server says it: ms by use",
            ),
            column("ios", COUNT, "that took this long, so far", "I/Os"),
            column("slots", COUNT, "durations that there is room for", "durations"),
            column("dropped", COUNT, "events that found no buffer", "events"),
        ]
    )

    def unavailable(self) -> str | None:
        if why := super().unavailable():
            return why
        [(may,)] = self.engine.query(_MAY)
        return None if may else self.forbidden("it may make no event sessions", "ALTER ANY EVENT SESSION")

    def not_here(self) -> str | None:
        if self.is_azure:
            return "Stallmark makes its event sessions on SQL Server and Azure SQL Managed Instance only."
        return super().not_here()

    def open(self) -> None:
        try:
            drop_sessions(self.engine)
            [(database, log_file)] = self.engine.query(_FILES)
            for _, file in (SESSIONS[name] for name in self.sessions):
                self.engine.execute(sql_file.read(__package__, file).format(database=database, log_file=log_file))
        except CallFailed as failure:
            raise StallmarkError(f"the server made no event session ({failure.message})") from failure
        super().open()

    def sample(self, now: float) -> list[Row]:
        found = {row["session"]: row for row in self.connection.rows(self.sql)}
        if missing := set(self.sessions) - found.keys():
            raise StallmarkError(f"somebody stopped the event session {sorted(missing)[0]}")
        return [row for session in self.sessions for row in _rows(found[session])]

    def close(self) -> None:
        super().close()
        drop_sessions(self.engine)


class IoLatency(LogLatency):
    """Stands in the place of LogLatency when a scenario asks for it."""

    help = (
        "How many reads of our database's data files and writes of its log took how long (Extended Events "
        f"file_read_completed and file_write_completed, a histogram each). {_UNIT}"
    )
    sessions = tuple(SESSIONS)


def drop_left_behind(engine: MssqlEngine) -> None:
    """Drop the sessions that a killed run has left: they cost a little at every I/O.

    A login that may not see event sessions, or drop them, has left none: nothing comes of it.
    """
    if engine.identity().product == "SQL Server" and not engine.is_azure_database:
        with suppress(CallFailed):
            drop_sessions(engine)


def drop_sessions(engine: MssqlEngine) -> None:
    """Drop the sessions in SESSIONS alone: the name of another program's may begin as ours do."""
    present = {name for (name,) in engine.query(_PRESENT)}
    for name in SESSIONS:
        if name in present:
            engine.execute(f"DROP EVENT SESSION {name} ON SERVER")


def _rows(session: Row) -> Iterator[Row]:
    """Yield a row for each duration of a session's histogram; one row without a duration when it is empty."""
    operation, _ = SESSIONS[session["session"]]
    root = ElementTree.fromstring(session["histogram"]) if session["histogram"] else None
    slots = None if root is None else int(root.attrib["buckets"])
    counted: list[tuple[int | None, int]] = []
    if root is not None:
        counted = sorted((int(slot.findtext("value", "")), int(slot.attrib["count"])) for slot in root)
    for duration, ios in counted or [(None, 0)]:
        yield {
            "server_time": session["server_time"],
            "epoch": session["epoch"],
            "operation": operation,
            "duration": duration,
            "ios": ios,
            "slots": slots,
            "dropped": session["dropped"],
        }
