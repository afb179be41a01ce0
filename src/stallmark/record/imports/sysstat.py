"""iostat and sar as a profile: the choice of their counters and their columns.

sar counts a device's reads and writes together (`tps`), and their `await` together: only their bytes are separate (man
sar, -d). `sar -b` counts the reads and the writes of all physical disks together, in blocks of 512 bytes.
"""

from collections.abc import Mapping

import numpy as np

from stallmark.errors import StallmarkError
from stallmark.record.formats.sample import Counter, Recorded
from stallmark.record.formats.sysstat import AS_SADF, CPU, CPU_LOADS
from stallmark.record.imports.devices import ALL_DISKS, NUMBERED, Devices, canonical, choose_disks, device_io
from stallmark.record.imports.recording import WHOLE_MACHINE, Recording, Steps, Wanted, some_names
from stallmark.record.profile.interval_table import IO, FileClass

_KIB, _MIB, _SECTOR = 1024.0, 1024.0**2, 512.0
_DISK = {
    "r/s": ("reads", 1.0), "w/s": ("writes", 1.0), "r_await": ("read_ms", 1.0), "w_await": ("write_ms", 1.0),
    "rkB/s": ("read_bytes", _KIB), "wkB/s": ("write_bytes", _KIB),
    "rMB/s": ("read_bytes", _MIB), "wMB/s": ("write_bytes", _MIB),
    "rsec/s": ("read_bytes", _SECTOR), "wsec/s": ("write_bytes", _SECTOR),
    "Blk_read/s": ("read_bytes", _SECTOR), "Blk_wrtn/s": ("write_bytes", _SECTOR),
    "kB_read/s": ("read_bytes", _KIB), "kB_wrtn/s": ("write_bytes", _KIB),
    "MB_read/s": ("read_bytes", _MIB), "MB_wrtn/s": ("write_bytes", _MIB),
    "rkB": ("read_bytes", _KIB), "wkB": ("write_bytes", _KIB),
    "rd_sec": ("read_bytes", _SECTOR), "wr_sec": ("write_bytes", _SECTOR),
}  # fmt: skip
"""Columns by counter of a device; the first that a version has counts."""
_ALL_DISKS = {
    "io-reads rtps": ("reads", 1.0), "io-writes wtps": ("writes", 1.0),
    "io-reads bread": ("read_bytes", _SECTOR), "io-writes bwrtn": ("write_bytes", _SECTOR),
}  # fmt: skip
_DISK_OBJECTS, _CPU_OBJECTS, _ALL_DISKS_OBJECT = ("", "disk"), (CPU, *CPU_LOADS), "io"
_ROUND, _NEAR = 2.0**32, 2.0**24
"""A 32-bit counter that falls slightly seems to rise by nearly its whole range (sysstat issue 259)."""


def read(file: Recorded, recording: Recording, wanted: Wanted) -> None:
    """Add a file of iostat or sadf. Raise StallmarkError if it cannot be read."""
    path = file.path
    clock = recording.clock(file, wanted)
    devices, steps, wrapped = Devices(recording, wanted), Steps(path, recording), set[str]()
    for sample in file.samples(_counts):
        if sample.begins:
            steps.forget_last()
        span = steps.span_to(clock.instant(sample.stamp), sample.seconds)
        disks: dict[str, dict[str, float]] = {}
        cpu: dict[str, float] = {}
        of_all: dict[str, float] = {}
        for counter, value in sample.values:
            if counter.object in _DISK_OBJECTS:
                disks.setdefault(counter.instance, {})[counter.counter] = value
            elif value >= 0:
                (of_all if counter.object == _ALL_DISKS_OBJECT else cpu)[counter.counter] = value
        io = {name: device_io(values, _DISK) for name, values in disks.items()}
        if span is None:
            devices.meet(io)
            continue
        for name in [name for name, rates in io.items() if _has_wrapped(rates, span[1] - span[0])]:
            io[name] = {}
            wrapped.add(name)
        if of_all:
            # Before those of the devices: a device-mapper device is none of these disks.
            recording.devices.add(ALL_DISKS)
            rates = device_io(of_all, _ALL_DISKS)
            if _has_wrapped(rates, span[1] - span[0]):
                rates = {}
                wrapped.add(ALL_DISKS)
            recording.add_rates(*span, {f"{FileClass.DEVICE}.{name}": rate for name, rate in rates.items()})
        cpu_s = _busy_cores(cpu, file.cores)
        recording.add_rates(*span, {**devices.fold(io), "server.cpu_s": cpu_s})
        if cpu_s is not None:
            recording.note(WHOLE_MACHINE)
    recording.add_facts(file)
    recording.restarts += [clock.instant(stamp) for stamp in file.restarts]
    steps.note_irregular()
    if wrapped:
        recording.note(f"{path.name}: counters of {some_names(wrapped)} began anew; what they did then is not known.")
    devices.finish(path.name)


