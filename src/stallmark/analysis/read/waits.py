"""The waits of users, from samples of their sessions."""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from stallmark.analysis.read.interval import Interval
from stallmark.analysis.read.server_summary import WAIT_CLASSES
from stallmark.record.reader import Record

TOP = 8


@dataclass(frozen=True)
class SampledWaits:
    """Sessions seen in (wait class, event), summed over `seconds`; a share is one of the time of all sessions."""

    seen: Mapping[tuple[str, str], float]
    seconds: int

    def of(self, sessions: float) -> "SampledWaits":
        """Return the waits of a mean of `sessions` busy sessions, where more are connected.

        The others have nothing to do and seem to wait for their client, so they are taken out of that class. A
        background session is idle until a transaction is due.
        """
        idle = sum(self.seen.values()) - sessions * self.seconds
        client = sum(samples for (name, _), samples in self.seen.items() if name == "client")
        if idle <= 0 or not client or not sessions:
            return self
        left = max(0.0, 1 - idle / client)
        seen = {key: samples * (left if key[0] == "client" else 1) for key, samples in self.seen.items()}
        return SampledWaits(seen, self.seconds)

    def sessions(self, wait_class: str) -> float:
        """Return the mean number of sessions seen in a class."""
        return sum(samples for (name, _), samples in self.seen.items() if name == wait_class) / self.seconds

    def shares(self) -> dict[str, float]:
        """Return the share of every wait class; they sum to 1."""
        shares = self._shares(lambda key: key[0])
        return {name: shares.get(name, 0.0) for name in WAIT_CLASSES}

    def top(self) -> list[tuple[str, float]]:
        most = sorted(self._shares(lambda key: key[1]).items(), key=lambda item: (-item[1], item[0]))
        return [(event, share) for event, share in most[:TOP] if share]

    def _shares(self, by: Callable[[tuple[str, str]], str]) -> dict[str, float]:
        sums: dict[str, float] = defaultdict(float)
        for key, seen in self.seen.items():
            sums[by(key)] += seen
        total = sum(sums.values())
        return {name: seen / total for name, seen in sums.items()}


def read_waits(record: Record, intervals: Sequence[Interval]) -> dict[int, SampledWaits]:
    """Return the waits by the number of the interval, where any were sampled; one pass over the table.

    Samples are divided by the polls of their second: a busy machine is polled less often, and its seconds must not
    weigh less for it.
    """
    sums: dict[int, Counter[tuple[str, str]]] = {}
    looked: dict[int, set[int]] = {}
    for batch in record.batches("waits", ["second", "wait_class", "event", "samples", "polls"]):
        second = batch.column("second").to_numpy()
        users = batch.column("samples").to_numpy() / np.maximum(batch.column("polls").to_numpy(), 1)
        table = pa.table({name: batch.column(name) for name in ("wait_class", "event")} | {"users": users})
        for interval in intervals:
            inside = (second >= interval.begin) & (second < interval.end)
            part = table.filter(pa.array(inside))
            if not part.num_rows:
                continue
            looked.setdefault(interval.index, set()).update(second[inside].tolist())
            seen = sums.setdefault(interval.index, Counter())
            for row in part.group_by(["wait_class", "event"]).aggregate([("users", "sum")]).to_pylist():
                known = row["wait_class"] if row["wait_class"] in WAIT_CLASSES else "other"
                seen[known, row["event"]] += row["users_sum"]
    return {index: SampledWaits(seen, len(looked[index])) for index, seen in sums.items() if seen.total() > 0}
