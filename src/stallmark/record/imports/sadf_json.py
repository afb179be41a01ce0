"""JSON of `sadf -j FILE -- -d -p -u -b` (man sadf: "-j").

Times are UTC unless sadf was run with -T or -t. Newer versions name the zone ("tz"), older ones say whether it is UTC
("utc": 1). Every sample says how many seconds it covers. Restarts stand behind the samples.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from stallmark.record.imports.clock import Clock, order_of
from stallmark.record.imports.devices import Devices, Io
from stallmark.record.imports.iostat_json import ARRAY, note_host_of_json
from stallmark.record.imports.recording import Recording, Wanted
from stallmark.record.imports.sar_tables import Machine, Values, device_io
from stallmark.record.text_stream import JsonArray

LOOKS = re.compile(r'"timestamp"\s*:\s*\{|"sysdata-version"|"file-date"')
_SINCE_START_S = 10**8  # more than three years: what old versions write for an interval they do not know
_ROUNDED_S = 2.0
_BOOT = re.compile(r'"boot"\s*:\s*\{\s*"date"\s*:\s*"([^"]*)"\s*,\s*"time"\s*:\s*"([^"]*)"\s*(?:,\s*"utc"\s*:\s*(\d))?')


class Stated:
    """The spans of samples that state their seconds. They are whole seconds: a span that ends within 2 s of the sample
    before begins with it."""

    def __init__(self) -> None:
        self._before: float | None = None

    def span(self, end: float, seconds: float) -> tuple[float, float] | None:
        before, self._before = self._before, end
        if not 0 < seconds < _SINCE_START_S:
            return None
        near = before is not None and before < end and abs(end - before - seconds) <= _ROUNDED_S
        return (before, end) if near and before is not None else (end - seconds, end)


def read(path: Path, recording: Recording, wanted: Wanted) -> None:
    clock = Clock(path, recording, wanted, order_of(path, (stamp for _, stamp in _stamped(path)), wanted))
    note_host_of_json(path, recording)
    devices, spans = Devices(recording, wanted), Stated()
    machine = Machine(recording, devices)
    samples = JsonArray(path, ARRAY)
    for sample in samples:
        if (stamp := _stamp(sample)) is None:
            continue  # a restart or a comment of an older version
        stated = sample["timestamp"].get("interval")
        seconds = float(stated) if isinstance(stated, int | float) else 0.0
        span = spans.span(clock.instant(stamp), seconds)
        machine.add_disks(span, _disks(sample))
        for row in _rows(sample, "cpu-load"):
            if row.get("cpu") == "all":
                machine.add_cpu(span, _numbers(row))
        if isinstance(io := sample.get("io"), dict):
            parts = [part for part in (io.get("io-reads"), io.get("io-writes")) if isinstance(part, dict)]
            machine.add_all_disks(span, {name: value for part in parts for name, value in _numbers(part).items()})
    for date, time, utc in _BOOT.findall(samples.rest):
        recording.restarts.append(clock.instant(f"{date} {time}{' UTC' if utc == '1' else ''}"))
    if not samples.whole:
        recording.note(f"{path.name} is cut: its last sample is left out.")
    devices.finish(path.name)


def _stamped(path: Path) -> Iterator[tuple[dict[str, Any], str]]:
    for sample in JsonArray(path, ARRAY):
        if (stamp := _stamp(sample)) is not None:
            yield sample, stamp


def _stamp(sample: dict[str, Any]) -> str | None:
    when = sample.get("timestamp")
    if not isinstance(when, dict) or not (when.get("date") and when.get("time")):
        return None
    is_utc = when.get("utc") or when.get("tz") == "UTC"
    return f"{when['date']} {when['time']}{' UTC' if is_utc else ''}"


def _disks(sample: dict[str, Any]) -> dict[str, Io]:
    return {str(row.get("disk-device", "")): device_io(_numbers(row)) for row in _rows(sample, "disk")}


def _rows(sample: dict[str, Any], name: str) -> list[dict[str, Any]]:
    found = sample.get(name)
    return [row for row in found if isinstance(row, dict)] if isinstance(found, list) else []


def _numbers(found: dict[str, Any]) -> Values:
    return {
        name: float(value) if value >= 0 else None
        for name, value in found.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }
