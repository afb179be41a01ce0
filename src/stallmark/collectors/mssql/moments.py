"""Passing states of SQL Server: what is pending, what is runnable, what is in the pool and in the error log now.

Each is sampled in a thread of its own at a random instant, so that a view that takes long to read delays no counter.
"""

import re
import time
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing

import pyarrow as pa

from stallmark.collectors.columns import COUNT, SERVER_TIME, TEXT
from stallmark.collectors.mssql import MssqlCollector, ask, statement
from stallmark.collectors.sampler import Row
from stallmark.engines import sql_file
from stallmark.engines.base import Engine
from stallmark.engines.mssql.address import BOX
from stallmark.engines.mssql.odbc import STORAGE_ERRORS
from stallmark.engines.mssql.settings import ERROR_LOG
from stallmark.errors import CallFailed
from stallmark.record.schema import column

# Four million pages; a sample walks through them all.
LARGEST_POOL_BYTES = 32 << 30
# A walk through the pool takes seconds.
LARGE_POOL_BYTES = 8 << 30
_GIB = 1 << 30


class PendingIO(MssqlCollector):
    name = "pending_io"
    title = "Pending I/O"
    help = (
        "I/Os under way at a random instant of every other second, by file handle (sys.dm_io_pending_io_requests); one "
        "row of 0 requests if no I/O is pending. With the system: the operating system has not answered yet; the "
        "others are done and wait for the server to notice. Microsoft calls the time `internal use only`."
    )
    interval_s = 2.0
    polling = True
    on_azure = True
    columns = pa.schema(
        [
            SERVER_TIME,
            column("handle", TEXT, "handle of the file, the same as in `server_io`"),
            column("type", TEXT, "disk or network"),
            column("with_system", pa.bool_(), "true: the operating system has not answered yet"),
            column("requests", pa.int32(), "under way at the instant", "I/Os"),
            column("longest_ms", COUNT, "longest so far"),
        ]
    )

    def sample(self, now: float) -> Sequence[Row]:
        rows = super().sample(now)
        return rows or [dict.fromkeys(self.columns.names) | {"requests": 0}]


class Schedulers(MssqlCollector):
    name = "schedulers"
    title = "Schedulers"
    help = (
        "Tasks that wait for a CPU or a worker, and I/Os not yet completed, over the schedulers that users "
        "run on, at a random instant of every other second (sys.dm_os_schedulers)."
    )
    interval_s = 2.0
    polling = True
    on_azure = True
    columns = pa.schema(
        [
            SERVER_TIME,
            column("schedulers", pa.int32(), "that users run on", "schedulers"),
            column("tasks", COUNT, "on them", "tasks"),
            column("runnable", COUNT, "waiting for a CPU", "tasks"),
            column("most_runnable", COUNT, "waiting for a CPU, on one scheduler", "tasks"),
            column("waiting_for_worker", COUNT, "waiting for a worker", "tasks"),
            column("pending_disk_ios", COUNT, "not yet completed", "I/Os"),
        ]
    )


class Cpu(MssqlCollector):
    name = "cpu"
    title = "CPU of the server's machine"
    help = (
        "The server's own note of every minute: per cent of the machine's CPU used by itself, and idle "
        "(RING_BUFFER_SCHEDULER_MONITOR, which Microsoft does not document as a view). On Linux before 2025 the "
        "idle time is noted as 0 and left empty here. Age: how long ago the note was made."
    )
    interval_s = 60.0
    polling = True
    columns = pa.schema(
        [
            SERVER_TIME,
            column("record", COUNT, "number of the server's note"),
            column("age_s", pa.float64(), "how long ago the note was made"),
            column("process_percent", pa.int32(), "of the machine's CPU, used by the server"),
            column("idle_percent", pa.int32(), "of the machine's CPU, idle; null where it is not known"),
            column("memory_percent", pa.int32(), "of the memory that the server wants, in memory"),
        ]
    )

    def __init__(self, engine: Engine):
        super().__init__(engine)
        self._last = -1

    def sample(self, now: float) -> Sequence[Row]:
        notes = [_parse_record(row) for row in super().sample(now)]
        if None in notes:
            self.incomplete = "some of the server's notes on its CPU cannot be read"
        rows = sorted((note for note in notes if note), key=lambda row: row["record"])
        new = [row for row in rows if row["record"] > self._last]
        if new:
            self._last = new[-1]["record"]
        return new

    def finish(self) -> Sequence[Row]:
        # Includes the notes since the last turn, and those of a run below a minute.
        return self.sample_alone()

    def open(self) -> None:
        super().open()
        # A restarted server counts from 0 again.
        self._last = -1


