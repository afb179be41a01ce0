"""Text of `sar -d -p`, `sar -u` and `sar -b` (man sar), live or of a daily file.

The header alone has the date: a time of day that falls is the next day, and each activity begins again at the header's.
The times are local ones of whoever ran sar. "LINUX RESTART" is a row of its own; what comes after it begins anew. The
tables repeat their column names, and end with averages.
"""

import re
from collections.abc import Iterable
from datetime import datetime, timedelta
from pathlib import Path

from stallmark.errors import StallmarkError
from stallmark.record.attach.times import moment_of
from stallmark.record.imports.clock import Clock, order_of
from stallmark.record.imports.devices import Devices, Io
from stallmark.record.imports.iostat import HEAD, note_host
from stallmark.record.imports.recording import Recording, Steps, Wanted, finite_or_none
from stallmark.record.imports.sar_tables import Machine, device_io
from stallmark.record.text_stream import head_of, lines_of

_ROW = re.compile(r"^(?P<time>\d{1,2}:\d{2}:\d{2})(?:\s+(?P<half>[AaPp][Mm]))?\s+(?P<rest>\S.*)", re.M)
LOOKS = re.compile(r"^\d{1,2}:\d{2}:\d{2}(?: [AaPp][Mm])?\s+(CPU\s|tps\s|DEV\s|LINUX[ -]RESTART|.*\sDEV\s*$)", re.M)
_RESTART = re.compile(r"LINUX[ -]RESTART")
_BACK = timedelta(hours=12)  # a time of day that falls by more is of the next day


def read(path: Path, recording: Recording, wanted: Wanted) -> None:
    """Read a file; raise StallmarkError where it has no header with a date."""
    dates = [found["date"] for line in lines_of(path) if (found := HEAD.match(line))]
    if not dates:
        raise StallmarkError(
            f"{path} has no header with its date: keep the first line that sar prints, or use sadf -d."
        )
    half = " AM" if any(row["half"] for row in _ROW.finditer(head_of(path))) else ""
    order = order_of(path, [f"{date} 01:00:00{half}" for date in dates], wanted)
    reader = _Reader(path, recording, wanted, Clock(path, recording, wanted, order))
    reader.read(lines_of(path), order)


class _Activity:
    """One table of the file: where its samples are in time. `last`: of its last row, without zone."""

    def __init__(self, path: Path, recording: Recording):
        self.steps = Steps(path, recording)
        self.last: datetime | None = None
        self.instant = 0.0


class _Reader:
    def __init__(self, path: Path, recording: Recording, wanted: Wanted, clock: Clock):
        self._path, self._recording, self._clock = path, recording, clock
        self._devices = Devices(recording, wanted)
        self._machine = Machine(recording, self._devices)
        self._activities: dict[tuple[str, ...], _Activity] = {}
        self._day: datetime | None = None
        self._columns: tuple[str, ...] = ()
        self._disks: dict[str, Io] = {}
        self._of_disks: tuple[str, ...] | None = None

    def read(self, lines: Iterable[str], order: str) -> None:
        for line in lines:
            if found := HEAD.match(line):
                self._flush()
                note_host(self._recording, line)
                self._day = moment_of(f"{found['date']} 00:00:00", order)
                self._activities.clear()
            elif row := _ROW.match(line.strip()):
                self._row(row)
        self._flush()
        for activity in self._activities.values():
            activity.steps.tell()
        self._devices.finish(self._path.name)

    def _row(self, row: re.Match[str]) -> None:
        cells = tuple(row["rest"].split())
        restart = _RESTART.search(row["rest"])
        if restart or _names_columns(cells):
            self._flush()
            if restart:
                activity = self._activity()
                instant = self._instant(activity, row)
                self._recording.restarts.append(instant)
                cores = re.search(r"\((\d+) CPU\)", row["rest"])
                self._recording.cores = int(cores[1]) if cores else self._recording.cores
                activity.steps.begin_at(instant)
                return
            self._columns = cells
            activity = self._activity()
            activity.steps.begin_at(self._instant(activity, row))  # of the first interval below
            return
        if not self._columns:
            return
        if len(cells) != len(self._columns):
            self._recording.note(f"{self._path.name}: a row that is cut is left out.")
            return
        try:
            values = {
                name: finite_or_none(cell)
                for name, cell in zip(self._columns, cells, strict=True)
                if name not in ("CPU", "DEV")
            }
        except ValueError:
            self._recording.note(f"{self._path.name}: a row with what is no number is left out.")
            return
        activity = self._activity()
        if "DEV" in self._columns:
            before = activity.last
            instant = self._instant(activity, row)
            if before != activity.last:
                self._flush()
            self._of_disks, activity.instant = self._columns, instant
            self._disks[cells[self._columns.index("DEV")]] = device_io(values)
        elif "CPU" in self._columns:
            if cells[self._columns.index("CPU")] == "all":
                self._machine.add_cpu(activity.steps.span_to(self._instant(activity, row)), values)
        elif "rtps" in self._columns:
            self._machine.add_all_disks(activity.steps.span_to(self._instant(activity, row)), values)

    def _flush(self) -> None:
        """Add the devices of the sample that ends here."""
        if self._disks and self._of_disks is not None:
            activity = self._activities[self._of_disks]
            self._machine.add_disks(activity.steps.span_to(activity.instant), self._disks)
        self._disks = {}

    def _activity(self) -> _Activity:
        return self._activities.setdefault(self._columns, _Activity(self._path, self._recording))

    def _instant(self, activity: _Activity, row: re.Match[str]) -> float:
        if self._day is None:
            raise StallmarkError(f"{self._path} has rows before the header with their date: it is cut.")
        hour, minute, second = map(int, row["time"].split(":"))
        if row["half"]:
            hour = hour % 12 + 12 * (row["half"][0] in "Pp")
        if hour > 23 or minute > 59 or second > 60:
            raise StallmarkError(f"{row['time']} in {self._path} is no time of day.")
        last = activity.last or self._day
        day = last.replace(hour=0, minute=0, second=0)
        moment = day + timedelta(hours=hour, minutes=minute, seconds=second)
        if last - moment > _BACK:
            moment += timedelta(days=1)
        activity.last = moment
        return self._clock.instant_of(moment)


def _names_columns(cells: tuple[str, ...]) -> bool:
    return any(cell in ("CPU", "DEV", "tps") or cell.startswith("%") or cell.endswith("/s") for cell in cells)
