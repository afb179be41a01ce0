"""Counts that a server dropped while they rose, as a plan that left its cache: the last ones are lost."""

from dataclasses import dataclass

import numpy as np
import pyarrow.compute as pc

from stallmark.analysis.read.codes import Codes
from stallmark.analysis.read.interval import Interval
from stallmark.analysis.read.sample_times import dated, first_of_runs, numbers_of, sample_times
from stallmark.record.reader import Record


@dataclass(frozen=True)
class Dropped:
    """An entity that was counting when it was seen last, at `last`, and was gone at `gone` (s since run start)."""

    group: str
    last: float
    gone: float

    def overlaps(self, interval: Interval) -> bool:
        """Return whether what it counted in between may belong to an interval."""
        return self.last < interval.end and self.gone > interval.begin


def read_dropped(
    record: Record, table: str, group: str, entity: str, count: str, within_s: float = np.inf
) -> list[Dropped]:
    """Return the entities that counted from one sample to the next and were gone at the third, `within_s` after the
    first: what they counted since the second is lost. One that had stopped counting is not known to have lost any."""
    times = sample_times(record, table)
    if times is None:
        return []
    groups, entities = Codes(), Codes()
    seen = _Seen()
    for t, batch in dated(record, table, [group, entity, count]):
        values = numbers_of(batch, count)
        if values is None or not {group, entity} <= set(batch.schema.names):
            return []
        named = pc.and_(batch.column(entity).is_valid(), batch.column(group).is_valid())
        named = named.to_numpy(zero_copy_only=False)
        group_code, entity_code = groups.of(batch, group), entities.of(batch, entity)
        seen.add(np.searchsorted(times, t)[named], group_code[named], entity_code[named], values[named])
    gone = seen.last + 1
    early = np.flatnonzero(seen.rose & (seen.last > 0) & (gone < len(times)))
    return [
        Dropped(groups.names[seen.group[i]], float(times[seen.last[i]]), float(times[gone[i]]))
        for i in early
        if times[gone[i]] - times[seen.last[i] - 1] < within_s
    ]


class _Seen:
    """The last sample of each entity: its time's index, its value, and whether it had risen since the one before."""

    def __init__(self) -> None:
        self.last, self.group = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        self.value, self.rose = np.empty(0), np.empty(0, dtype=bool)

    def add(self, at: np.ndarray, group: np.ndarray, entity: np.ndarray, values: np.ndarray) -> None:
        """Add rows in the order of time."""
        if not len(at):
            return
        more = max(0, int(entity.max()) + 1 - len(self.last))
        self.last, self.group = np.pad(self.last, (0, more), constant_values=-1), np.pad(self.group, (0, more))
        self.value, self.rose = np.pad(self.value, (0, more)), np.pad(self.rose, (0, more))
        order = np.argsort(entity, kind="stable")
        at, group, entity, values = at[order], group[order], entity[order], values[order]
        first = first_of_runs(entity)
        before = np.append(0.0, values[:-1])
        before[first] = self.value[entity[first]]  # a new one began at zero
        last = np.append(np.flatnonzero(first)[1:], len(first)) - 1
        number = entity[last]
        self.last[number], self.group[number] = at[last], group[last]
        self.value[number], self.rose[number] = values[last], (values > before)[last]
