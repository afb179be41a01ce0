"""I/O beyond the counters: latency histograms of event sessions, and Windows' counters of volumes."""

import csv
import platform
import re
import shutil
import subprocess
import threading
import xml.etree.ElementTree as ElementTree
from collections import deque
from collections.abc import Collection, Iterator
from contextlib import suppress
from random import randrange
from typing import ClassVar

import pyarrow as pa

from stallmark.collectors.columns import COUNT, OF_SEVERAL, SERVER_CLOCK, TEXT
from stallmark.collectors.mssql import MssqlCollector, ask
from stallmark.collectors.sampler import Row, name_of
from stallmark.engines import sql_file
from stallmark.engines.base import Engine
from stallmark.engines.mssql.engine import MssqlEngine
from stallmark.engines.mssql.odbc import one_row
from stallmark.errors import CallFailed, StallmarkError
from stallmark.processes import kill
from stallmark.record.formats.dates import is_time
from stallmark.record.formats.perfmon import separator
from stallmark.record.formats.sample import number
from stallmark.record.schema import column
from stallmark.record.writer import Rows

# Latency histograms of I/Os, which event sessions of ours keep in the server's memory: of log writes wherever the
# login may, of reads on request, as there are far more of them.
#
# The sessions live from `open` to `close`. What a killed run has left is dropped by the next one that holds the server.

SESSIONS = {
    "stallmark_reads": ("read", "io_latency.reads"),
    "stallmark_log_writes": ("log write", "io_latency.log_writes"),
}
"""The event counted and the statement that creates it, by session name.

Sessions of a second database have a number after their names. Runs exclude each other on a server, so the names are
unique.
"""
_OURS = re.compile(rf"({'|'.join(SESSIONS)})(_\d+)?")

_FILES = "SELECT DB_ID(), MIN(log.file_id) FROM sys.database_files AS log WHERE log.type = 1"
_MAY = "SELECT HAS_PERMS_BY_NAME(NULL, NULL, 'ALTER ANY EVENT SESSION')"
_PRESENT = "SELECT session.name FROM sys.server_event_sessions AS session"


_UNIT = (
    "Microsoft does not document the unit; those who use it take it for milliseconds, and the analysis holds that "
    "against the file counters."
)


def session_name(kind: str, number: int) -> str:
    """Return the name of the event session of this kind of the first database, the second one and so on."""
    return kind if number == 1 else f"{kind}_{number}"


