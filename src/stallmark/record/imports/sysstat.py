"""iostat and sar as a profile: the choice of their counters.

sar counts a device's reads and writes together (`tps`), and their `await` together: only their bytes are separate (man
sar, -d). `sar -b` counts the reads and the writes of all physical disks together, in blocks of 512 bytes.
"""

from collections.abc import Mapping

import numpy as np

from stallmark.errors import StallmarkError
from stallmark.record.formats.sample import Counter, Recorded
from stallmark.record.formats.sysstat import AS_SADF, CPU, CPU_LOADS
from stallmark.record.imports.counters import Entity, known_counters, read_entities
from stallmark.record.imports.devices import (
    ALL_DISKS,
    NUMBERED,
    canonical,
    choose_disks,
    classify,
    head_of_path,
    note_uncounted,
)
from stallmark.record.imports.recording import WHOLE_MACHINE, Part, Recording, Rows, Samples, Sums, Wanted, some_names
from stallmark.record.profile.interval_table import IO, FileClass

_OBJECTS = {"": "disk", "disk": "disk", "io": "io", **dict.fromkeys((CPU, *CPU_LOADS), "cpu")}
_ROUND, _NEAR, _SECTOR = 2.0**32, 2.0**24, 512.0
"""A 32-bit counter that falls slightly seems to rise by nearly its whole range (sysstat issue 259)."""


def read(file: Recorded, recording: Recording, wanted: Wanted) -> None:
    """Add a file of iostat or sadf. Raise StallmarkError if it cannot be read."""
    name = file.path.name
    samples = Samples(file, recording, wanted, _is_used)
    entities = read_entities(samples, "sysstat", _key)
    cpu = [entities.pop(key) for key in list(entities) if key[0] == "cpu"]
    if wrapped := {device or ALL_DISKS for (_, device), entity in entities.items() if _forget_wrapped(entity)}:
        recording.note(f"{name}: counters of {some_names(wrapped)} began anew; what they did then is not known.")
    columns: dict[str, np.ndarray] = {}
    if of_all := entities.pop(("io", ""), None):
        recording.devices.add(ALL_DISKS)
        columns = {f"{ALL_DISKS}.{column}": amounts for column, amounts in of_all.amounts.items()}
    devices = {device: entity for (_, device), entity in entities.items()}
    moved = {device: _bytes_moved_by(entity) for device, entity in devices.items()}
    classes = classify(moved, recording, wanted)
    columns |= _add_up(devices, classes, Sums(recording, name, len(samples.seconds)))
    if cpu and "idle" in cpu[0].amounts and recording.cores is not None:
        away = sum(np.nan_to_num(cpu[0].amounts.get(mode, 0.0)) for mode in ("iowait", "steal"))
        busy = np.maximum(0.0, 100 * samples.seconds - cpu[0].amounts["idle"] - away) / 100
        columns["server.cpu_s"] = busy * recording.cores
        recording.note(WHOLE_MACHINE)
    recording.rows.append(Rows(samples.start, samples.end, columns))
    note_uncounted(devices, classes, recording, name)


def _key(counter: Counter) -> tuple[str, str]:
    return _OBJECTS.get(counter.object, ""), counter.counter


def _is_used(counter: Counter) -> bool:
    is_part = counter.object in CPU_LOADS and counter.instance != "all"  # a single processor
    return _key(counter) in known_counters("sysstat") and not is_part


def _forget_wrapped(entity: Entity) -> bool:
    """Make the amounts unknown in rows in which a counter rose by about its whole range; return whether any did."""
    sectors = [amounts / (_SECTOR if "bytes" in column else 1) for column, amounts in entity.amounts.items()]
    wrapped = np.any([np.abs(rise - _ROUND) < _NEAR for rise in sectors], axis=0)
    for amounts in entity.amounts.values():
        amounts[wrapped] = np.nan
    return bool(wrapped.any())


def _bytes_moved_by(device: Entity) -> float:
    return sum(float(np.nansum(amounts)) for column, amounts in device.amounts.items() if column.endswith("bytes"))


def _is_idle(device: Entity) -> np.ndarray:
    """Return a mask of the rows in which a device did nothing."""
    amounts = np.array(list(device.amounts.values()))
    return (amounts == 0).any(axis=0) & ~(amounts > 0).any(axis=0)


def _add_up(devices: Mapping[str, Entity], classes: Mapping[str, FileClass], sums: Sums) -> dict[str, np.ndarray]:
    """Return the sums over the devices of each class.

    A tool that omits idle devices writes no row of zeros: then a missing device was idle. Otherwise its I/O is unknown,
    unless it never comes back.
    """
    idle = {device: _is_idle(devices[device]) for device in classes}
    writes_zeros = any(rows.any() for rows in idle.values())
    parts: dict[str, list[Part]] = {}
    for device, held in classes.items():
        amounts, present = devices[device]
        # Before Linux 6.5 the paths of an NVMe disk count its I/O, and the disk itself nothing.
        paths = [path for name, path in devices.items() if head_of_path(name) == device]
        by_path = (~present | idle[device]) & np.any([path.present for path in paths], axis=0)
        present = present | by_path
        needed = np.ones(len(present), dtype=bool)
        if writes_zeros:
            needed = np.logical_or.accumulate(present) & np.logical_or.accumulate(present[::-1])[::-1]
        for column in IO:
            own = amounts.get(column, np.full(len(present), np.nan))
            if by_path.any():
                counts = [np.where(path.present, path.amounts.get(column, np.nan), 0.0) for path in paths]
                own = np.where(by_path, np.sum(counts, axis=0), own)
            own = own if writes_zeros else np.where(present, own, 0.0)
            parts.setdefault(f"{held}.{column}", []).append(Part(device, own, needed))
        sums.were_omitted |= not (writes_zeros or present.all())
    columns = {column: sums.add_up(own) for column, own in parts.items()}
    sums.note()
    return columns


def assign_all_disks(columns: Mapping[str, np.ndarray], recording: Recording, wanted: Wanted) -> dict[str, np.ndarray]:
    """Return the columns with the sums over all disks (-b) as those of their common class, or without them if not all
    disks have one class, as they cannot be divided.

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
    result = {name: values for name, values in columns.items() if not name.startswith(ALL_DISKS)}
    of_all = {name: columns[f"{ALL_DISKS}.{name}"] for name in IO if f"{ALL_DISKS}.{name}" in columns}
    disks = {canonical(name) for name in choice.counted | choice.doubtful}
    given = {canonical(name): held for name, held in wanted.classes.items()}
    classes = {given.get(name) for name in disks} if given else {FileClass.DEVICE}
    held = classes.pop() if len(classes) == 1 and given.keys() <= disks else None
    for name, values in of_all.items() if held is not None else ():
        own = result.get(f"{held}.{name}", np.full(len(values), np.nan))
        # A stacked device is none of these disks: without classes their sums count first.
        first, second = (own, values) if given else (values, own)
        result[f"{held}.{name}"] = np.where(np.isnan(first), second, first)
    if of_all and held is None:
        recording.note(
            "What sar counted of all disks together (-b) is left out: not all of them were said to hold the same, and "
            "by device sar does not tell reads from writes."
        )
    return result
