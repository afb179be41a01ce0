"""Perfmon as a profile: the choice of its counters and their columns.

The classes of disks are not known from Perfmon. If they are given, LogicalDisk's "D:" counts, else the PhysicalDisk "1
D:". If not, all physical disks count together, or all logical ones for what only these have in a row: never both.

relog writes a column for each instance that ever was, a shadow copy or a dropped database, and blanks where it was not.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from importlib import resources
from typing import NamedTuple

from stallmark.errors import StallmarkError
from stallmark.record.formats.perfmon import DISKS, Perfmon
from stallmark.record.formats.sample import Counter
from stallmark.record.imports.devices import add_io, canonical, device_io
from stallmark.record.imports.recording import WHOLE_MACHINE, Recording, Steps, Wanted, some_names
from stallmark.record.profile.interval_table import FileClass

_DISKS = ("physicaldisk", "logicaldisk")
_DISK = {
    **{f"disk {side}s/sec": (f"{side}s", 1.0) for side in ("read", "write")},
    **{f"disk {side} bytes/sec": (f"{side}_bytes", 1.0) for side in ("read", "write")},
    **{f"avg. disk sec/{side}": (f"{side}_ms", 1000.0) for side in ("read", "write")},
}
"""Columns by counter of LogicalDisk and PhysicalDisk; the means are per I/O."""
_SQL: dict[str, str] = json.loads((resources.files(__package__) / "perfmon_counters.json").read_text())
"""Columns by object and counter of SQL Server. If two counters are of one column, the first that a file has counts."""
_SUMS = frozenset({"log_flushes", "log_bytes", "transactions", "checkpoint_pages"})
"""Columns that several counters add up to: those of every database, direct and indirect checkpoints."""
SYSTEM_DATABASES = frozenset(
    {
        *("master", "tempdb", "model", "msdb", "mssqlsystemresource"),
        *("model_msdb", "model_replicatedmaster"),  # SQL Server 2022 and later
        "rdsadmin",  # on every server of RDS
    }
)
_CPU = "% processor time"
_PROCESSORS = ("processor information", "processor")  # the first has those of all groups of 64


class _Entry(NamedTuple):
    """A counter that a profile may know, by its names in small letters, without the instance of SQL Server."""

    counter: Counter
    object: str
    name: str
    instance: str

    @property
    def key(self) -> str:
        return f"{self.object}\\{self.name}"

    @property
    def factor(self) -> float:
        is_size = _SQL[self.key].endswith("_bytes")
        return 1024.0 if is_size and "(kb)" in self.name else 8192.0 if is_size and "pages" in self.name else 1.0


class _Disk(NamedTuple):
    """A disk that counts, and its counters."""

    name: str
    held: FileClass
    counters: Mapping[str, Counter]


def read(file: Perfmon, recording: Recording, wanted: Wanted) -> None:
    """Add a file. Raise StallmarkError if it has no counter that is known here, or more than one server's."""
    path, steps = file.path, Steps(file.path, recording)
    absent: set[str] = set()
    for sample in file.samples(lambda counter: _enter(counter) is not None):
        if sample.begins:
            plan = _Plan(file, recording, wanted, absent)
            clock = recording.clock(file, wanted)
            steps.forget_last()
        if (span := steps.span_to(clock.instant(sample.stamp))) is not None:
            recording.add_rates(*span, plan.rates(dict(sample.values)))
    if file.has_decimal_commas:
        recording.note(f"{path.name}: decimal commas are read as points.")
    if absent:
        recording.note(f"{path.name}: not there in some samples, and 0 in these: {some_names(absent)}.")
    recording.add_facts(file)
    steps.note_irregular()


def _enter(counter: Counter) -> _Entry | None:
    object = counter.object.rpartition(":")[2].strip().lower()
    entry = _Entry(counter, object, counter.counter.lower(), counter.instance.lower())
    is_disk = object in _DISKS and entry.name in _DISK
    is_cpu = entry.name == _CPU and (object in _PROCESSORS or object == "process")
    return entry if is_disk or is_cpu or entry.key in _SQL else None


