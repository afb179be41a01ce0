"""From the header of a Perfmon file: which columns count, and what they are.

Which disk holds what cannot be known from Perfmon. Where it is said, LogicalDisk's "D:" is meant, else the PhysicalDisk
"1 D:". Where it is not, all physical disks count together, or all logical ones where no physical ones were recorded.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from stallmark.errors import StallmarkError
from stallmark.record.imports.devices import canonical
from stallmark.record.imports.perfmon_counters import CHECKPOINTS, DATABASES, DISK, PATH, SQL, SYSTEM_DATABASES
from stallmark.record.imports.recording import WHOLE_MACHINE, Recording, Wanted, product
from stallmark.record.profile.intervals import FileClass

_DISKS = ("logicaldisk", "physicaldisk")


@dataclass(frozen=True)
class _Counter:
    place: int
    object: str
    instance: str
    name: str


class Plan:
    """The columns of a file that count. `width`: how many values a whole row has."""

    def __init__(self, path: Path, header: Sequence[str], recording: Recording, wanted: Wanted):
        self._path, self._recording = path, recording
        counters, hosts, prefixes = [], {}, {}
        for place, text in enumerate(header):
            if (found := PATH.fullmatch(text.strip())) is None:
                continue
            head, _, tail = found["object"].strip().rpartition(":")
            if head:
                prefixes[head.lower()] = head
            hosts[found["host"].lower()] = found["host"]
            instance = (found["instance"] or "").strip()
            counters.append(_Counter(place, tail.lower(), instance, found["counter"].strip().lower()))
        if len(hosts) > 1:
            raise StallmarkError(
                f"{path} has counters of {len(hosts)} machines: a profile is of one. Record each alone."
            )
        servers = [name for name in prefixes if name == "sqlserver" or name.startswith("mssql$")]
        if len(servers) > 1:
            names = " and ".join(sorted(prefixes[name] for name in servers))
            raise StallmarkError(f"{path} has counters of {names}: a profile is of one instance. Record each alone.")
        self._disks = self._of_disks(counters, wanted)
        self._sums = self._of_databases(counters) | self._of_checkpoints(counters)
        self._single = self._of_server(counters)
        self._cpu = self._of_cpu(counters)
        self.places = sorted(
            {place for io in self._disks for place, _ in io[1].values()}
            | {place for places in self._sums.values() for place in places}
            | {place for place, _ in self._single.values()}
            | ({self._cpu[0]} if self._cpu else set())
        )
        if not self.places:
            some = ", ".join(f"{one.object} {one.name}" for one in counters[:3])
            raise StallmarkError(
                f"{path} has no counter that a profile knows{f' (it has {some})' if some else ''}: names are known in "
                "English alone."
            )
        self.width = max(self.places) + 1
        recording.host = recording.host or next(iter(hosts.values()))
        recording.engine = "mssql" if servers else recording.engine

    def rates(self, values: Mapping[int, float | None]) -> dict[str, float | None]:
        """Return the rates and states of a row."""
        found: dict[str, float | None] = {}
        for held, columns in self._disks:
            io = {name: product(values[place], factor) for name, (place, factor) in columns.items()}
            for side in ("read", "write"):
                mean = io.pop(f"{side}_ms", None)
                if f"{side}_ms" in columns:
                    io[f"{side}_stall_ms"] = 0.0 if io.get(f"{side}s") == 0 else product(mean, io.get(f"{side}s"))
            for name in ("reads", "read_bytes", "read_stall_ms", "writes", "write_bytes", "write_stall_ms"):
                key, part = f"{held}.{name}", io.get(name)
                so_far = found.get(key, 0.0)
                found[key] = None if part is None or so_far is None else so_far + part
        for name, places in self._sums.items():
            parts = [values[place] for place in places]
            known = [part for part in parts if part is not None]
            found[f"server.{name}"] = sum(known) if len(known) == len(parts) else None
        for name, (place, factor) in self._single.items():
            found[f"server.{name}"] = product(values[place], factor)
        if self._cpu:
            place, cores = self._cpu
            found["server.cpu_s"] = product(values[place], cores, 0.01)
        return found

    def _of_disks(
        self, counters: Sequence[_Counter], wanted: Wanted
    ) -> list[tuple[FileClass, dict[str, tuple[int, float]]]]:
        disks: dict[tuple[str, str], dict[str, tuple[int, float]]] = {}
        for one in counters:
            if one.object in _DISKS and one.name in DISK:
                name, factor = DISK[one.name]
                disks.setdefault((one.object, one.instance), {})[name] = one.place, factor
        single = {key for key in disks if key[1].lower() != "_total"}
        self._recording.devices |= {instance for _, instance in single}
        if wanted.classes:
            return [(held, disks[key]) for key, held in self._said(single, wanted).items()]
        for object in ("physicaldisk", "logicaldisk"):
            chosen = [key for key in single if key[0] == object] or [key for key in disks if key[0] == object]
            if chosen:
                return [(FileClass.DEVICE, disks[key]) for key in chosen]
        return []

    def _said(self, disks: set[tuple[str, str]], wanted: Wanted) -> dict[tuple[str, str], FileClass]:
        """Return what was said that disks hold. Raise StallmarkError where one disk is said to hold two things."""
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

    def _of_databases(self, counters: Sequence[_Counter]) -> dict[str, list[int]]:
        """Return the columns of all databases of users, or of the total where each was not recorded."""
        found: dict[str, list[int]] = {}
        for name, ours in DATABASES.items():
            own = [one for one in counters if (one.object, one.name) == ("databases", name)]
            users = [one for one in own if one.instance.lower() not in SYSTEM_DATABASES | {"_total"}]
            total = [one for one in own if one.instance.lower() == "_total"]
            if chosen := users or total:
                found[ours] = [one.place for one in chosen]
            if total and not users:
                self._recording.note("Transactions and log flushes are those of all databases, the system's included.")
        return found

    def _of_checkpoints(self, counters: Sequence[_Counter]) -> dict[str, list[int]]:
        places = [one.place for one in counters if one.object == "buffer manager" and one.name in CHECKPOINTS]
        return {"checkpoint_pages": places} if places else {}

    def _of_server(self, counters: Sequence[_Counter]) -> dict[str, tuple[int, float]]:
        place = {(one.object, one.name): one.place for one in counters}
        found: dict[str, tuple[int, float]] = {}
        for key, (ours, factor) in SQL.items():
            if key in place:
                found.setdefault(ours, (place[key], factor))
        return found

    def _of_cpu(self, counters: Sequence[_Counter]) -> tuple[int, float] | None:
        """Return the place of CPU time in percent, and of how many cores it is a share: of one, for a process."""
        own = [one for one in counters if one.name == "% processor time"]
        cores = {one.instance for one in own if one.object == "processor" and one.instance.isdigit()}
        cores = cores or {
            one.instance
            for one in own
            if one.object == "processor information" and one.instance.replace(",", "").isdigit()
        }
        if cores:
            self._recording.cores = len(cores)
        processes = [one for one in own if one.object == "process" and one.instance.lower().startswith("sqlservr")]
        if len(processes) == 1:
            return processes[0].place, 1.0
        total = [one for one in own if one.object.startswith("processor") and one.instance.lower() == "_total"]
        if total and not self._recording.cores:
            self._recording.missing["server.cpu_s"] = (
                "Perfmon has the processors' total in percent, and not how many there are; record Processor(*)"
            )
        elif total:
            self._recording.note(WHOLE_MACHINE)
            return total[0].place, float(self._recording.cores or 0)
        return None
