"""Text of `iostat -xt N` and `iostat -dxt N`, of sysstat 9 to 12 (man iostat: "r/s, w/s", "rkB/s, wkB/s", "r_await").

A report begins with its time, which stands at the end of what it covers. The first report after a header may cover all
time since the machine was started; nothing says so, and it is never counted. A kB is 1,024 bytes. Versions before 10.1
have one `await` for reads and writes; where there is no r_await, how long reads took is not known. -z leaves out
devices without I/O.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from stallmark.errors import StallmarkError
from stallmark.record.attach.times import is_time
from stallmark.record.imports.clock import Clock, order_of
from stallmark.record.imports.devices import Devices, Io
from stallmark.record.imports.recording import WHOLE_MACHINE, Recording, Steps, Wanted, finite_or_none, product
from stallmark.record.text_stream import lines_of

HEAD = re.compile(r"\s*Linux \S+ \((?P<host>[^)]*)\)\s+(?P<date>\S+)(?:\s+_\S+_)?(?:\s+\((?P<cores>\d+) CPU\))?")
_KIB, _MIB, _SECTOR = 1024.0, 1024.0**2, 512.0
BYTES = {
    "rkB/s": ("read_bytes", _KIB), "wkB/s": ("write_bytes", _KIB),
    "rMB/s": ("read_bytes", _MIB), "wMB/s": ("write_bytes", _MIB),
    "rsec/s": ("read_bytes", _SECTOR), "wsec/s": ("write_bytes", _SECTOR),
    "kB_read/s": ("read_bytes", _KIB), "kB_wrtn/s": ("write_bytes", _KIB),
    "MB_read/s": ("read_bytes", _MIB), "MB_wrtn/s": ("write_bytes", _MIB),
}  # fmt: skip
_WRAPPED = 2.0**50  # a counter that wrapped is written as 2^63 (sysstat issue 312)


def read(path: Path, recording: Recording, wanted: Wanted) -> None:
    """Read a file; raise StallmarkError where it has no times, or cannot be understood."""
    stamps = (line for line in lines_of(path) if is_time(line))
    if next(stamps, None) is None:
        raise StallmarkError(f"{path} has no times: run iostat with -t, as in `iostat -xt 15`.")
    order = order_of(path, (line for line in lines_of(path) if is_time(line)), wanted)
    _Reader(path, recording, wanted, Clock(path, recording, wanted, order)).read()


class _Reader:
    def __init__(self, path: Path, recording: Recording, wanted: Wanted, clock: Clock):
        self._path, self._recording, self._clock = path, recording, clock
        self._devices = Devices(recording, wanted)
        self._steps = Steps(path, recording)
        self._stamp: str | None = None
        self._disks: dict[str, Io] = {}
        self._cpu_share: float | None = None
        self._whole = True
        self._has_disks = False

    def read(self) -> None:
        columns: list[str] = []
        for line in lines_of(self._path):
            cells = line.split()
            if not cells:
                columns = []
            elif is_time(line):
                self._end_report()
                self._stamp = line
            elif HEAD.match(line):
                self._end_report()
                self._steps.begin_anew()
                note_host(self._recording, line)
            elif cells[0] in ("avg-cpu:", "Device", "Device:"):
                columns = cells
                self._has_disks |= cells[0] != "avg-cpu:"
            elif columns:
                self._row(columns, cells)
        # A report ends with an empty line behind its devices.
        self._whole &= not columns and self._has_disks
        self._end_report()
        self._steps.tell()
        self._devices.finish(self._path.name)

    def _row(self, columns: Sequence[str], cells: Sequence[str]) -> None:
        if columns[0] == "avg-cpu:":
            cells = ["", *cells]
        if len(cells) != len(columns):
            self._whole = False
            return
        try:
            values = {name: finite_or_none(cell) for name, cell in zip(columns[1:], cells[1:], strict=True)}
        except ValueError:
            self._whole = False
            return
        if columns[0] == "avg-cpu:":
            self._cpu_share = busy_share(values)
        else:
            self._disks[cells[0]] = device_io(values)

    def _end_report(self) -> None:
        """Add the report that ends here. One that is cut, or has what is no number, is left out."""
        if self._stamp is not None:
            if self._whole:
                span = self._steps.span_to(self._clock.instant(self._stamp))
                add_sample(self._recording, self._devices, span, self._disks, self._cpu_share)
            else:
                self._recording.note(f"{self._path.name}: a report that is cut or damaged is left out.")
                self._steps.begin_anew()
        self._stamp, self._disks, self._cpu_share, self._whole, self._has_disks = None, {}, None, True, False


def add_sample(
    recording: Recording,
    devices: Devices,
    span: tuple[float, float] | None,
    disks: dict[str, Io],
    cpu_share: float | None,
) -> None:
    """Add a report of a machine: its devices, and the share of its cores that was busy."""
    if span is None:
        devices.meet(disks)
        return
    rates = devices.fold(disks)
    rates["server.cpu_s"] = product(cpu_share, recording.cores)
    recording.add_rates(*span, rates)
    if rates["server.cpu_s"] is not None:
        recording.note(WHOLE_MACHINE)


def device_io(values: dict[str, float | None]) -> Io:
    """Return the rates of a device from the columns of a report."""
    found: dict[str, float | None] = {"reads": _sane(values.get("r/s")), "writes": _sane(values.get("w/s"))}
    for theirs, (ours, factor) in BYTES.items():
        if theirs in values:
            found[ours] = product(_sane(values[theirs]), factor)
    found["read_stall_ms"] = product(found["reads"], values.get("r_await"))
    found["write_stall_ms"] = product(found["writes"], values.get("w_await"))
    return found


def busy_share(values: dict[str, float | None]) -> float | None:
    """Return the share of the cores that worked: neither idle, nor waiting for I/O, nor taken by others."""
    plain = {name.lstrip("%"): value for name, value in values.items()}
    idle = plain.get("idle")
    if idle is None:
        return None
    return max(0.0, 100 - idle - (plain.get("iowait") or 0) - (plain.get("steal") or 0)) / 100


def note_host(recording: Recording, line: str) -> str | None:
    """Take host and cores from a header; return its date."""
    found = HEAD.match(line)
    if found is None:
        return None
    recording.host = recording.host or found["host"]
    if found["cores"]:
        recording.cores = int(found["cores"])
    return found["date"]


def stamps_of(path: Path, pattern: re.Pattern[str]) -> Iterator[str]:
    """Yield what the first group of a pattern finds in the lines of a file."""
    for line in lines_of(path):
        if found := pattern.search(line):
            yield found[1]


def _sane(rate: float | None) -> float | None:
    return rate if rate is not None and rate < _WRAPPED else None
