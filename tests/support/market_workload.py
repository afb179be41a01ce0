"""The bank with a market: each payment is echoed by another a little later, and a timer sweeps."""

import random
from typing import ClassVar

from stallmark.engines.base import Session
from stallmark.transactions.bank import WORKLOAD as BANK
from stallmark.transactions.bank import Transfer
from stallmark.transactions.workload import Background, Opening, Outcome, UserLoad, Workload, WorkloadContext

ECHO_AFTER_S = 0.1
SWEEP_EVERY_S = 0.2


class _Payment(Transfer):
    def __init__(self, around: WorkloadContext):
        super().__init__(around.part(around.scale["branches"]))
        self._post = around.post


class Pay(_Payment):
    name = "pay"

    def execute(self, session: Session, inputs: tuple) -> Outcome:
        outcome = super().execute(session, inputs)
        self._post(Echo, inputs, ECHO_AFTER_S)
        return outcome


class Look(_Payment):
    """Reads, as far as a mix is concerned."""

    name = "look"
    reads_only = True


class Echo(_Payment):
    name = "echo"
    limit_s = 1.0


class Sweep(_Payment):
    name = "sweep"


class Settle(Opening):
    """Pays so many times before a run."""

    name = "settle"
    frames: ClassVar = Transfer.frames

    def inputs(self, rng: random.Random) -> tuple:
        return (1, 1, 1, 100)

    def execute(self, session: Session, inputs: tuple) -> Outcome:
        [(balance,)] = session.call("transfer", inputs)
        self.done = {"balance": balance}
        return Outcome.COMMITTED


WORKLOAD = Workload(
    name="support.market_workload",
    version=1,
    schema=BANK.schema,
    tables=BANK.tables,
    package=BANK.package,
    users=UserLoad(
        deck={Pay: 1, Look: 1},
        share=lambda around: around,
        opening=Settle,
        primary=Echo,
        nominal_rate=lambda scale: 2.0 * scale["branches"],
        counted={Echo: "SELECT COUNT(*) FROM bank.history"},
    ),
    background=Background(
        followers={Echo: (Pay, 1.0)}, timers={Sweep: SWEEP_EVERY_S}, sessions_per_user=0.5, executed_by="the market"
    ),
)
