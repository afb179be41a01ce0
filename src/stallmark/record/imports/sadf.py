"""Rows of `sadf -d` (man sadf: "prints the contents in a format that can easily be ingested by a database").

    # hostname;interval;timestamp;DEV;tps;rkB/s;wkB/s;…
    sql01;600;2026-03-02 10:10:01 UTC;sda;812.21;…
    sql01;-1;2026-03-02 11:02:40 UTC;LINUX-RESTART	(16 CPU)

Times are UTC; with -T or -t they are local and say no zone; with -U they are seconds since 1970. Every row says how
many seconds it covers, in whole seconds: a span that ends within 2 s of the sample before begins with it.
"""

import re
from pathlib import Path

from stallmark.record.imports.clock import Clock, order_of
from stallmark.record.imports.devices import Devices, Io
from stallmark.record.imports.recording import Recording, Wanted, finite_or_none
from stallmark.record.imports.sar_tables import Machine, device_io
from stallmark.record.text_stream import lines_of

HEAD = re.compile(r"\s*(# hostname;interval;timestamp;|[^;\n]+;-?\d+;[^;\n]+;)")
ROUNDED_S = 2.0
_SINCE_START_S = 10**8  # what old versions write for an interval they do not know
_RESTART = re.compile(r"LINUX-RESTART(?:\s+\((\d+) CPU\))?")


def read(path: Path, recording: Recording, wanted: Wanted) -> None:
    stamps = (cells[2] for line in lines_of(path) if len(cells := line.split(";")) > 3 and not line.startswith("#"))
    reader = _Reader(path, recording, wanted, Clock(path, recording, wanted, order_of(path, stamps, wanted)))
    reader.read()


class Stated:
    """The spans of samples that say how long they are."""

    def __init__(self) -> None:
        self._before: float | None = None

    def span(self, end: float, seconds: float) -> tuple[float, float] | None:
        before, self._before = self._before, end
        if not 0 < seconds < _SINCE_START_S:
            return None
        near = before is not None and before < end and abs(end - before - seconds) <= ROUNDED_S
        return (before, end) if near and before is not None else (end - seconds, end)


class _Reader:
    def __init__(self, path: Path, recording: Recording, wanted: Wanted, clock: Clock):
        self._path, self._recording, self._clock = path, recording, clock
        self._devices = Devices(recording, wanted)
        self._machine = Machine(recording, self._devices)
        self._spans = Stated()
        self._columns: list[str] = []
        self._disks: dict[str, Io] = {}
        self._at: tuple[str, str] | None = None

    def read(self) -> None:
        for line in lines_of(self._path):
            cells = line.split(";")
            if line.startswith("#"):
                self._flush()
                self._columns, self._spans = cells, Stated()
            elif len(cells) > 3 and (restart := _RESTART.match(cells[3])):
                self._flush()
                self._recording.restarts.append(self._clock.instant(cells[2]))
                self._recording.cores = int(restart[1]) if restart[1] else self._recording.cores
            elif self._columns and len(cells) == len(self._columns):
                self._row(cells)
            elif line.strip() and not (len(cells) == 4 and cells[1] == "-1"):  # a comment
                self._recording.note(f"{self._path.name}: a row that is cut, or of no known table, is left out.")
        self._flush()
        self._devices.finish(self._path.name)

    def _row(self, cells: list[str]) -> None:
        host, seconds, stamp = cells[:3]
        self._recording.host = self._recording.host or host
        try:
            stated = float(seconds)
            values = {
                name: finite_or_none(cell)
                for name, cell in zip(self._columns[3:], cells[3:], strict=True)
                if name not in ("CPU", "DEV")
            }
        except ValueError:
            self._recording.note(f"{self._path.name}: a row with what is no number is left out.")
            return
        if "DEV" in self._columns:
            if self._at != (seconds, stamp):
                self._flush()
                self._at = seconds, stamp
            self._disks[cells[self._columns.index("DEV")]] = device_io(values)
        elif "CPU" in self._columns:
            if cells[self._columns.index("CPU")] in ("-1", "all"):
                self._machine.add_cpu(self._spans.span(self._clock.instant(stamp), stated), values)
        elif "rtps" in self._columns:
            self._machine.add_all_disks(self._spans.span(self._clock.instant(stamp), stated), values)

    def _flush(self) -> None:
        """Add the devices of the sample that ends here."""
        if self._disks and self._at is not None:
            seconds, stamp = self._at
            self._machine.add_disks(self._spans.span(self._clock.instant(stamp), float(seconds)), self._disks)
        self._disks, self._at = {}, None