class BufferPool(MssqlCollector):
    name = "buffer_pool"
    title = "Buffer pool"
    help = (
        "The contents of the buffer pool, by file and kind of page: pages, dirty pages, and the read time of pages "
        "from disk (sys.dm_os_buffer_descriptors). Once a minute, because it walks through the pool; above "
        f"{LARGE_POOL_BYTES / _GIB:.0f} GiB only at the end of each step."
    )
    interval_s = 60.0
    polling = True
    on_azure = True
    columns = pa.schema(
        [
            SERVER_TIME,
            column("database", TEXT, "name of the database"),
            column("file", pa.int32(), "number of its file"),
            column("page_type", TEXT, "kind of page"),
            column("pages", COUNT, "in the pool", "pages"),
            column("dirty", COUNT, "changed and not yet written", "pages"),
            column("in_extension", COUNT, "in the buffer pool extension", "pages"),
            column("read", COUNT, "whose read was timed", "pages"),
            column("read_us", COUNT, "total time of these reads"),
        ]
    )

    def refusal(self) -> str | None:
        size = self.engine.buffer_pool_bytes()
        if size is not None and size > LARGEST_POOL_BYTES:
            return (
                f"The server uses {size / _GIB:.0f} GiB of memory, and looking at every page of it would be a load "
                f"of its own: this is done up to {LARGEST_POOL_BYTES / _GIB:.0f} GiB."
            )
        return super().refusal()

    _is_large = False

    def open(self) -> None:
        super().open()
        self._is_large = (self.engine.buffer_pool_bytes() or 0) > LARGE_POOL_BYTES

    def sample(self, now: float) -> Sequence[Row]:
        if self._is_large and not any(0 <= end - now <= self.interval_s for end in self.step_ends):
            return []
        return super().sample(now)

    def finish(self) -> Sequence[Row]:
        with closing(self.connection):
            # The last state of the run.
            return self.connection.rows(self.sql)


def _parse_record(row: Row) -> Row | None:
    """Return the values of a record of the ring buffer, or None if it cannot be read.

    Where the platform's idle time is not known (0 on Linux, see sp_BlitzFirst issue 3710) it is None.
    """
    try:
        record = ElementTree.fromstring(row["record"] or "")
        number = int(record.attrib["id"])
        values = {
            name: int(record.findtext(f".//SystemHealth/{name}", "0"))
            for name in ("ProcessUtilization", "SystemIdle", "MemoryUtilization")
        }
    except (ElementTree.ParseError, KeyError, ValueError):
        return None
    # Without an age the record has no place on the run's clock.
    if row["age_ms"] is None:
        return None
    # SQL Server on Linux always writes 0, which would mean a busy host.
    unknown = row["platform"] == "Linux" and values["SystemIdle"] == 0
    return {
        "server_time": row["server_time"],
        "record": number,
        "age_s": row["age_ms"] / 1000,
        "process_percent": values["ProcessUtilization"],
        "idle_percent": None if unknown else values["SystemIdle"],
        "memory_percent": values["MemoryUtilization"],
    }


# The server's error log, watched for storage errors: a run that meets one gives no verdict.
#
# A session that meets 823 or 824 gets the error itself. Errors that the server meets on its own (a write of a
# checkpoint, a read that succeeded at the second attempt, an I/O of more than 15 s) are in its error log only.

LONG_READ_S = 1.0

# Words of the messages (sys.messages, MSSQLSERVER_823 …). In an English log they tell of the number.
_MESSAGES = {
    "taking longer than": 833,
    "succeeded after failing": 825,
    "logical consistency-based I/O error": 824,
    "The operating system returned error": 823,
}
# Also raised for sessions in a database that was taken offline on purpose.
_OF_A_STATE = {926, 3908, 9001}
_WATCHED = sorted({*STORAGE_ERRORS, 833} - _OF_A_STATE)
_NUMBERS = ", ".join(str(number) for number in _WATCHED if number != 833)
_SEARCHED = (": 8", ": 2", ": 610")
"""Part of the line in front of a message: an 8 that a number begins with, a severity from 20 on, and one number."""
# "Error: 823, Severity: 24, State: 2.", which stands in front of a message, has the numbers in every language.
_NUMBERED = re.compile(rf"\D+?[:：] ?({'|'.join(map(str, _WATCHED))})[,，、] ?\D+?[:：] ?\d+[,，、] ?\D+?[:：] ?\d+\D*")


