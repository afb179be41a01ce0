"""JSON of `iostat -xdt [-y] -o JSON N` (man iostat: "-o JSON").

Its times are local ones in the style of the locale, or ISO 8601 with S_TIME_FORMAT=ISO; the offset is only in the
latter. The first report may cover all time since the machine was started, and is never counted.
"""

import re
from pathlib import Path

from stallmark.errors import StallmarkError
from stallmark.record.imports.clock import Clock, order_of
from stallmark.record.imports.devices import Devices, Io
from stallmark.record.imports.iostat import add_sample, busy_share, device_io, stamps_of
from stallmark.record.imports.recording import Recording, Steps, Wanted
from stallmark.record.text_stream import JsonArray, head_of

ARRAY = re.compile(r'"statistics"\s*:\s*\[')
NODE = re.compile(r'"nodename"\s*:\s*"((?:[^"\\]|\\.)*)"')
CORES = re.compile(r'"number-of-cpus"\s*:\s*(\d+)')
_STAMP = re.compile(r'"timestamp"\s*:\s*"([^"]*)"')


def read(path: Path, recording: Recording, wanted: Wanted) -> None:
    """Read a file; raise StallmarkError where it has no times."""
    if next(stamps_of(path, _STAMP), None) is None:
        raise StallmarkError(f"{path} has no times: run iostat with -t, as in `iostat -xdt -o JSON 15`.")
    clock = Clock(path, recording, wanted, order_of(path, stamps_of(path, _STAMP), wanted))
    note_host_of_json(path, recording)
    devices, steps = Devices(recording, wanted), Steps(path, recording)
    samples = JsonArray(path, ARRAY)
    for sample in samples:
        if not isinstance(stamp := sample.get("timestamp"), str):
            raise StallmarkError(f"{path} has a report without its time: run iostat with -t.")
        span = steps.span_to(clock.instant(stamp))
        cpu = sample.get("avg-cpu")
        cpu_share = busy_share(_numbers(cpu)) if isinstance(cpu, dict) else None
        add_sample(recording, devices, span, _disks(sample), cpu_share)
    if not samples.whole:
        recording.note(f"{path.name} is cut: its last report is left out.")
    steps.tell()
    devices.finish(path.name)


def note_host_of_json(path: Path, recording: Recording) -> None:
    """Take host and cores from the begin of a file of sysstat."""
    head = head_of(path, 4096)
    if found := NODE.search(head):
        recording.host = recording.host or found[1]
    if found := CORES.search(head):
        recording.cores = int(found[1])


def _disks(sample: dict) -> dict[str, Io]:
    found = sample.get("disk")
    rows = [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []
    return {str(one.get("disk_device", "")): device_io(_numbers(one)) for one in rows}


def _numbers(found: dict) -> dict[str, float | None]:
    return {
        str(name): float(value) if value >= 0 else None
        for name, value in found.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }
