"""A virtual user: a client that executes the transactions of its deck one after the other, as its pacing says."""

import threading
import time
from collections.abc import Callable
from typing import Any

from stallmark.driver.client import CODES, Client
from stallmark.driver.pacing import Pacing
from stallmark.transactions.workload import Transaction


class VirtualUser(Client):
    def __init__(self, number: int, pacing: Pacing, next_card: Callable[[], type[Transaction]], *client: Any):
        """Take in `client` the arguments of a Client, after its name."""
        super().__init__(f"user-{number}", *client)
        self.number = number
        self._pacing = pacing
        self._next_card = next_card
        self.awake = threading.Event()

    @property
    def is_ending(self) -> bool:
        return self._stopping.is_set()

    def stop(self) -> None:
        super().stop()
        self.awake.set()

    def _kinds(self) -> list[type[Transaction]]:
        return list(self._workload.users.deck)

    def _work(self) -> None:
        now = time.monotonic_ns
        pacing, stopping, report = self._pacing, self._stopping, self._report_sample
        free_since = now()
        until_sample = self._own_io_sampler.pause()
        while not stopping.is_set():
            index, transaction = self._mine[self._next_card()]
            inputs = transaction.inputs(self._rng)
            scheduled = pacing.next_start(free_since, self)
            if scheduled is None:
                return
            started = now()
            if started < scheduled:
                if stopping.wait((scheduled - started) / 1e9):
                    pacing.give_back(scheduled)
                    return
                started = now()
            outcome, retries = self._retrying.execute(transaction, inputs)
            ended = now()
            report((index, scheduled, started, ended, free_since, CODES[outcome], retries))
            free_since = ended
            until_sample -= 1
            if until_sample < 1:
                until_sample = self._sample_own_io(index, ended, outcome)
                free_since = now()
