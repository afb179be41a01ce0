"""The validity gates of each step of a run (gates.py), from its record."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from stallmark.analysis.read.driver_tables import Load
from stallmark.analysis.read.interval import Interval
from stallmark.analysis.read.transactions import (
    Errors,
    QueueSeries,
    RecordedWorkload,
    TransactionSummary,
    TransactionType,
)
from stallmark.analysis.validity import gates
from stallmark.analysis.validity.gates import Gate
from stallmark.record.manifest.course import Condition


@dataclass(frozen=True)
class Validity:
    """The parts of a run that its gates are judged by."""

    workload: RecordedWorkload
    load: Load
    errors: Errors
    deferred: QueueSeries
    conditions: Sequence[Condition]

    def judge(
        self, interval: Interval, transactions: Sequence[TransactionSummary], wait_share: Mapping[str, float] | None
    ) -> list[Gate]:
        """Return the gates of the step measured in `interval`; those on the whole run are in every step. A workload
        without a primary transaction has no gate on contention: the bank's branches are contended by design."""
        executors = sum(bool(interval.of(users["running"]).any()) for users in self.load.users.values())
        contended = self.workload.primary is not None
        found = [
            self._mix(interval, transactions, max(executors, 1)),
            self._followers(interval, max(executors, 1)),
            gates.aborts(transactions) if contended else None,
            gates.locks(wait_share) if contended else None,
            gates.limits(self.workload, transactions),
            gates.lag(self.deferred.lateness(interval)),
            gates.conditions(self.conditions),
            self._completed(),
        ]
        return [gate for gate in found if gate]

    def _mix(self, interval: Interval, transactions: Sequence[TransactionSummary], executors: int) -> Gate | None:
        under_way = {
            one.name: interval.of(self.load.counts[one.name]["latency_us"]).sum() / 1e6 / interval.seconds
            for one in transactions
            if one.name in self.load.counts
        }
        return gates.mix(self.workload, {one.name: one.done for one in transactions}, under_way, executors)

    def _followers(self, interval: Interval, executors: int) -> Gate | None:
        found = [self._following(kind, interval) for kind in self.workload.kinds if kind.follows]
        return gates.followers(found, executors, interval.seconds)

    def _following(self, kind: TransactionType, interval: Interval) -> gates.Following:
        """Count followers and sources. Followers that were given up count as come; sources that were given up do
        not count."""
        source = self.load.counts.get(kind.follows or "")
        done = source["committed"] + source["rolled_back"] if source else np.zeros(self.load.seconds)
        came = self.load.ended(kind.name)
        return gates.Following(
            kind,
            int(interval.of(done).sum()),
            int(interval.of(source["rolled_back"]).sum()) if source else 0,
            int(interval.of(came).sum()),
            int(done[: interval.begin].sum()),
            int(came[: interval.begin].sum()),
        )

    def _completed(self) -> Gate | None:
        committed = {name: int(counts["committed"].sum()) for name, counts in self.load.counts.items()}
        return gates.completed(self.workload.counted, committed, self.errors.unknown, self.workload.unheard)
