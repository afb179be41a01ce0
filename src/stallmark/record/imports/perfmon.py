"""Perfmon as a profile: the choice of its counters.

The classes of disks are not known from Perfmon. If they are given, LogicalDisk's "D:" counts, else the PhysicalDisk "1
D:". If not, all physical disks count together, or all logical ones for what only these have in a row: never both.

relog writes a column for each instance that ever was, a shadow copy or a dropped database, and blanks where it was not.
"""

from collections import Counter as CounterOf
from collections.abc import Mapping

from stallmark.record.formats.perfmon import Perfmon
from stallmark.record.formats.sample import Counter
from stallmark.record.formats.sentences import refusal
from stallmark.record.imports.amounts import Amounts, Key, Part, known_counters, known_parts
from stallmark.record.imports.devices import canonical
from stallmark.record.imports.readings import read_samples
from stallmark.record.imports.recording import Recording, Wanted, some_names
from stallmark.record.profile.interval_table import FileClass

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
    readings = read_samples(file, recording, wanted, lambda counter: _key(counter) in known_counters("perfmon"))
    _refuse_several(file, recording)
    amounts = Amounts(readings, known_parts(readings, "perfmon", _key), recording, comes_and_goes=True)
    disks = CounterOf(part.entity for part in amounts.parts if part.entity[0] in _DISKS)
    classes: dict[Key, str] = dict(_choose_disks(file, disks, recording, wanted))
    _refuse_nothing(file, recording, wanted, has_any=bool(classes or amounts.parts), has_disks=bool(classes))
    _count_cpu(amounts, recording)
    _leave_out_databases(amounts, recording)
    classes |= {part.entity: "server" for part in amounts.parts if part.entity[0] not in _DISKS}
    amounts.add_up(classes, by_class=bool(wanted.classes))


def _key(counter: Counter) -> Key:
    """Return the names of a counter in small letters, without the instance of SQL Server."""
    return counter.object.rpartition(":")[2].strip().lower(), counter.counter.lower()


def _refuse_several(file: Perfmon, recording: Recording) -> None:
    """Raise StallmarkError for counters of several machines, or of several instances of SQL Server."""
    hosts = {host.lower() for host in (file.host, *(counter.host for counter in file.counters)) if host}
    if len(hosts) > 1:
        raise refusal("several_hosts", file.path, count=len(hosts))
    prefixes = {prefix.lower(): prefix for counter in file.counters if (prefix := counter.object.rpartition(":")[0])}
    servers = sorted(prefix for prefix in prefixes if prefix == "sqlserver" or prefix.startswith("mssql$"))
    if len(servers) > 1:
        raise refusal("several_instances", file.path, names=" and ".join(prefixes[name] for name in servers))
    recording.engine = "mssql" if servers else recording.engine


def _refuse_nothing(file: Perfmon, recording: Recording, wanted: Wanted, has_any: bool, has_disks: bool) -> None:
    """Raise StallmarkError for a file without a known counter; note names that may be those of disks."""
    header = file.counters
    foreign = {name for counter in header for name in (counter.object, counter.counter) if not name.isascii()}
    if not (has_any or (wanted.classes and recording.devices)):
        names = some_names(f"{counter.object} {counter.counter}".strip() for counter in header)
        raise refusal("foreign_counters" if foreign else "no_counter", file.path, names=names or "none")
    if foreign and not has_disks:
        recording.note("foreign_names", file=file.path.name, names=some_names(foreign))


def _choose_disks(
    file: Perfmon, disks: Mapping[Key, int], recording: Recording, wanted: Wanted
) -> dict[Key, FileClass]:
    """Return the disks to import, with their classes. They are those that were named, or else all of an object; its
    total is one only if it has no disk. `disks` has the number of recorded columns by disk.

    Raise StallmarkError if one disk was given two classes.
    """
    single = [key for key in disks if key[1].lower() != "_total"]
    recording.devices |= {instance for _, instance in single}
    if not wanted.classes:
        objects = {object for object, _ in single}
        return {key: FileClass.DEVICE for key in disks if key in single or key[0] not in objects}
    chosen: dict[Key, tuple[FileClass, str]] = {}
    for name, held in wanted.classes.items():
        exact = {key for key in single if canonical(key[1]) == canonical(name)}
        parts = {key for key in single if canonical(name) in key[1].lower().split()}
        # Of "D:" and "1 D:" the one of which more was recorded.
        for key in sorted(exact | parts, key=lambda key: (-disks[key], key not in exact, key))[:1]:
            other, first = chosen.setdefault(key, (held, name))
            if other != held:
                raise refusal("one_disk", file.path, disk=key[1], first=first, second=name, other=other, held=held)
            recording.mapped.add(name)
    return {key: held for key, (held, _) in chosen.items()}


def _leave_out_databases(amounts: Amounts, recording: Recording) -> None:
    """Leave out the system's databases, and the total of each column that a user's database has."""
    left_out = SYSTEM_DATABASES | {"_total"}
    parts, amounts.parts = amounts.parts, []
    own = {part.column for part in parts if part.entity[0] == "databases" and part.entity[1].lower() not in left_out}
    for part in parts:
        object, name = part.entity
        if object != "databases" or name.lower() not in left_out:
            amounts.parts.append(part)
        elif name.lower() == "_total" and part.column not in own:
            amounts.parts.append(part)
            recording.note("all_databases")


def _count_cpu(amounts: Amounts, recording: Recording) -> None:
    """Leave the CPU time of the only SQL Server, or of the machine if its cores are known."""
    cpu = [part for part in amounts.parts if part.column == "cpu_s"]
    amounts.parts = [part for part in amounts.parts if part.column != "cpu_s"]
    totals: list[Part] = []
    for object in reversed(_PROCESSORS):
        names = {part.entity[1] for part in cpu if part.entity[0] == object}
        totals = [part for part in cpu if part.entity[0] == object and part.entity[1].lower() == "_total"] or totals
        recording.cores = sum(name.replace(",", "").isdigit() for name in names) or recording.cores
    servers = [part for part in cpu if part.entity[0] == "process" and part.entity[1].lower().startswith("sqlservr")]
    if len(servers) == 1:
        amounts.parts += servers
    elif totals and recording.cores:
        recording.note("whole_machine")
        totals[0].amounts *= recording.cores
        amounts.parts += totals
    elif totals:
        recording.missing["server.cpu_s"] = (
            "Perfmon has the processors' total in percent, and not how many there are; record Processor(*)"
        )
