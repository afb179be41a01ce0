"""Perfmon as a profile: the choice of its counters.

The classes of disks are not known from Perfmon. If they are given, LogicalDisk's "D:" counts, else the PhysicalDisk "1
D:". If not, all physical disks count together, or all logical ones for what only these have in a row: never both.

relog writes a column for each instance that ever was, a shadow copy or a dropped database, and blanks where it was not.
"""

from collections.abc import Mapping

import numpy as np

from stallmark.errors import StallmarkError
from stallmark.record.formats.perfmon import DISKS, Perfmon
from stallmark.record.formats.sample import Counter
from stallmark.record.imports.counters import SUMS, Entity, Key, known_counters, read_entities
from stallmark.record.imports.devices import canonical
from stallmark.record.imports.recording import WHOLE_MACHINE, Part, Recording, Rows, Samples, Sums, Wanted, some_names
from stallmark.record.profile.interval_table import IO, FileClass

_DISKS = ("physicaldisk", "logicaldisk")
_PROCESSORS = ("processor information", "processor")  # the first has those of all groups of 64
SYSTEM_DATABASES = frozenset(
    {
        *("master", "tempdb", "model", "msdb", "mssqlsystemresource"),
        *("model_msdb", "model_replicatedmaster"),  # SQL Server 2022 and later
        "rdsadmin",  # on every server of RDS
    }
)


def read(file: Perfmon, recording: Recording, wanted: Wanted) -> None:
    """Add a file. Raise StallmarkError if it has no counter that is known here, or more than one server's."""
    samples = Samples(file, recording, wanted, lambda counter: _key(counter) in known_counters("perfmon"))
    _refuse_several(file, recording)
    entities = read_entities(samples, "perfmon", _key)
    disks = {key: entities.pop(key) for key in list(entities) if key[0] in _DISKS}
    cpu = {key: entities.pop(key) for key in list(entities) if key[0] in (*_PROCESSORS, "process")}
    sums = Sums(recording, file.path.name, len(samples.seconds))
    columns: dict[str, np.ndarray] = {}
    for chosen in _choose_disks(file, disks, recording, wanted):
        for column in IO:
            amounts = {key: disks[key].amounts.get(column, np.full(len(samples.seconds), np.nan)) for key in chosen}
            for held in set(chosen.values()):
                own = [Part(key[1], amounts[key], disks[key].present) for key in chosen if chosen[key] == held]
                before = columns.get(f"{held}.{column}", np.nan)
                columns[f"{held}.{column}"] = np.where(np.isnan(before), sums.add_up(own), before)
    _refuse_nothing(file, recording, wanted, has_any=bool(columns or entities or cpu), has_disks=bool(columns))
    for column in SUMS:
        parts = _database_parts(entities, column, recording)
        columns |= {f"server.{column}": sums.add_up(parts)} if parts else {}
    for entity in entities.values():
        for column, own_amounts in entity.amounts.items():
            if column not in SUMS:
                columns.setdefault(f"server.{column}", own_amounts)
    if (cpu_s := _cpu_s(cpu, recording)) is not None:
        columns["server.cpu_s"] = cpu_s
    recording.rows.append(Rows(samples.start, samples.end, columns))
    if file.has_decimal_commas:
        recording.note(f"{file.path.name}: decimal commas are read as points.")
    sums.note()


def _key(counter: Counter) -> Key:
    """Return the names of a counter in small letters, without the instance of SQL Server."""
    return counter.object.rpartition(":")[2].strip().lower(), counter.counter.lower()


def _refuse_several(file: Perfmon, recording: Recording) -> None:
    """Raise StallmarkError for counters of several machines, or of several instances of SQL Server."""
    hosts = {host.lower() for host in (file.host, *(counter.host for counter in file.counters)) if host}
    if len(hosts) > 1:
        raise StallmarkError(
            f"{file.path} has counters of {len(hosts)} machines: a profile is of one. Record each alone."
        )
    prefixes = {prefix.lower(): prefix for counter in file.counters if (prefix := counter.object.rpartition(":")[0])}
    servers = sorted(prefix for prefix in prefixes if prefix == "sqlserver" or prefix.startswith("mssql$"))
    if len(servers) > 1:
        names = " and ".join(prefixes[name] for name in servers)
        raise StallmarkError(f"{file.path} has counters of {names}: a profile is of one instance. Record each alone.")
    recording.engine = "mssql" if servers else recording.engine


