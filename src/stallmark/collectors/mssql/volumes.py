"""Windows' own counters of the volumes under the server's files, live, where the driver runs beside the server."""

import csv
import platform
import shutil
import subprocess
import threading
from collections import deque

import pyarrow as pa

from stallmark.collectors.base import TEXT, Row
from stallmark.collectors.mssql.collector import MssqlCollector, ask
from stallmark.engines.base import Engine
from stallmark.errors import StallmarkError
from stallmark.processes import kill
from stallmark.record.formats.dates import is_time
from stallmark.record.formats.perfmon import separator
from stallmark.record.formats.sample import finite_or_none
from stallmark.record.schema import column

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
        "counts them (LogicalDisk, by typeperf), second by second: means over a second, which say nothing of single "
        "I/Os. Where the driver runs on the server's Windows."
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
            said = " ".join(line.strip() for line in self._lines if line.strip()) or "it said nothing"
            raise StallmarkError(f"typeperf has ended ({said}): {_ELSEWHERE}")
        lines = [self._lines.popleft() for _ in range(len(self._lines))]
        cells = (cells for line in lines for cells in csv.reader([line], delimiter=separator(line)) if cells)
        return [row for line in cells for row in self._rows(line)]

    def close(self) -> None:
        super().close()
        if self._process is not None:
            kill(self._process)
            self._process = None

    def _rows(self, line: list[str]) -> list[Row]:
        """Return the rows of a line of typeperf: a time, then the counters as they were asked for. Its header and its
        last words have no time, and are none; a value that could not be taken is a blank."""
        time, *texts = line
        if not is_time(time) or not any(text.strip() for text in texts):
            return []
        values = [_number(text) for text in texts]
        each = len(_COUNTERS)
        if len(values) != each * len(self._volumes) or not any(value is not None for value in values):
            self._misfits += 1
            self.incomplete = f"{self._misfits} of typeperf's lines had other values than were asked for"
            return []
        found = []
        for at, volume in enumerate(self._volumes):
            row: Row = dict(zip(_COUNTERS, values[at * each : (at + 1) * each], strict=True))
            for name in ("read_ms", "write_ms"):
                row[name] = None if row[name] is None else row[name] * 1000
            found.append({"volume": volume} | row)
        return found

    def _read(self, process: "subprocess.Popen[str]") -> None:
        assert process.stdout
        for line in process.stdout:
            self._lines.append(line)


def _number(text: str) -> float | None:
    """Return a counter's value; Windows writes it with the comma of its language."""
    try:
        return finite_or_none(text)
    except ValueError:
        return None
