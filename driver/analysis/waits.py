"""What the users waited for, from samples of their sessions."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from stallmark.driver.analysis.interval import Interval
from stallmark.driver.analysis.server_summary import WAIT_CLASSES
from stallmark.driver.record import Record

TOP = 8


@dataclass(frozen=True)
class Waits:
    """Users seen, summed over seconds; a share is one of the users' time while they were observed."""

    classes: Mapping[str, float]
    events: Mapping[str, float]

    def shares(self) -> dict[str, float]:
        """Every wait class, sum 1."""
        total = sum(self.classes.values())
        return {name: self.classes.get(name, 0.0) / total for name in WAIT_CLASSES}

    def top(self) -> list[tuple[str, float]]:
        total = sum(self.events.values())
        most = sorted(self.events.items(), key=lambda item: (-item[1], item[0]))[:TOP]
        return [(event, samples / total) for event, samples in most]


def read_waits(record: Record, intervals: Sequence[Interval]) -> dict[int, Waits]:
    """Waits by the number of the interval, where any were sampled; one pass over the table.

    Samples are divided by the polls of their second: a busy machine is polled less often, and its seconds
    must not weigh less for it.
    """
    sums: dict[int, tuple[Counter[str], Counter[str]]] = {}
    for batch in record.batches("waits", ["second", "wait_class", "event", "samples", "polls"]):
        second = batch.column("second").to_numpy()
        users = batch.column("samples").to_numpy() / np.maximum(batch.column("polls").to_numpy(), 1)
        table = pa.table({name: batch.column(name) for name in ("wait_class", "event")} | {"users": users})
        for interval in intervals:
            part = table.filter(pa.array((second >= interval.begin) & (second < interval.end)))
            if not part.num_rows:
                continue
            classes, events = sums.setdefault(interval.index, (Counter(), Counter()))
            for row in part.group_by(["wait_class", "event"]).aggregate([("users", "sum")]).to_pylist():
                classes[row["wait_class"] if row["wait_class"] in WAIT_CLASSES else "other"] += row[
                    "users_sum"
                ]
                events[row["event"]] += row["users_sum"]
    return {index: Waits(*found) for index, found in sums.items() if found[0].total() > 0}