def _counts(counter: Counter) -> bool:
    if counter.object in _DISK_OBJECTS:
        return counter.counter in _DISK
    if counter.object in _CPU_OBJECTS:
        return counter.instance in ("", "all")
    return counter.object == _ALL_DISKS_OBJECT and counter.counter in _ALL_DISKS


def _has_wrapped(rates: Mapping[str, float], seconds: float) -> bool:
    """Return whether a counter of a device rose by about its whole range."""
    sectors = {name: value * seconds / (_SECTOR if "bytes" in name else 1) for name, value in rates.items()}
    return any(abs(rise - _ROUND) < _NEAR for rise in sectors.values())


def _busy_cores(cpu: Mapping[str, float], cores: int | None) -> float | None:
    """Return the number of busy cores: neither idle, nor waiting for I/O, nor taken by other virtual machines."""
    if "idle" not in cpu or cores is None:
        return None
    return max(0.0, 100 - cpu["idle"] - cpu.get("iowait", 0.0) - cpu.get("steal", 0.0)) / 100 * cores


def assign_all_disks(recording: Recording, wanted: Wanted) -> None:
    """Assign the sums over all disks (-b) to their common class, if all disks have one; otherwise omit them, as they
    cannot be divided.

    Raise StallmarkError if the choice of disks is ambiguous without them. Only these sums separate reads from writes,
    so without them the I/Os of a machine with one disk would be unknown.
    """
    choice = choose_disks(recording.devices - {ALL_DISKS})
    if choice.doubtful and not wanted.classes and ALL_DISKS not in recording.devices:
        with_names = f", or record with -b and -p, as in {AS_SADF}" if any(map(NUMBERED.match, choice.doubtful)) else ""
        raise StallmarkError(
            f"{some_names(choice.doubtful)} may be disks, or be stacked on the same ones and count twice: choose those "
            f"that count, as in --class {min(choice.doubtful)}=data{with_names}."
        )
    columns = recording.spans.columns
    of_all = {name: columns[f"{FileClass.DEVICE}.{name}"] for name in IO if f"{FileClass.DEVICE}.{name}" in columns}
    if not wanted.classes or not of_all:
        return
    disks = {canonical(name) for name in choice.counted | choice.doubtful}
    given = {canonical(name): held for name, held in wanted.classes.items()}
    classes = {given.get(name) for name in disks}
    held = classes.pop() if len(classes) == 1 and given.keys() <= disks else None
    for name, values in of_all.items():
        del columns[f"{FileClass.DEVICE}.{name}"]
        if held is not None:
            own = columns.setdefault(f"{held}.{name}", values)
            for place in np.flatnonzero(np.isnan(own)).tolist():
                own[place] = values[place]
    if held is None:
        recording.note(
            "What sar counted of all disks together (-b) is left out: not all of them were said to hold the same, and "
            "by device sar does not tell reads from writes."
        )
