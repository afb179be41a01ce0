"""The waits of users, from samples of their sessions."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from stallmark.analysis.read.codes import Codes, PairCodes
from stallmark.analysis.read.interval import Interval
from stallmark.analysis.read.server_summary import WAIT_CLASSES
from stallmark.record.reader import Record
from stallmark.stats.thresholds import SHARE_SAMPLES

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
    """Return the waits by the number of the interval, if enough sessions were sampled in it; one pass over the table.

    Samples are divided by the polls of their second: a busy machine is polled less often, and its seconds must not
    weigh less for it.
    """
    sums: dict[int, dict[tuple[str, str], float]] = {}
    looks: dict[int, int] = defaultdict(int)
    looked = {interval.index: np.zeros(interval.seconds, dtype=bool) for interval in intervals}
    classes, events, pairs = Codes(), Codes(), PairCodes()
    for batch in record.batches("waits", ["second", "wait_class", "event", "samples", "polls"]):
        second = batch.column("second").to_numpy()
        samples = batch.column("samples").to_numpy()
        users = samples / np.maximum(batch.column("polls").to_numpy(), 1)
        number = pairs.of(classes.of(batch, "wait_class"), events.of(batch, "event"))
        of_class, of_event = classes.names, events.names
        known = [(of_class[one], of_event[other]) for one, other in pairs.pairs]
        for interval in intervals:
            inside = np.flatnonzero((second >= interval.begin) & (second < interval.end))
            looked[interval.index][second[inside] - interval.begin] = True
            looks[interval.index] += int(samples[inside].sum())
            seen = sums.setdefault(interval.index, defaultdict(float))
            added = np.bincount(number[inside], users[inside])
            found, first = np.unique(number[inside], return_index=True)
            for one in found[np.argsort(first)].tolist():
                wait_class, event = known[one]
                seen[wait_class if wait_class in WAIT_CLASSES else "other", event] += float(added[one])
    return {
        index: SampledWaits(dict(seen), int(looked[index].sum()))
        for index, seen in sums.items()
        if looks[index] >= SHARE_SAMPLES
    }
