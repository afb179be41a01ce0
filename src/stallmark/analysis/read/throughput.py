"""The load as the driver counted it: transactions and users, per second and per measured interval."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from stallmark.analysis.read.latency import Latencies


@dataclass(frozen=True)
class Load:
    """The load of a run, or of one of its loads. `counts[transaction][column]` is an array per second;
    `latency[(interval, transaction)]` is merged."""

    seconds: int
    counts: Mapping[str, Mapping[str, np.ndarray]] = field(default_factory=dict)
    latency: Mapping[tuple[int, str], Latencies] = field(default_factory=dict)
    service: Mapping[tuple[int, str], Latencies] = field(default_factory=dict)
    users: Mapping[int, Mapping[str, np.ndarray]] = field(default_factory=dict)
    """By executor; `cpu_us` is of all loads that it has, because they share the one core that an executor can use."""
    executors: Mapping[int, Sequence[int]] = field(default_factory=dict)  # by load machine; 0: the load came from one
    own_io: Mapping[str, Mapping[str, np.ndarray]] = field(default_factory=dict)
    """By transaction and column of `transaction_io`; NaN in seconds for which the server does not tell."""
    attended: frozenset[str] = frozenset()  # transactions that no virtual user starts

    def all(self, column: str) -> np.ndarray:
        """Return a count per second over all transaction types."""
        return self._sum([counts[column] for counts in self.counts.values()])

    def of_users(self, column: str) -> np.ndarray:
        """Return a count per second over the transactions that virtual users start."""
        counts = self.counts.items()
        return self._sum([columns[column] for name, columns in counts if name not in self.attended])

    def ended(self, transaction: str) -> np.ndarray:
        """Return the transactions per second that were committed, rolled back or given up."""
        counts = self.counts.get(transaction)
        return self._sum([counts[name] for name in ("committed", "rolled_back", "failed")] if counts else [])

    def user_sum(self, column: str, machine: int | None = None) -> np.ndarray:
        """Return a column of the users' table per second, over all executors or those of one load machine."""
        executors = self.users if machine is None else self.executors[machine]
        return self._sum([self.users[executor][column] for executor in executors])

    def sessions(self) -> np.ndarray:
        """Return the sessions per second that have something to do: those of users, and busy background sessions."""
        attending = self.all("service_us") - self.of_users("service_us")
        return self.user_sum("running") + attending / 1e6

    def _sum(self, arrays: Sequence[np.ndarray]) -> np.ndarray:
        return np.sum(arrays, axis=0) if arrays else np.zeros(self.seconds)
