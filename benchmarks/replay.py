"""A workload for benchmarks: calls `bench.replay()`, which executes the next of the brokerage's recorded transactions.

Whoever calls it has the same work done by the server in the same order.
"""

import random
from typing import ClassVar

from stallmark.engines.base import Session
from stallmark.transactions.workload import Outcome, Transaction, UserLoad, Workload


class Replay(Transaction):
    name = "replay"
    frames: ClassVar = {"replay": 0}

    def inputs(self, rng: random.Random) -> tuple:
        return ()

    def execute(self, session: Session, inputs: tuple) -> Outcome:
        session.call("replay", inputs)
        return Outcome.COMMITTED


WORKLOAD = Workload("replay", 1, "bench", "", "benchmarks", users=UserLoad({Replay: 1}))
