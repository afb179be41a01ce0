"""The reads and writes of each load within an interval, and of all else on the server.

The server counts them by session, and the sessions of a load have a name of their own. What a session counted is gone
when it ends. So figures are over the longest part of the interval in which none of a load's sessions ended, and missing
where that is less than half of it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from stallmark.analysis.read.counters import Counters, read_counters
from stallmark.analysis.read.interval import Interval
from stallmark.analysis.read.process_io import DATA, TEMP, by_process
from stallmark.analysis.read.server_io import COUNTS, ServerIo, read_server_io
from stallmark.record.manifest import Manifest
from stallmark.record.manifest.loads import application
from stallmark.record.reader import Record
from stallmark.stats.thresholds import FOREIGN_FLOOR_PER_S, REPORT_DELAY_S

LEAST_SHARE = 0.5  # of the interval: figures of less do not stand for it
OTHER_SESSIONS = "other sessions"
_SESSION = "client backend"  # as pg_stat_io calls the process of one


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


def read_io_by_load(record: Record, intervals: Sequence[Interval]) -> list[IoByLoad | None]:
    """Return the I/O of each interval by load; None where the server does not tell it by session. A load without a
    session in it rests, and is left out."""
    delay_s = REPORT_DELAY_S.get(record.manifest.server.product, 0.0)
    counted = read_counters(record, "load_io", COUNTS, "application", "application", delay_s)
    of_load = {load: counted[name] for load, name in applications(record.manifest).items() if name in counted}
    own = [{load: one for load, one in of_load.items() if np.any(_inside(one.t, interval))} for interval in intervals]
    stretches = [_all_known(counters, interval) for counters, interval in zip(own, intervals, strict=True)]
    known = [one for one in stretches if one]
    server = read_server_io(record, known, COUNTS) if known else ServerIo()
    processes = _processes(record, server)
    return [
        _io_by_load(counters, interval, stretch, processes) if counters else None
        for counters, interval, stretch in zip(own, intervals, stretches, strict=True)
    ]


class _Stretch(NamedTuple):
    begin: float
    end: float


def _all_known(of_load: Mapping[str, Counters], interval: Interval) -> _Stretch | None:
    """Return the time in which all loads are known; None where it is too short."""
    longest = [_longest(counters, interval) for counters in of_load.values()]
    known = [one for one in longest if one]
    if not known or len(known) < len(longest):
        return None
    begin, end = max(one.begin for one in known), min(one.end for one in known)
    return _Stretch(begin, end) if end - begin >= LEAST_SHARE * interval.seconds else None


def _io_by_load(
    of_load: Mapping[str, Counters],
    interval: Interval,
    stretch: _Stretch | None,
    processes: Sequence[tuple[str, Counters]],
) -> IoByLoad:
    loads = {load: _longest(counters, interval) for load, counters in of_load.items()}
    if stretch is None:
        return IoByLoad(loads, None, None)
    begin, end = stretch
    of_process: dict[str, list[LoadIo]] = {}
    for process, counters in processes:
        if found := _between(counters, begin, end):
            of_process.setdefault(process, []).append(found)
    if _SESSION not in of_process:
        return IoByLoad(loads, None, None)
    ours = sum(found.reads for one in of_load.values() if (found := _between(one, begin, end)))
    reads = {process: sum(one.reads for one in parts) for process, parts in of_process.items()}
    others = {OTHER_SESSIONS: reads.pop(_SESSION) - ours} | {name: count for name, count in reads.items() if count}
    return IoByLoad(loads, _sum([one for parts in of_process.values() for one in parts], begin, end), others)


def applications(manifest: Manifest) -> dict[str, str]:
    """Return by which name of an application the server knows the sessions of each load."""
    if not manifest.loads:
        return {manifest.workload.name: "stallmark-user"}
    return {load.name: application(load.kind, load.name) for load in manifest.loads if load.kind != "raw"}


def _processes(record: Record, server: ServerIo) -> list[tuple[str, Counters]]:
    """Return the counters of data and temporary files by kind of process: all are of sessions where the server does not
    tell."""
    if processes := by_process(record, server, DATA, TEMP):
        return list(processes.items())
    return [(_SESSION, server.kinds[kind]) for kind in ("data", "temp") if kind in server.kinds]


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