def _refuse_nothing(file: Perfmon, recording: Recording, wanted: Wanted, has_any: bool, has_disks: bool) -> None:
    """Raise StallmarkError for a file without a known counter; note names that may be those of disks."""
    header = file.counters
    foreign = {name for counter in header for name in (counter.object, counter.counter) if not name.isascii()}
    english = "write the English names into the first line"
    if not (has_any or (wanted.classes and recording.devices)):
        first = f" (it has {some_names(f'{counter.object} {counter.counter}'.strip() for counter in header)})"
        raise StallmarkError(
            f"{file.path} has no counter that a profile knows{first if header else ''}: record those of disks, as in "
            f"`typeperf {DISKS} -si 15 -f CSV -o sales.csv`{f', or {english}' if foreign else ''}."
        )
    if foreign and not has_disks:
        recording.note(
            f"{file.path.name}: disks may be among the names of a language that is not known: {some_names(foreign)}. "
            f"To have them read, {english}."
        )


def _choose_disks(
    file: Perfmon, disks: Mapping[Key, Entity], recording: Recording, wanted: Wanted
) -> list[dict[Key, FileClass]]:
    """Return the disks that count: the named ones, or all of each object; the total only if it is alone.

    Raise StallmarkError if one disk was given two classes.
    """
    single = [key for key in disks if key[1].lower() != "_total"]
    recording.devices |= {instance for _, instance in single}
    if not wanted.classes:
        own = [[key for key in disks if key[0] == object] for object in _DISKS]
        return [dict.fromkeys([key for key in keys if key in single] or keys, FileClass.DEVICE) for keys in own if keys]
    chosen: dict[tuple[str, str], tuple[FileClass, str]] = {}
    for name, held in wanted.classes.items():
        exact = {key for key in single if canonical(key[1]) == canonical(name)}
        parts = {key for key in single if canonical(name) in key[1].lower().split()}
        # Of "D:" and "1 D:" the one of which more was recorded.
        for key in sorted(exact | parts, key=lambda key: (-len(disks[key].amounts), key not in exact, key))[:1]:
            other, first = chosen.setdefault(key, (held, name))
            if other != held:
                raise StallmarkError(
                    f"The disk “{key[1]}” of {file.path} is {first} and {name}, with the classes {other} "
                    f"and {held}: record LogicalDisk, or give both one class."
                )
            recording.mapped.add(name)
    return [{key: held for key, (held, _) in chosen.items()}] if chosen else []


def _database_parts(entities: Mapping[Key, Entity], column: str, recording: Recording) -> list[Part]:
    """Return a column of all user databases, or the total without any; the buffer manager has no instance."""
    own = {instance: entity for (_, instance), entity in entities.items() if column in entity.amounts}
    users = {name: entity for name, entity in own.items() if name.lower() not in SYSTEM_DATABASES | {"_total"}}
    total = {name: entity for name, entity in own.items() if name.lower() == "_total"}
    if total and not users:
        recording.note("Transactions and log flushes are those of all databases, the system's included.")
    return [Part(name, entity.amounts[column], entity.present) for name, entity in (users or total).items()]


def _cpu_s(cpu: Mapping[Key, Entity], recording: Recording) -> np.ndarray | None:
    """Return the CPU time of the only SQL Server, or of the machine if its cores are known."""
    servers = [cpu[key] for key in cpu if key[0] == "process" and key[1].lower().startswith("sqlservr")]
    total = None
    for object in _PROCESSORS:
        shares = {name.lower(): entity for (own, name), entity in cpu.items() if own == object}
        total = total or shares.get("_total")
        if cores := {name for name in shares if name.replace(",", "").isdigit()}:
            recording.cores = len(cores)
            break
    if len(servers) == 1:
        return servers[0].amounts["cpu_s"]
    if total and not recording.cores:
        recording.missing["server.cpu_s"] = (
            "Perfmon has the processors' total in percent, and not how many there are; record Processor(*)"
        )
    elif total:
        recording.note(WHOLE_MACHINE)
        return total.amounts["cpu_s"] * (recording.cores or 0)
    return None
