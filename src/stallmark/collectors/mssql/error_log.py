"""Watch the server's error log for storage errors: a run that meets one gives no verdict.

A session that meets 823 or 824 gets the error itself. Errors that the server meets on its own (a checkpoint's write, a
read that succeeded at the second attempt, an I/O of more than 15 s) are in its error log only.
"""

import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from stallmark.collectors.base import TEXT, Row
from stallmark.collectors.mssql import MssqlCollector, ask, statement
from stallmark.engines import sql_file
from stallmark.engines.base import Engine
from stallmark.engines.mssql.address import BOX
from stallmark.engines.mssql.odbc import STORAGE_ERRORS
from stallmark.engines.mssql.settings import ERROR_LOG
from stallmark.errors import CallFailed
from stallmark.record.schema import column

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
