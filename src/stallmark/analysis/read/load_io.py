"""The reads and writes of each load within an interval, and of all else on the server.

The server counts them by session, and the sessions of a load have a name of their own. What a session counted is gone
when it ends. So figures are over the longest part of the interval in which none of a load's sessions ended, and missing
where that is less than half of it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from stallmark.analysis.read.counters import Counters, read_counters
from stallmark.analysis.read.interval import Interval
from stallmark.analysis.read.process_io import DATA, TEMP, read_processes
from stallmark.record.manifest import Manifest
from stallmark.record.manifest.loads import application
from stallmark.record.reader import Record
from stallmark.stats.thresholds import FOREIGN_FLOOR_PER_S, REPORT_DELAY_S

LEAST_SHARE = 0.5  # of the interval: figures of less do not stand for it
OTHER_SESSIONS = "other sessions"
_SESSION = "client backend"  # as pg_stat_io calls the process of one
_COLUMNS = [f"{verb}{what}" for verb in ("read", "write", "extend") for what in ("s", "_bytes")]


@dataclass(frozen=True)
class LoadIo:
    """Physical reads and writes of data and temporary tables from `begin` to `end` (s since run start). A file that
    grew was written. Bytes are None where the server counts none for a session."""

    begin: float
    end: float
    reads: float
    writes: float
    read_bytes: float | None
    write_bytes: float | None

    @property
    def seconds(self) -> float:
        return self.end - self.begin

    @property
    def reads_per_s(self) -> float:
        return self.reads / self.seconds


@dataclass(frozen=True)
class IoByLoad:
    """The server's I/O within an interval, by load. A load that is not known is None, and then so is what is left.

    `server` is of all its data and temporary files, over the time in which all loads are known. `others` are its reads
    that are of no load's session, by kind of process where the server tells: parallel workers are "background worker",
    whatever session they read for.
    """

    loads: Mapping[str, LoadIo | None]
    server: LoadIo | None
    others: Mapping[str, float] | None

    @property
    def loads_share(self) -> float | None:
        """Return the loads' share of the server's reads; None where that is not known, or where there are so few that
        those of a moment make the share."""
        if self.server is None or self.others is None or self.server.reads_per_s <= FOREIGN_FLOOR_PER_S:
            return None
        return 1 - sum(self.others.values()) / self.server.reads


class LoadViews:
    """The counters of the loads of one run, and of its server by kind of process."""

    def __init__(self, record: Record):
        delay_s = REPORT_DELAY_S.get(record.manifest.server.product, 0.0)
        counted = read_counters(record, "load_io", _COLUMNS, "application", "application", delay_s)
        names = applications(record.manifest)
        self._loads = {load: counted[name] for load, name in names.items() if name in counted}
        self._server = _by_process(record, delay_s) if self._loads else []

    def within(self, interval: Interval) -> IoByLoad | None:
        """Return the I/O of an interval by load; None where the server does not tell it by session. A load without a
        session in it rests, and is left out."""
        here = {name: one for name, one in self._loads.items() if np.any(_inside(one.t, interval))}
        if not here:
            return None
        loads = {name: _longest(one, interval) for name, one in here.items()}
        known = [one for one in loads.values() if one]
        begin = max((one.begin for one in known), default=0.0)
        end = min((one.end for one in known), default=0.0)
        if len(known) < len(loads) or end - begin < LEAST_SHARE * interval.seconds:
            return IoByLoad(loads, None, None)
        processes: dict[str, list[LoadIo]] = {}
        for process, counters in self._server:
            if found := _between(counters, begin, end):
                processes.setdefault(process, []).append(found)
        if _SESSION not in processes:
            return IoByLoad(loads, None, None)
        ours = sum(found.reads for one in here.values() if (found := _between(one, begin, end)))
        reads = {process: sum(one.reads for one in parts) for process, parts in processes.items()}
        others = {OTHER_SESSIONS: reads.pop(_SESSION) - ours} | {name: count for name, count in reads.items() if count}
        return IoByLoad(loads, _sum([one for parts in processes.values() for one in parts], begin, end), others)


def applications(manifest: Manifest) -> dict[str, str]:
    """Return by which name of an application the server knows the sessions of each load."""
    if not manifest.loads:
        return {manifest.workload.name: "stallmark-user"}
    return {load.name: application(load.kind, load.name) for load in manifest.loads if load.kind != "raw"}


def _by_process(record: Record, delay_s: float) -> list[tuple[str, Counters]]:
    """Return the counters of data and temporary files by kind of process: all are of sessions where the server does not
    tell."""
    kinds = read_counters(record, "server_io", _COLUMNS, "kind", delay_s=delay_s)
    if processes := read_processes(record, kinds.get("data"), DATA, TEMP):
        return list(processes.items())
    return [(_SESSION, kinds[kind]) for kind in ("data", "temp") if kind in kinds]


def _longest(counters: Counters, interval: Interval) -> LoadIo | None:
    """Return the I/O over the longest part of an interval in which no count was lost; None where it is too short."""
    t = counters.t
    lost = np.flatnonzero(counters.breaks & (t[1:] > interval.begin) & (t[:-1] < interval.end))
    edges = [interval.begin, *(float(t[at]) for gap in lost for at in (gap, gap + 1)), interval.end]
    parts = [found for part in zip(edges[::2], edges[1::2], strict=True) if (found := _between(counters, *part))]
    longest = max(parts, key=lambda part: part.seconds, default=None)
    return longest if longest and longest.seconds >= LEAST_SHARE * interval.seconds else None


def _inside(t: np.ndarray, interval: Interval) -> np.ndarray:
    return (t >= interval.begin) & (t <= interval.end)


def _between(counters: Counters, begin: float, end: float) -> LoadIo | None:
    delta = counters.over(begin, end)
    if delta is None or delta.broken or not {"reads", "writes"} <= delta.values.keys():
        return None
    grown, grown_bytes = delta.get("extends") or 0.0, delta.get("extend_bytes") or 0.0
    written = delta.get("write_bytes")
    return LoadIo(
        delta.begin,
        delta.end,
        reads=delta["reads"],
        writes=delta["writes"] + grown,
        read_bytes=delta.get("read_bytes"),
        write_bytes=None if written is None else written + grown_bytes,
    )


def _sum(parts: Sequence[LoadIo], begin: float, end: float) -> LoadIo:
    def total(values: list[float | None]) -> float | None:
        known = [value for value in values if value is not None]
        return sum(known) if len(known) == len(values) else None

    return LoadIo(
        begin,
        end,
        reads=sum(part.reads for part in parts),
        writes=sum(part.writes for part in parts),
        read_bytes=total([part.read_bytes for part in parts]),
        write_bytes=total([part.write_bytes for part in parts]),
    )
