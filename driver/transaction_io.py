"""The sampling of own I/O: what some transactions read and wrote, as their own session counts it.

Right before and right after a sampled transaction, outside of what is timed, the client asks its session for what it
has read and written so far. Which ones are sampled is random, so that it does not coincide with a pattern of the deck.
RUN of them come in a row, because the sample after one is the sample before the next.
"""

import random
import sys
from collections.abc import Callable

from stallmark.engines.base import OwnIO, Session
from stallmark.errors import CallFailed

RUN = 4
NEVER = sys.maxsize


def one_in(types: int) -> int:
    """Return N, where one in N transactions is sampled: fewer samples where a workload has only one type to tell apart.

    Samples then take less than 1 % of the CPU (benchmarks/own_io.py at e53481b5). One takes as much as 1.4 of
    the bank's transfers, which are its only type, and 0.4 of the brokerage's mean.
    """
    return 200 if types == 1 else 75


class OwnIOSampler:
    """The sampler of one client. `report` gets the transaction's place in the workload, when it ended (monotonic ns)
    and the fields of an OwnIO, of this transaction alone. With `every` it samples all but the first."""

    def __init__(self, types: int, report: Callable[[tuple], None]):
        self.every = False
        self._mean_pause = RUN * (one_in(types) - 1)
        self._report = report
        self._before: tuple[Session, OwnIO] | None = None
        self._left = 0  # of the run under way

    def pause(self) -> int:
        """Return after how many transactions to call `sample`, at random with a constant probability for each."""
        return 1 if self.every else 1 + int(random.expovariate(1 / self._mean_pause))

    def sample(self, session: Session, transaction: int, ended: int, *, done: bool) -> int:
        """Take a sample after a transaction; return after how many more to call this again."""
        before, self._before = self._before, None
        try:
            now = session.own_io()
        except CallFailed:  # the next transaction will meet it, too
            return self.pause()
        if now is None:
            return NEVER
        if before is None:
            self._left = RUN
        else:
            asked, then = before
            if done and asked is session:
                self._report((transaction, ended, *_between(then, now)))
            self._left -= not self.every
        if not self._left:
            return self.pause()
        self._before = session, now
        return 1


def _between(then: OwnIO, now: OwnIO) -> OwnIO:
    read_us = None if then.read_us is None or now.read_us is None else now.read_us - then.read_us
    return OwnIO(
        now.reads - then.reads,
        now.read_bytes - then.read_bytes,
        now.hits - then.hits,
        read_us,
        now.writes - then.writes,
    )
