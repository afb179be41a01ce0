"""Perfmon as a profile: which of its counters count, and for what.

Names are English: a Windows of another language writes its own for disks and processors, never for SQL Server. Which
disk holds what cannot be known from Perfmon. Where it is said, LogicalDisk's "D:" is meant, else the PhysicalDisk
"1 D:". Where it is not, all physical disks count together, or all logical ones if these have more counters.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from stallmark.errors import StallmarkError
from stallmark.record.formats.perfmon import Perfmon
from stallmark.record.formats.sample import Counter
from stallmark.record.imports.devices import add_io, canonical, device_io
from stallmark.record.imports.recording import WHOLE_MACHINE, Recording, Steps, Wanted
from stallmark.record.profile.intervals import FileClass

_KIB, _PAGE, _TO_MS = 1024.0, 8192.0, 1000.0
_DISKS = ("physicaldisk", "logicaldisk")
_DISK = {
    "disk reads/sec": ("reads", 1.0),
    "disk writes/sec": ("writes", 1.0),
    "disk read bytes/sec": ("read_bytes", 1.0),
    "disk write bytes/sec": ("write_bytes", 1.0),
    "avg. disk sec/read": ("read_ms", _TO_MS),
    "avg. disk sec/write": ("write_ms", _TO_MS),
}
"""By counter of LogicalDisk and PhysicalDisk: the means are per I/O."""
_SQL = {
    ("sql statistics", "batch requests/sec"): ("batches", 1.0),
    ("memory manager", "target server memory (kb)"): ("memory_target_bytes", _KIB),
    ("memory manager", "stolen server memory (kb)"): ("stolen_bytes", _KIB),
    ("buffer manager", "stolen pages"): ("stolen_bytes", _PAGE),  # up to SQL Server 2008 R2
    ("buffer manager", "database pages"): ("database_pages_bytes", _PAGE),
    ("memory manager", "database cache memory (kb)"): ("database_pages_bytes", _KIB),
    ("buffer manager", "target pages"): ("memory_target_bytes", _PAGE),
    ("buffer manager", "page life expectancy"): ("page_life_expectancy_s", 1.0),
    ("buffer manager", "lazy writes/sec"): ("background_pages", 1.0),
    ("buffer manager", "page reads/sec"): ("pages_read", 1.0),
    ("buffer manager", "readahead pages/sec"): ("readahead_pages", 1.0),
    ("buffer manager", "page lookups/sec"): ("page_lookups", 1.0),
    ("general statistics", "user connections"): ("connections", 1.0),
}
"""By object and counter. Where two counters are of one column, the first that a file has counts."""
_SUMS = {
    ("databases", "log flushes/sec"): "log_flushes",
    ("databases", "log bytes flushed/sec"): "log_bytes",
    ("databases", "transactions/sec"): "transactions",
    ("buffer manager", "checkpoint pages/sec"): "checkpoint_pages",
    ("buffer manager", "background writer pages/sec"): "checkpoint_pages",
}
"""Columns that several counters add up to: those of every database, direct and indirect checkpoints."""
SYSTEM_DATABASES = frozenset(
    {
        *("master", "tempdb", "model", "msdb", "mssqlsystemresource"),
        *("model_msdb", "model_replicatedmaster"),  # from 2022 on
        "rdsadmin",  # of RDS, on every server
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


def read(path: Path, recording: Recording, wanted: Wanted) -> None:
    """Add a file. Raise StallmarkError if it has no counter that is known here, or more than one server's."""
    file, steps = Perfmon(path), Steps(path, recording)
    for sample in file.samples(lambda counter: _enter(counter) is not None):
        if sample.begins:
            plan = Plan(path, file.counters, recording, wanted)
            clock = recording.clock(file, wanted)
            steps.begin_anew()
        if (span := steps.span_to(clock.instant(sample.stamp))) is not None:
            recording.add_rates(*span, plan.rates(dict(sample.values)))
    if file.has_decimal_commas:
        recording.note(f"{path.name}: decimal commas are read as points.")
    recording.take_facts(file)
    steps.tell()


def _enter(counter: Counter) -> _Entry | None:
    object, name = counter.object.rpartition(":")[2].strip().lower(), counter.counter.lower()
    is_disk = object in _DISKS and name in _DISK
    is_cpu = name == _CPU and (object in _PROCESSORS or object == "process")
    if is_disk or is_cpu or (object, name) in _SQL or (object, name) in _SUMS:
        return _Entry(counter, object, name, counter.instance)
    return None


