"""Perfmon as a profile: the choice of its counters.

The classes of disks are not known from Perfmon. If they are given, LogicalDisk's "D:" counts, else the PhysicalDisk "1
D:". If not, all physical disks count together, or all logical ones for what only these have in a row: never both.

relog writes a column for each instance that ever was, a shadow copy or a dropped database, and blanks where it was not.
"""

import re
from collections import Counter as CounterOf
from collections.abc import Iterable, Iterator, Sequence

from stallmark.record.formats.perfmon import Perfmon
from stallmark.record.formats.sample import Counter
from stallmark.record.formats.sentences import refusal
from stallmark.record.imports.amounts import Amounts, Key, Part, known_counters, known_parts
from stallmark.record.imports.devices import canonical
from stallmark.record.imports.readings import read_samples
from stallmark.record.imports.recording import Recording, Wanted, some_names
from stallmark.record.profile.interval_table import FileClass

_PHYSICAL, _LOGICAL = "physicaldisk", "logicaldisk"
_DISKS = (_PHYSICAL, _LOGICAL)
_PROCESSORS = ("processor information", "processor")  # the first has those of all groups of 64
_PROCESSES = ("process", "process v2")
_TOTAL = "_total"
_LETTER = re.compile("[A-Za-z]:")
SYSTEM_DATABASES = frozenset(
    {
        *("master", "tempdb", "model", "msdb", "mssqlsystemresource"),
        *("model_msdb", "model_replicatedmaster"),  # SQL Server 2022 and later
        "rdsadmin",  # on every server of RDS
    }
)


def read(file: Perfmon, recording: Recording, wanted: Wanted) -> None:
    """Add a file. Raise StallmarkError if it has no counter that is known here, or more than one server's."""
    readings = read_samples(file, recording, wanted, lambda counter: _key(counter) in known_counters("perfmon"))
    _refuse_several(file, recording)
    _note_empty(file, readings.values, recording)
    amounts = Amounts(readings, known_parts(readings, "perfmon", _key), recording, comes_and_goes=True)
    _refuse_nothing(file, recording, wanted, amounts.parts)
    cpu = [part for part in amounts.parts if part.column == "cpu_s"]
    amounts.parts = [*_without_totals(amounts.parts, recording), *_choose_cpu(file, cpu, recording)]
    classes: dict[Key, str] = dict(_choose_disks(file, amounts.parts, recording, wanted))
    classes |= {part.entity: "server" for part in amounts.parts if part.entity[0] not in _DISKS}
    amounts.add_up(classes, by_class=bool(wanted.classes))


def _key(counter: Counter) -> Key:
    """Return the names of a counter in small letters, without the instance of SQL Server."""
    return counter.object.rpartition(":")[2].strip().lower(), counter.counter.lower()


def _refuse_several(file: Perfmon, recording: Recording) -> None:
    """Raise StallmarkError for counters of several machines, or of several instances of SQL Server."""
    counters = file.counters.values()
    hosts = {host.lower() for host in (file.host, *(counter.host for counter in counters)) if host}
    if len(hosts) > 1:
        raise refusal("several_hosts", file.path, count=len(hosts))
    prefixes = {prefix.lower(): prefix for counter in counters if (prefix := counter.object.rpartition(":")[0])}
    servers = sorted(prefix for prefix in prefixes if prefix == "sqlserver" or prefix.startswith("mssql$"))
    if len(servers) > 1:
        raise refusal("several_instances", file.path, names=" and ".join(prefixes[name] for name in servers))
    recording.engine = "mssql" if servers else recording.engine


def _note_empty(file: Perfmon, values: Iterable[Counter], recording: Recording) -> None:
    """Note the disks that have no value, although the file has columns for the values that a profile knows."""
    disks = {counter for counter in file.counters.values() if _key(counter)[0] in _DISKS}
    columns = {counter.instance for counter in disks if _key(counter) in known_counters("perfmon")}
    if empty := columns - {counter.instance for counter in values}:
        recording.note("never", file=file.path.name, names=some_names(empty))


