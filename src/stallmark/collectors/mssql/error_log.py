"""Watch the server's error log for storage errors: a run that meets one gives no verdict.

A session that meets 823 or 824 gets the error itself. What the server meets on its own (a checkpoint's write, a
read that succeeded at the second attempt, an I/O of more than 15 s) stands in its error log only.
"""

import time
from collections import Counter
from collections.abc import Sequence

import pyarrow as pa

from stallmark.collectors.base import TEXT, Row
from stallmark.collectors.mssql.collector import MssqlCollector, statement
from stallmark.engines.base import Engine
from stallmark.engines.mssql.service import BOX
from stallmark.engines.mssql.view_rights import ERROR_LOG
from stallmark.record.schema import column

LONG_READ_S = 1.0

# Words of the messages (sys.messages, MSSQLSERVER_823 …). The query asks for lines with "offset", which all four hold.
_MESSAGES = {
    "taking longer than": 833,
    "succeeded after failing": 825,
    "logical consistency-based I/O error": 824,
    "The operating system returned error": 823,
}


def storage_error(text: str) -> int | None:
    """Return the number of the storage error in a line of the log (in English); None without one."""
    return next((number for words, number in _MESSAGES.items() if words in text), None)


class ErrorLog(MssqlCollector):
    name = "error_log"
    title = "Error log"
    help = (
        "Lines of the server's error log on failed, repaired or very slow I/O: errors 823, 824, 825 and 833 "
        "(sp_readerrorlog). One of them ends the run. A log that is not written in English is not understood."
    )
    interval_s = 60.0  # the server reads the whole file each time
    polling = True
    columns = pa.schema(
        [
            column("log_time", TEXT, "the server's own time of the line"),
            column("number", pa.int32(), "823, 824, 825 or 833"),
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

    def unavailable(self) -> str | None:
        why = super().unavailable()
        if why is None:
            began = time.monotonic()
            self.sample_alone()  # what stands there before the run is not the run's
            self._read_s = time.monotonic() - began
        return why

    def limited(self) -> str | None:
        if self._read_s <= LONG_READ_S:
            return None
        return (
            f"The server takes {self._read_s:.0f} s to read its error log, and does so every {self.interval_s:.0f} s: "
            "EXEC sp_cycle_errorlog begins a new one."
        )

    def sample(self, now: float) -> list[Row]:
        lines = Counter((str(row["LogDate"]), (row["Text"] or "").strip()) for row in self.connection.rows(self.sql))
        new = Counter() if self._known is None else lines - self._known
        self._known = lines  # kept through an outage: what is logged meanwhile counts
        rows: list[Row] = [
            {"log_time": time, "number": number, "text": text}
            for (time, text), times in sorted(new.items())
            for _ in range(times)
            if (number := storage_error(text))
        ]
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
