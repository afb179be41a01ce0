"""I/O on data files by kind of process, where the server tells them apart, as PostgreSQL does (pg_stat_io).

A worker of autovacuum hands in its counts when it is done with a table, all at once. So a step has the work of the
vacuums that ended in it, and none of one that went on after it.
"""

from collections.abc import Mapping

import numpy as np

from stallmark.analysis.read.counters import Counters
from stallmark.analysis.read.interval import Interval
from stallmark.analysis.read.server_io import COUNTS, ServerIo
from stallmark.analysis.read.server_summary import ProcessIo
from stallmark.record.manifest.server import POSTGRESQL
from stallmark.record.reader import Record

AUTOVACUUM = "autovacuum worker"
DATA, TEMP = "relation", "temp relation"


def by_process(record: Record, server: ServerIo, *targets: str) -> dict[str, Counters]:
    """Return the counters of I/O on `targets` (DATA, TEMP) by kind of process, at the samples of all data files; empty
    if the server does not tell them apart."""
    data = server.kinds.get("data")
    if data is None or record.manifest.server.product != POSTGRESQL:
        return {}
    totals: dict[str, dict[str, np.ndarray]] = {}
    for entity, counters in server.entities.items():
        process, target, _ = entity.split("/")
        if target not in targets:
            continue
        # A row of zeros is left out after the first sample: until an entity is seen again, it had counted nothing.
        last = np.searchsorted(counters.t, data.t, side="right") - 1
        of_process = totals.setdefault(process, {})
        for name in COUNTS:
            if (total := counters.totals.get(name)) is not None:
                of_process[name] = of_process.get(name, 0.0) + np.where(last >= 0, total[last], 0.0)
    return {name: Counters(data.t, of_process, data.breaks, data.gaps) for name, of_process in totals.items()}


def summarise_processes(processes: Mapping[str, Counters], interval: Interval) -> list[ProcessIo] | None:
    """Return the processes with I/O on data files in an interval, the one with most first, autovacuum also without any.
    None if the server does not tell them apart, or its counters began again."""
    counted: dict[str, tuple[float, float]] = {}
    for name, counters in processes.items():
        delta = counters.over(interval.begin, interval.end)
        if delta is None or delta.broken:
            return None
        reads, writes, extends = (delta.get(each) or 0.0 for each in ("reads", "writes", "extends"))
        if reads or writes or extends or name == AUTOVACUUM:
            counted[name] = (reads, writes + extends)
    if not counted:
        return None
    all_reads, all_writes = map(sum, zip(*counted.values(), strict=True))
    found = [
        ProcessIo(
            name,
            round(reads),
            round(writes),
            read_share=reads / all_reads if all_reads else None,
            write_share=writes / all_writes if all_writes else None,
        )
        for name, (reads, writes) in counted.items()
    ]
    return sorted(found, key=lambda one: (-one.reads - one.writes, one.process))