def _refuse_nothing(file: Perfmon, recording: Recording, wanted: Wanted, parts: Sequence[Part]) -> None:
    """Raise StallmarkError for a file without a known counter; note names that may be those of disks."""
    disks = {part.entity[1] for part in parts if part.entity[0] in _DISKS}
    recording.devices |= {name for name in disks if name.lower() != _TOTAL}
    counters = file.counters.values()
    foreign = {name for counter in counters for name in (counter.object, counter.counter) if not name.isascii()}
    if not (parts or (wanted.classes and recording.devices)):
        names = some_names(f"{counter.object} {counter.counter}".strip() for counter in counters)
        raise refusal("foreign_counters" if foreign else "no_counter", file.path, names=names or "none")
    if foreign and not disks:
        recording.note("foreign_names", file=file.path.name, names=some_names(foreign))


def _without_totals(parts: Sequence[Part], recording: Recording) -> Iterator[Part]:
    """Yield the parts without processors and the system's databases. A total counts in a column that no disk, or no
    user's database, has."""
    parts = [
        part
        for part in parts
        if part.column != "cpu_s" and not (part.entity[0] == "databases" and part.entity[1].lower() in SYSTEM_DATABASES)
    ]
    single = {(part.entity[0], part.column) for part in parts if part.entity[1].lower() != _TOTAL}
    for part in parts:
        object, name = part.entity
        if name.lower() != _TOTAL or (object, part.column) not in single:
            if object == "databases" and name.lower() == _TOTAL:
                recording.note("all_databases")
            yield part


def _choose_disks(file: Perfmon, parts: Sequence[Part], recording: Recording, wanted: Wanted) -> dict[Key, FileClass]:
    """Return the disks to import, with their classes: those that were named, or else all.

    Raise StallmarkError if one disk was given two classes.
    """
    disks = CounterOf(part.entity for part in parts if part.entity[0] in _DISKS)
    if not wanted.classes:
        _note_volumes(file, disks, recording)
        return dict.fromkeys(disks, FileClass.DEVICE)
    chosen: dict[Key, tuple[FileClass, str]] = {}
    for name, held in wanted.classes.items():
        exact = {key for key in disks if canonical(key[1]) == canonical(name)}
        within = {key for key in disks if canonical(name) in key[1].lower().split()}
        # Of "D:" and "1 D:" the one of which more was recorded.
        for key in sorted(exact | within, key=lambda key: (-disks[key], key not in exact, key))[:1]:
            other, first = chosen.setdefault(key, (held, name))
            if other != held:
                raise refusal("one_disk", file.path, disk=key[1], first=first, second=name, other=other, held=held)
            recording.mapped.add(name)
    return {key: held for key, (held, _) in chosen.items()}


def _note_volumes(file: Perfmon, disks: Iterable[Key], recording: Recording) -> None:
    """Note the volumes whose letter no physical disk has: these count, and the volumes may be on others."""
    letters = {letter for object, name in disks if object == _PHYSICAL for letter in name.lower().split()[1:]}
    volumes = {name for object, name in disks if object == _LOGICAL and _LETTER.fullmatch(name)}
    if letters and (others := {name for name in volumes if name.lower() not in letters}):
        recording.note("other_volumes", file=file.path.name, names=some_names(others))


def _choose_cpu(file: Perfmon, cpu: Sequence[Part], recording: Recording) -> Sequence[Part]:
    """Return the CPU time of the only SQL Server, or else that of all processors, which are the recording's cores."""
    chosen: Sequence[Part] = ()
    for object in _PROCESSORS:
        instances = {counter.instance for counter in file.counters.values() if counter.object.lower() == object}
        cores = {name for name in instances if name.replace(",", "").isdigit()}
        own = {part.entity[1].lower(): part for part in cpu if part.entity[0] == object}
        if cores and own and not chosen:
            recording.cores, total = len(cores), own.get(_TOTAL)
            chosen = [total] if total else [own[name] for name in cores if cores <= own.keys()]
            if total:
                total.amounts *= len(cores)
    servers = [part for part in cpu if part.entity[0] in _PROCESSES and part.entity[1].lower().startswith("sqlservr")]
    if len(servers) == 1:
        return servers
    if chosen:
        recording.note("whole_machine")
    elif any(part.entity[0] in _PROCESSORS for part in cpu):
        recording.missing["server.cpu_s"] = (
            "Perfmon has the processors' total in percent, and not how many there are; record Processor(*)"
        )
    return chosen