class LogLatency(MssqlCollector):
    name = "io_latency"
    title = "I/O latency"
    help = (
        f"How many writes of each of our databases' logs took how long (Extended Events file_write_completed). {_UNIT}"
    )
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
                "as the server reports it: ms in practice",
            ),
            column("ios", COUNT, "that took this long, so far", "I/Os"),
            column("slots", COUNT, "capacity of the histogram", "durations"),
            column("dropped", COUNT, "events that found no buffer", "events"),
            column("database", TEXT, OF_SEVERAL),
        ]
    )

    def __init__(self, engine: Engine):
        super().__init__(engine)
        self._unreadable = 0  # histograms

    def refusal(self) -> str | None:
        if reason := super().refusal():
            return reason
        [may] = one_row(ask(self.engine, _MAY), 1)
        if not may:
            return self.forbidden("it may make no event sessions", "ALTER ANY EVENT SESSION")
        return self._creation_error()

    def not_here(self) -> str | None:
        if self.is_azure:
            return "Stallmark makes its event sessions on SQL Server and Azure SQL Managed Instance only."
        return super().not_here()

    def open(self) -> None:
        try:
            drop_sessions(self.engine)
            for number, database in enumerate(self.databases, 1):
                files = ask(database, _FILES)
                for kind in self.sessions:
                    self._make(kind, number, files)
        except CallFailed as failure:
            raise StallmarkError(f"the server made no event session ({failure.message})") from failure
        super().open()

    def _make(self, kind: str, number: int, files: list[tuple]) -> None:
        """Make the session of this kind and number; `files`: the database and its log, by number."""
        database, log_file = one_row(files, 2)
        names = {"session": session_name(kind, number), "database": database, "log_file": log_file}
        text = sql_file.read(__package__, SESSIONS[kind][1])
        ask(self.engine, text.format(**names, memory_kib=self.engine.service.event_memory_kib))

    def _creation_error(self) -> str | None:
        """Return the reason why the server makes no session of ours though the login may, as one that limits them does.

        The attempt is beside the sessions of a run that may be under way, and is gone at once.
        """
        kind, number = next(iter(self.sessions)), randrange(1_000, 10_000)
        try:
            self._make(kind, number, ask(self.databases[0], _FILES))
        except CallFailed as failure:
            return f"The server made no event session ({failure.message}, error {failure.code})."
        finally:
            with suppress(CallFailed):  # it was not made
                ask(self.engine, f"DROP EVENT SESSION {session_name(kind, number)} ON SERVER")
        return None

    def sample(self, now: float) -> Rows:
        by_session = {row["session"]: row for row in self.connection.rows(self.sql)}
        names = {
            session_name(kind, number): (SESSIONS[kind][0], name_of(database) if self.several else None)
            for kind in self.sessions
            for number, database in enumerate(self.databases, 1)
        }
        if missing := names.keys() - by_session.keys():
            raise StallmarkError(f"someone stopped the event session {min(missing)}")
        rows: list[tuple] = []
        for session, database_name in names.items():
            try:
                rows += list(_rows(by_session[session], *database_name))
            except (ElementTree.ParseError, KeyError, ValueError):  # no reason to lose the others
                self._unreadable += 1
                self.incomplete = f"{self._unreadable} of its histograms could not be read"
        return Rows(self.columns.names, rows)

    def close(self) -> None:
        super().close()
        drop_sessions(self.engine)


class IoLatency(LogLatency):
    """Takes the place of LogLatency when a scenario asks for it."""

    help = (
        "How many reads of each of our databases' data files and writes of its log took how long (Extended Events "
        f"file_read_completed and file_write_completed, a histogram each). {_UNIT}"
    )
    sessions = tuple(SESSIONS)


def drop_left_behind(engine: MssqlEngine) -> None:
    """Drop the sessions that a killed run has left: they cost a little at every I/O.

    A login that may not see or drop event sessions has left none, so its errors are ignored.
    """
    if engine.identity().product == "SQL Server" and not engine.is_azure_database:
        with suppress(CallFailed):
            drop_sessions(engine)


def drop_sessions(engine: MssqlEngine) -> None:
    """Drop the sessions that have our names alone: the name of another program's may begin as ours do."""
    for (name,) in ask(engine, _PRESENT):
        if _OURS.fullmatch(name or ""):
            ask(engine, f"DROP EVENT SESSION {name} ON SERVER")


def _rows(session: Row, operation: str, database: str | None) -> Iterator[tuple]:
    """Yield a row for each duration of a session's histogram; one row without a duration when it is empty."""
    root = ElementTree.fromstring(session["histogram"]) if session["histogram"] else None
    slots = None if root is None else int(root.attrib["buckets"])
    counted: list[tuple[int | None, int]] = []
    if root is not None:
        counted = sorted((int(slot.findtext("value", "")), int(slot.attrib["count"])) for slot in root)
    for duration, ios in counted or [(None, 0)]:
        yield session["server_time"], session["epoch"], operation, duration, ios, slots, session["dropped"], database


# Windows' own counters of the volumes under the server's files, live, where the driver runs beside the server.

_COUNTERS = {
    "queue": r"\LogicalDisk({volume})\Current Disk Queue Length",
    "read_ms": r"\LogicalDisk({volume})\Avg. Disk sec/Read",
    "write_ms": r"\LogicalDisk({volume})\Avg. Disk sec/Write",
    "reads_per_s": r"\LogicalDisk({volume})\Disk Reads/sec",
    "writes_per_s": r"\LogicalDisk({volume})\Disk Writes/sec",
}
_ELSEWHERE = "attach a Perfmon log of the server instead (`stallmark attach`)"


