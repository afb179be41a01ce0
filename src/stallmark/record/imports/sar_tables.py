"""The activities of sar that a profile has a use for, by their names in JSON.

Of a device sar counts reads and writes together (`tps`), and their `await` together: apart are their bytes alone
(man sar, -d). `sar -b` counts the reads and the writes of all physical disks together, in blocks of 512 bytes.
"""

from collections.abc import Mapping

import numpy as np

from stallmark.record.imports.devices import ALL_DISKS, IO, Devices, Io, canonical, whole_disks
from stallmark.record.imports.iostat import busy_share
from stallmark.record.imports.recording import WHOLE_MACHINE, Recording, Wanted, product
from stallmark.record.profile.intervals import FileClass

_KIB, _SECTOR = 1024.0, 512.0
Values = Mapping[str, float | None]


def device_io(values: Values) -> Io:
    """Return the rates of a device, from its object of `disk`. Old versions count sectors."""
    theirs, factor = ("rkB", "wkB"), _KIB
    if "rd_sec" in values and "rkB" not in values:
        theirs, factor = ("rd_sec", "wr_sec"), _SECTOR
    read, written = (product(values.get(name), factor) for name in theirs)
    return {"read_bytes": read, "write_bytes": written}


def all_disks_io(values: Values) -> Io:
    """Return the rates of all disks, from `io`."""
    return {
        "reads": values.get("rtps"),
        "writes": values.get("wtps"),
        "read_bytes": product(values.get("bread"), _SECTOR),
        "write_bytes": product(values.get("bwrtn"), _SECTOR),
    }


class Machine:
    """The sums over the activities of one file: devices and CPU, in a row for each span."""

    def __init__(self, recording: Recording, devices: Devices):
        self._recording, self._devices = recording, devices

    def add_disks(self, span: tuple[float, float] | None, disks: Mapping[str, Io]) -> None:
        if span is None:
            self._devices.meet(disks)
        elif disks:
            self._recording.add_rates(*span, self._devices.fold(disks))

    def add_all_disks(self, span: tuple[float, float] | None, values: Values) -> None:
        if span is not None:
            self._recording.devices.add(ALL_DISKS)
            io = all_disks_io(values)
            self._recording.add_rates(*span, {f"{FileClass.DEVICE}.{name}": value for name, value in io.items()})

    def add_cpu(self, span: tuple[float, float] | None, values: Values) -> None:
        if span is not None:
            cpu_s = product(busy_share(dict(values)), self._recording.cores)
            self._recording.add_rates(*span, {"server.cpu_s": cpu_s})
            if cpu_s is not None:
                self._recording.note(WHOLE_MACHINE)


def assign_all_disks(recording: Recording, wanted: Wanted) -> None:
    """Give what was counted of all disks together (-b) to the class that they were all said to hold. Otherwise leave it
    out: it cannot be told apart.

    Only here are reads and writes apart, so that without it the I/Os of a machine of one disk would not be known."""
    columns = recording.spans.columns
    of_all = {name: columns[f"{FileClass.DEVICE}.{name}"] for name in IO if f"{FileClass.DEVICE}.{name}" in columns}
    if not wanted.classes or not of_all:
        return
    disks = {canonical(name) for name in whole_disks(recording.devices - {ALL_DISKS})}
    said = {canonical(name): held for name, held in wanted.classes.items()}
    classes = {said.get(name) for name in disks}
    held = classes.pop() if len(classes) == 1 and said.keys() <= disks else None
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