def storage_error(text: str) -> int | None:
    """Return the number of the storage error in a line of the log; None without one."""
    if match := _NUMBERED.fullmatch(text):
        return int(match[1])
    return next((number for words, number in _MESSAGES.items() if words in text), None)


class ErrorLog(MssqlCollector):
    name = "error_log"
    title = "Error log"
    help = (
        f"Lines of the server's error log on failed, repaired or very slow I/O and on damage: errors {_NUMBERS} "
        "and 833 (sp_readerrorlog). Each of these errors ends the run. 833 is recognised in English logs only."
    )
    # The server reads the whole file each time.
    interval_s = 60.0
    polling = True
    columns = pa.schema(
        [
            column("log_time", TEXT, "the server's own time of the line"),
            column("number", pa.int32(), "SQL Server's number of the error"),
            column("text", TEXT, "the line"),
        ]
    )

    def __init__(self, engine: Engine):
        super().__init__(engine)
        self._known: Counter[tuple[str, str]] | None = None
        self._read_s = 0.0

    @property
    def sql(self) -> str:  # type: ignore[override]
        return self._by_its_procedure(statement(self.name, self.major))

    @property
    def permission(self) -> str:
        return ERROR_LOG.name(self.engine)

    def refusal(self) -> str | None:
        reason = super().refusal()
        if reason is None:
            began = time.monotonic()
            # Lines from before the run do not count.
            self.sample_alone()
            self._read_s = time.monotonic() - began
        return reason

    def limits(self) -> str | None:
        if self._read_s > LONG_READ_S:
            return (
                f"The server takes {self._read_s:.0f} s to read its error log, and does so every "
                f"{self.interval_s:.0f} s: EXEC sp_cycle_errorlog begins a new one."
            )
        try:
            languages = ask(self.engine, sql_file.read(__package__, "error_log.language"))
        except CallFailed as failure:  # no reason to do without the log
            return (
                f"Whether the error log is in English is not known ({failure.message}). In another language, lines on "
                f"I/O of more than 15 s (error 833) are not understood; errors {_NUMBERS} are known by their number."
            )
        if not languages or languages[0][0] is None:
            return None
        return (
            f"The default language of logins is {languages[0][0]}. If the error log is written in it, lines on I/O of "
            f"more than 15 s (error 833) are not understood; errors {_NUMBERS} are known by their number."
        )

    def sample(self, now: float) -> list[Row]:
        lines = _count_lines(self.connection.rows(self.sql))
        numbered = self._by_its_procedure(sql_file.read(__package__, "error_log.numbers"))
        # The procedure filters the log on the server, which may have millions of lines.
        for words in _SEARCHED:
            lines |= _count_lines(self.connection.rows(numbered.format(words=words)))
        new = Counter() if self._known is None else lines - self._known
        # Kept through an outage, as lines logged meanwhile count.
        self._known = lines
        rows: list[Row] = [
            {"log_time": time, "number": number, "text": text}
            for (time, number, text), times in _errors(new)
            for _ in range(times)
        ]
        # The first error is the cause; later ones may be its consequences.
        if rows and self.alarm is None:
            self.alarm = (
                f"the server's error log tells of trouble with its storage: {rows[0]['text']} "
                f"(error {rows[0]['number']}); check the storage"
            )
        return rows

    def finish(self) -> Sequence[Row]:
        return self.sample_alone()

    def _by_its_procedure(self, text: str) -> str:
        """Return the statement with the procedure by which the service lets the log be read."""
        return text.replace(BOX.error_log, self.engine.service.error_log)


def _count_lines(rows: Iterable[Row]) -> Counter[tuple[str, str]]:
    """Return the lines of the log by time and text."""
    return Counter((str(row["LogDate"]), (row["Text"] or "").strip()) for row in rows)


def _errors(lines: Counter[tuple[str, str]]) -> Iterator[tuple[tuple[str, int, str], int]]:
    """Yield time, number and text of each storage error, with how often it was logged.

    A line with the number has its message behind it, in a line of the same time: understood, that one counts.
    """
    numbers = {line: number for line in sorted(lines) if (number := storage_error(line[1]))}
    messages = {(time, number) for (time, text), number in numbers.items() if not _NUMBERED.fullmatch(text)}
    for (when, text), number in numbers.items():
        if not _NUMBERED.fullmatch(text):
            yield (when, number, text), lines[when, text]
        elif (when, number) not in messages:
            behind = (line[1] for line in sorted(lines) if line[0] == when and line not in numbers)
            yield (when, number, " ".join([text, *behind])), lines[when, text]