class _Plan:
    """The counted counters of a header, and their columns. `absent` collects the instances that are missing from a
    row."""

    def __init__(self, file: Perfmon, recording: Recording, wanted: Wanted, absent: set[str]):
        path, header = file.path, file.counters
        self._path, self._recording, self._absent = path, recording, absent
        if len(hosts := {host.lower() for host in (file.host, *(counter.host for counter in header)) if host}) > 1:
            raise StallmarkError(
                f"{path} has counters of {len(hosts)} machines: a profile is of one. Record each alone."
            )
        prefixes = {counter.object.rpartition(":")[0].lower(): counter.object.rpartition(":")[0] for counter in header}
        servers = sorted(prefix for prefix in prefixes if prefix == "sqlserver" or prefix.startswith("mssql$"))
        if len(servers) > 1:
            names = " and ".join(prefixes[name] for name in servers)
            raise StallmarkError(f"{path} has counters of {names}: a profile is of one instance. Record each alone.")
        entries = [entry for counter in header if (entry := _enter(counter))]
        self._disks = self._choose_disks(entries, wanted)
        self._sums = self._choose_sums(entries)
        self._single = self._choose_cpu(entries)
        by_key = {entry.key: entry for entry in entries}
        for key, column in _SQL.items():
            if column not in _SUMS and key in by_key:
                self._single.setdefault(column, (by_key[key].counter, by_key[key].factor))
        foreign = {name for counter in header for name in (counter.object, counter.counter) if not name.isascii()}
        english = "write the English names into the first line"
        if not (self._disks or self._sums or self._single or (wanted.classes and recording.devices)):
            first = f" (it has {some_names(f'{counter.object} {counter.counter}'.strip() for counter in header)})"
            raise StallmarkError(
                f"{path} has no counter that a profile knows{first if header else ''}: record those of disks, as in "
                f"`typeperf {DISKS} -si 15 -f CSV -o sales.csv`{f', or {english}' if foreign else ''}."
            )
        if foreign and not self._disks:
            recording.note(
                f"{path.name}: disks may be among the names of a language that is not known: {some_names(foreign)}. To "
                f"have them read, {english}."
            )
        recording.engine = "mssql" if servers else recording.engine

    def rates(self, values: Mapping[Counter, float]) -> dict[str, float | None]:
        """Return the rates and states of a row."""
        rates = self._disk_rates(values)
        present = [name for name, counters in self._sums.items() if _has_any(values, counters.values())]
        # Databases are missing only from rows that have another one.
        if any(present):  # an instance without name is the buffer manager's
            self._absent |= self._sums.keys() - {"", *present}
        parts: dict[str, list[float]] = {}
        for instance in present:
            for key, counter in self._sums[instance].items():
                parts.setdefault(_SQL[key], []).append(values.get(counter, -1.0))
        for name, own in parts.items():
            rates[f"server.{name}"] = sum(own) if min(own) >= 0 else None
        for name, (counter, factor) in self._single.items():
            value = values.get(counter, -1.0)
            rates[f"server.{name}"] = value * factor if value >= 0 else None
        return rates

    def _disk_rates(self, values: Mapping[Counter, float]) -> dict[str, float | None]:
        """Return the sums over the present disks, each column from the first object that has it in this row."""
        rates: dict[str, float | None] = {}
        for disks in self._disks:
            present = [disk for disk in disks if _has_any(values, disk.counters.values())]
            self._absent |= {disk.name for disk in disks if disk not in present} if present else set()
            sums: dict[str, float | None] = {}
            for disk in present:
                row = {name: values[counter] for name, counter in disk.counters.items() if counter in values}
                for side in ("read", "write"):
                    if row.get(f"disk {side}s/sec") == 0 and f"avg. disk sec/{side}" in disk.counters:
                        row.setdefault(f"avg. disk sec/{side}", 0.0)  # no I/O has no time
                add_io(sums, disk.held, device_io(row, _DISK))
            rates |= {column: rate for column, rate in sums.items() if rates.get(column) is None}
        return rates

    def _choose_disks(self, entries: Sequence[_Entry], wanted: Wanted) -> list[list[_Disk]]:
        """Return the counted disks: the named ones, or all of each object.

        Raise StallmarkError if one disk was given two classes.
        """
        disks: dict[tuple[str, str], dict[str, Counter]] = {}
        for entry in entries:
            if entry.object in _DISKS:
                disks.setdefault((entry.object, entry.counter.instance), {})[entry.name] = entry.counter
        single = [key for key in disks if key[1].lower() != "_total"]
        self._recording.devices |= {instance for _, instance in single}
        chosen: dict[tuple[str, str], tuple[FileClass, str]] = {}
        for name, held in wanted.classes.items():
            exact = {key for key in single if canonical(key[1]) == canonical(name)}
            parts = {key for key in single if canonical(name) in key[1].lower().split()}
            # Of "D:" and "1 D:" the one of which more was recorded.
            for key in sorted(exact | parts, key=lambda key: (-len(disks[key]), key not in exact, key))[:1]:
                other, first = chosen.setdefault(key, (held, name))
                if other != held:
                    raise StallmarkError(
                        f"The disk “{key[1]}” of {self._path} is {first} and {name}, with the classes {other} "
                        f"and {held}: record LogicalDisk, or give both one class."
                    )
                self._recording.mapped.add(name)
        if wanted.classes:
            return [[_Disk(key[1], held, disks[key]) for key, (held, _) in chosen.items()]] if chosen else []
        return [
            [_Disk(key[1], FileClass.DEVICE, disks[key]) for key in own]
            for object in _DISKS
            if (own := [key for key in single if key[0] == object] or [key for key in disks if key[0] == object])
        ]

    def _choose_sums(self, entries: Sequence[_Entry]) -> dict[str, dict[str, Counter]]:
        """Return the counters that add up, by instance: all user databases, or the total without any."""
        sums: dict[str, dict[str, Counter]] = {}
        for key in (key for key, column in _SQL.items() if column in _SUMS):
            own = [entry for entry in entries if entry.key == key]
            users = [entry for entry in own if entry.instance not in SYSTEM_DATABASES | {"_total"}]
            total = [entry for entry in own if entry.instance == "_total"]
            for entry in users or total:
                sums.setdefault(entry.counter.instance, {})[key] = entry.counter
            if total and not users:
                self._recording.note("Transactions and log flushes are those of all databases, the system's included.")
        return sums

    def _choose_cpu(self, entries: Sequence[_Entry]) -> dict[str, tuple[Counter, float]]:
        """Return the counter of CPU time in percent, and the cores per percent: 0.01 for a process."""
        own = [entry for entry in entries if entry.name == _CPU]
        processes = [entry for entry in own if entry.object == "process" and entry.instance.startswith("sqlservr")]
        total = None
        for object in _PROCESSORS:
            shares = [entry for entry in own if entry.object == object]
            cores = {entry.instance for entry in shares if entry.instance.replace(",", "").isdigit()}
            total = total or next((entry.counter for entry in shares if entry.instance == "_total"), None)
            if cores:
                self._recording.cores = len(cores)
                break
        if len(processes) == 1:
            return {"cpu_s": (processes[0].counter, 0.01)}
        if total and not self._recording.cores:
            self._recording.missing["server.cpu_s"] = (
                "Perfmon has the processors' total in percent, and not how many there are; record Processor(*)"
            )
        elif total:
            self._recording.note(WHOLE_MACHINE)
            return {"cpu_s": (total, 0.01 * (self._recording.cores or 0))}
        return {}


def _has_any(values: Mapping[Counter, float], counters: Collection[Counter]) -> bool:
    return any(counter in values for counter in counters)
