"""A workload for benchmarks: calls `bench.replay(i)` for i = 1, 2, …, each once over all processes.

The function executes recorded transactions of the brokerage, a row of `bench.inputs` at a time. Whoever calls it has
the same work done by the server in the same order.
"""

import random
from itertools import count
from typing import ClassVar

from sqlalchemy import MetaData

from stallmark.driver.engines.base import Session
from stallmark.transactions.workload import Outcome, Surroundings, Transaction, Workload


class Replay(Transaction):
    name = "replay"
    frames: ClassVar = {"replay": 1}

    def inputs(self, rng: random.Random) -> tuple[int]:
        return (next(self.shared),)

    def execute(self, session: Session, inputs: tuple) -> Outcome:
        session.call("replay", inputs)
        return Outcome.COMMITTED


def _numbers(around: Surroundings) -> "count[int]":
    return count(1 + around.process, around.processes)


WORKLOAD = Workload("replay", 1, MetaData(schema="bench"), {Replay: 1}, (), "benchmarks", share=_numbers)