class Volumes(MssqlCollector):
    name = "volumes"
    title = "Volumes (Perfmon)"
    help = (
        "Queue length, latency and rate of the volumes under the files of our databases and of tempdb, as Windows "
        "counts them (LogicalDisk, by typeperf), second by second: means over a second, which hide single "
        "I/Os. Available if the driver runs on the server's Windows."
    )
    interval_s = 5.0
    columns = pa.schema(
        [
            column("volume", TEXT, "mount point"),
            column("queue", pa.float64(), "under way", "I/Os"),
            column("read_ms", pa.float64(), "of a read, mean over the second"),
            column("write_ms", pa.float64(), "of a write, mean over the second"),
            column("reads_per_s", pa.float64(), "reads", "I/Os per second"),
            column("writes_per_s", pa.float64(), "writes", "I/Os per second"),
        ]
    )

    def __init__(self, engine: Engine):
        super().__init__(engine)
        self._process: subprocess.Popen[str] | None = None
        self._lines: deque[str] = deque()
        self._volumes: list[str] = []
        self._misfits = 0  # lines

    def refusal(self) -> str | None:
        places = ask(self.engine, self.sql)
        if not places or any(None in place for place in places):
            return f"The server does not show this login its machine and its volumes: {_ELSEWHERE}."
        if {str(machine).casefold() for machine, *_ in places} != {platform.node().casefold()}:
            return f"The server runs on another machine than the driver: {_ELSEWHERE}."
        if not shutil.which("typeperf"):
            return f"typeperf, which belongs to Windows, is not found: {_ELSEWHERE}."
        return None

    def open(self) -> None:
        super().open()
        points = sorted({row["mount_point"] for row in self.connection.rows(self.sql)} - {None})
        if not points:
            raise StallmarkError("the server does not show its volumes any more")
        self._volumes = [point.rstrip("\\") for point in points]
        wanted = [path.format(volume=volume) for volume in self._volumes for path in _COUNTERS.values()]
        self._process = subprocess.Popen(
            ["typeperf", *wanted, "-si", "1"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        threading.Thread(target=self._read, args=(self._process,), name="typeperf", daemon=True).start()

    def sample(self, now: float) -> list[Row]:
        if self._process is None or self._process.poll() is not None:
            text = " ".join(line.strip() for line in self._lines if line.strip()) or "it said nothing"
            raise StallmarkError(f"typeperf has ended ({text}): {_ELSEWHERE}")
        lines = [self._lines.popleft() for _ in range(len(self._lines))]
        cells = (cells for line in lines for cells in csv.reader([line], delimiter=separator(line)) if cells)
        return [row for line in cells for row in self._rows(line)]

    def close(self) -> None:
        super().close()
        if self._process is not None:
            kill(self._process)
            self._process = None

    def _rows(self, line: list[str]) -> list[Row]:
        """Return the rows of a line of typeperf: a time, then the counters in the requested order. Header and last
        words have no time and give no rows; a value that could not be taken is blank.
        """
        time, *texts = line
        if not is_time(time) or not any(text.strip() for text in texts):
            return []
        values = [_number(text) for text in texts]
        width = len(_COUNTERS)
        if len(values) != width * len(self._volumes) or not any(value is not None for value in values):
            self._misfits += 1
            self.incomplete = f"{self._misfits} of typeperf's lines had other values than were asked for"
            return []
        readings = []
        for index, volume in enumerate(self._volumes):
            row: Row = dict(zip(_COUNTERS, values[index * width : (index + 1) * width], strict=True))
            for name in ("read_ms", "write_ms"):
                row[name] = None if row[name] is None else row[name] * 1000
            readings.append({"volume": volume} | row)
        return readings

    def _read(self, process: "subprocess.Popen[str]") -> None:
        assert process.stdout
        for line in process.stdout:
            self._lines.append(line)


def _number(text: str) -> float | None:
    """Return a counter's value, or None if it is unknown or negative; Windows writes its language's comma."""
    try:
        value = number(text)
    except ValueError:
        return None
    return value if value is not None and value >= 0 else None
