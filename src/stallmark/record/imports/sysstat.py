"""iostat and sar as a profile: the choice of their counters.

sar counts a device's reads and writes together (`tps`), and their `await` together: only their bytes are separate (man
sar, -d). `sar -b` counts the reads and the writes of all physical disks together, in blocks of 512 bytes.
"""

from collections.abc import Mapping

import numpy as np

from stallmark.record.formats.sample import Counter, Recorded
from stallmark.record.formats.sentences import refusal
from stallmark.record.formats.sysstat import CPU, CPU_LOADS
from stallmark.record.imports import devices
from stallmark.record.imports.amounts import Amounts, Key, known_counters, known_parts
from stallmark.record.imports.devices import ALL_DISKS, NUMBERED, canonical
from stallmark.record.imports.readings import read_samples
from stallmark.record.imports.recording import Recording, Wanted, some_names
from stallmark.record.profile.interval_table import IO, FileClass

_OBJECTS = {
    "": "disk",
    "disk": "disk",
    "io": "io",
    CPU: "cpu",
    **dict(zip(CPU_LOADS, ("cpu", "all of cpu"), strict=True)),
}
_MOSTLY = 0.9
_ALMOST, _ROUNDED_BYTES = 0.02, 64.0  # by which the bytes of the same disks may differ: a share, and per second
_ROUND, _NEAR, _SECTOR = 2.0**32, 2.0**24, 512.0
"""A 32-bit counter that falls slightly seems to rise by nearly its whole range (sysstat issue 259)."""


def read(file: Recorded, recording: Recording, wanted: Wanted) -> None:
    """Add a file of iostat or sadf. Raise StallmarkError if it cannot be read."""
    readings = read_samples(file, recording, wanted, _is_used)
    amounts = Amounts(readings, known_parts(readings, "sysstat", _key), recording)
    _forget_wrapped(amounts, recording)
    moved = amounts.bytes_by_device("disk")
    counted = devices.classify(moved, recording, wanted)
    devices.settle_idle(amounts, "disk", counted, recording, omits_idle=file.omits_idle)
    classes: dict[Key, str] = {("disk", name): held for name, held in counted.items()}
    for part in amounts.parts:
        if part.entity[0] == "io":
            recording.devices.add(ALL_DISKS)
            classes[part.entity] = ALL_DISKS
        elif part.column == "idle" and not recording.cores:
            recording.missing["server.cpu_s"] = "the first line of the file lacks the number of processors"
        elif part.column == "idle":
            away = [other.amounts for other in amounts.parts if (other.entity, other.column) == (part.entity, "away")]
            busy = np.maximum(0.0, 100 * amounts.seconds - part.amounts - np.nansum(away, axis=0)) / 100
            part.column, part.amounts = "cpu_s", busy * recording.cores
            classes[part.entity] = "server"
            recording.note("whole_machine")
    amounts.parts = [part for part in amounts.parts if part.column != "away"]
    amounts.add_up(classes)
    devices.note_uncounted(moved, counted, recording, amounts.name)


def _key(counter: Counter) -> Key:
    return _OBJECTS.get(counter.object, ""), counter.counter


def _is_used(counter: Counter) -> bool:
    is_part = counter.object in CPU_LOADS and counter.instance != "all"  # a single processor
    return _key(counter) in known_counters("sysstat") and not is_part


def _forget_wrapped(amounts: Amounts, recording: Recording) -> None:
    """Make devices unknown while one of their counters rose by about its whole range."""
    wrapped: dict[Key, np.ndarray] = {}
    for part in amounts.parts:
        rise = part.amounts / (_SECTOR if part.column.endswith("bytes") else 1)
        wrapped[part.entity] = (np.abs(rise - _ROUND) < _NEAR) | wrapped.get(part.entity, False)
    for part in amounts.parts:
        part.amounts[wrapped[part.entity]] = np.nan
    if names := {name or ALL_DISKS for (_, name), spans in wrapped.items() if spans.any()}:
        recording.note("wrapped", file=amounts.name, names=some_names(names))


def assign_all_disks(
    columns: Mapping[str, np.ndarray], seconds: np.ndarray, recording: Recording, wanted: Wanted
) -> dict[str, np.ndarray]:
    """Return the columns with the sums over all disks (-b) as those of their common class, or without them if not all
    disks have one class, as they cannot be divided.

    Raise StallmarkError if the choice of disks is ambiguous without them. Only these sums separate reads from writes,
    so without them the I/Os of a machine with one disk would be unknown.
    """
    choice = devices.choose_disks(recording.devices - {ALL_DISKS})
    if choice.doubtful and not wanted.classes and ALL_DISKS not in recording.devices:
        kind = "numbered_disks" if any(map(NUMBERED.match, choice.doubtful)) else "stacked_disks"
        raise refusal(kind, names=some_names(choice.doubtful), first=min(choice.doubtful).strip())
    result = {name: values for name, values in columns.items() if not name.startswith(ALL_DISKS)}
    of_all = {name: columns[f"{ALL_DISKS}.{name}"] for name in IO if f"{ALL_DISKS}.{name}" in columns}
    disks = {canonical(name) for name in choice.counted | choice.doubtful}
    given = {canonical(name): held for name, held in wanted.classes.items()}
    classes = {given.get(name) for name in disks} if given else {FileClass.DEVICE}
    held = classes.pop() if len(classes) == 1 and given.keys() <= disks else None
    if held is None:
        if of_all:
            recording.note("undivided")
        return result
    unknown = np.full(len(seconds), np.nan)
    own = {name: result.get(f"{held}.{name}", unknown) for name in of_all}
    counts = np.ones(len(seconds), dtype=bool)
    if given or not choice.doubtful:
        # sar counts paths of NVMe as disks, and none of the network; while a disk is removed it writes 0.
        for name in of_all.keys() & {"read_bytes", "write_bytes"}:
            rounded = _ALMOST * np.fmax(own[name], of_all[name]) + _ROUNDED_BYTES * seconds
            counts &= ~(np.abs(own[name] - of_all[name]) > rounded)
        if not counts.all():
            recording.note("other_disks", counted=some_names(choice.counted))
            # The rest is of times at which the other disks were idle.
            counts &= counts.mean() > _MOSTLY
    for name, values in of_all.items():
        result[f"{held}.{name}"] = np.where(counts & np.isfinite(values), values, own[name])
    return result