class Plan:
    """The counters of a header that count, and what they are."""

    def __init__(self, path: Path, header: Sequence[Counter], recording: Recording, wanted: Wanted):
        self._path, self._recording = path, recording
        hosts = {counter.host.lower() for counter in header}
        if len(hosts) > 1:
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
        self._single: dict[str, tuple[Counter, float]] = {}
        counters = {(entry.object, entry.name): entry.counter for entry in entries}
        for key, (ours, factor) in _SQL.items():
            if key in counters:
                self._single.setdefault(ours, (counters[key], factor))
        self._cpu = self._choose_cpu(entries)
        if not (self._disks or self._sums or self._single or self._cpu):
            first = ", ".join(f"{counter.object} {counter.counter}".strip() for counter in header[:3])
            raise StallmarkError(
                f"{path} has no counter that a profile knows{f' (it has {first})' if first else ''}: record those "
                "of docs/import-a-profile.md, whose names are known in English alone."
            )
        recording.engine = "mssql" if servers else recording.engine

    def rates(self, values: Mapping[Counter, float]) -> dict[str, float | None]:
        """Return the rates and states of a row."""
        rates: dict[str, float | None] = {}
        disks = [
            (held, {name: values[counter] for name, counter in columns.items() if counter in values})
            for held, columns in self._disks
        ]
        if any(there for _, there in disks) and not all(there for _, there in disks):
            disks = [(held, there) for held, there in disks if there]
            self._recording.note(
                f"{self._path.name}: a disk without any value in a sample was not there; it counts as 0 there."
            )
        for held, there in disks:
            for side in ("read", "write"):
                if there.get(f"disk {side}s/sec") == 0 and f"avg. disk sec/{side}" in self._names:
                    there.setdefault(f"avg. disk sec/{side}", 0.0)  # of no I/O
            add_io(rates, held, device_io(there, _DISK))
        for name, counters in self._sums.items():
            parts = [values[counter] for counter in counters if values.get(counter, -1.0) >= 0]
            rates[f"server.{name}"] = sum(parts) if len(parts) == len(counters) else None
        for name, (counter, factor) in self._single.items():
            value = values.get(counter, -1.0)
            rates[f"server.{name}"] = value * factor if value >= 0 else None
        if self._cpu:
            counter, cores = self._cpu
            value = values.get(counter, -1.0)
            rates["server.cpu_s"] = value * cores * 0.01 if value >= 0 else None
        return rates

    def _choose_disks(self, entries: Sequence[_Entry], wanted: Wanted) -> list[tuple[FileClass, dict[str, Counter]]]:
        disks: dict[tuple[str, str], dict[str, Counter]] = {}
        for entry in entries:
            if entry.object in _DISKS:
                disks.setdefault((entry.object, entry.instance), {})[entry.name] = entry.counter
        self._names = {name for columns in disks.values() for name in columns}
        single = {key for key in disks if key[1].lower() != "_total"}
        self._recording.devices |= {instance for _, instance in single}
        if wanted.classes:
            return [(held, disks[key]) for key, held in self._choose_given(single, wanted).items()]

        def count_columns(object: str) -> int:
            return max((len(columns) for key, columns in disks.items() if key[0] == object), default=0)

        object = max(_DISKS, key=count_columns)
        chosen = [key for key in single if key[0] == object] or [key for key in disks if key[0] == object]
        return [(FileClass.DEVICE, disks[key]) for key in chosen]

    def _choose_given(self, disks: set[tuple[str, str]], wanted: Wanted) -> dict[tuple[str, str], FileClass]:
        """Return what disks were said to hold. Raise StallmarkError if one disk was said to hold two things."""
        found: dict[tuple[str, str], tuple[FileClass, str]] = {}
        for name, held in wanted.classes.items():
            exact = [key for key in disks if canonical(key[1]) == canonical(name)]
            parts = [key for key in disks if canonical(name) in key[1].lower().split()]
            for key in sorted(exact or parts)[:1]:
                if key in found and found[key][0] != held:
                    raise StallmarkError(
                        f"The disk “{key[1]}” of {self._path} is {found[key][1]} and {name}, which were said to hold "
                        f"{found[key][0]} and {held}: record LogicalDisk, or give both one class."
                    )
                found[key] = held, name
                self._recording.mapped.add(name)
        return {key: held for key, (held, _) in found.items()}

    def _choose_sums(self, entries: Sequence[_Entry]) -> dict[str, list[Counter]]:
        """Return the counters of all databases of users, or of the total if each was not recorded."""
        sums: dict[str, list[Counter]] = {}
        for (object, name), ours in _SUMS.items():
            own = [entry for entry in entries if (entry.object, entry.name) == (object, name)]
            users = [entry for entry in own if entry.instance.lower() not in SYSTEM_DATABASES | {"_total"}]
            total = [entry for entry in own if entry.instance.lower() == "_total"]
            if chosen := users or total:
                sums.setdefault(ours, []).extend(entry.counter for entry in chosen)
            if total and not users:
                self._recording.note("Transactions and log flushes are those of all databases, the system's included.")
        return sums

    def _choose_cpu(self, entries: Sequence[_Entry]) -> tuple[Counter, float] | None:
        """Return the counter of CPU time in percent, and of how many cores it is a share: of one, for a process."""
        own = [entry for entry in entries if entry.name == _CPU]
        processes = [
            entry for entry in own if entry.object == "process" and entry.instance.lower().startswith("sqlservr")
        ]
        total = None
        for object in _PROCESSORS:
            shares = [entry for entry in own if entry.object == object]
            cores = {entry.instance for entry in shares if entry.instance.replace(",", "").isdigit()}
            total = total or next((entry.counter for entry in shares if entry.instance.lower() == "_total"), None)
            if cores:
                self._recording.cores = len(cores)
                break
        if len(processes) == 1:
            return processes[0].counter, 1.0
        if total and not self._recording.cores:
            self._recording.missing["server.cpu_s"] = (
                "Perfmon has the processors' total in percent, and not how many there are; record Processor(*)"
            )
        elif total:
            self._recording.note(WHOLE_MACHINE)
            return total, float(self._recording.cores or 0)
        return None
