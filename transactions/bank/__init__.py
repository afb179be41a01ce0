"""The bank: one short transaction that updates three rows and inserts one, as TPC-B and pgbench have it.

Derived from TPC-B, and not comparable with published TPC results: no audit, no think time rule, no scaling of branches
with throughput. It shows how fast a server commits small writes over random pages.
"""

import random
from typing import ClassVar

from stallmark.engines.base import Isolation, Session
from stallmark.errors import CallFailed, ErrorClass
from stallmark.schema.bank import ACCOUNTS_PER_BRANCH, TELLERS_PER_BRANCH
from stallmark.transactions.workload import Condition, Outcome, Transaction, UserLoad, Workload, WorkloadContext

REMOTE_SHARE = 0.15

# pgbench's range, not TPC-B's ±999,999: with its 32-bit balances a branch would overflow within a day.
LARGEST_DELTA = 5_000


class Transfer(Transaction):
    name = "transfer"
    frames: ClassVar = {"transfer": 4}
    call_isolation = Isolation.READ_COMMITTED

    def __init__(self, branches: range):
        """Take the branches whose customers and tellers they are, counted from 0."""
        super().__init__(branches)
        self._first = branches.start
        self._branches = len(branches)
        self._tellers = self._branches * TELLERS_PER_BRANCH
        self._remote_share = REMOTE_SHARE if self._branches > 1 else 0.0

    def inputs(self, rng: random.Random) -> tuple[int, int, int, int]:
        """Draw (account, teller, branch of the teller, delta).

        15 % of the accounts belong to another branch than the teller, drawn evenly from all others.
        """
        draw = rng.random  # `randint` costs four times as much
        teller = self._first * TELLERS_PER_BRANCH + int(draw() * self._tellers) + 1
        branch = home = (teller - 1) // TELLERS_PER_BRANCH + 1
        if draw() < self._remote_share:
            home = self._first + int(draw() * (self._branches - 1)) + 1
            home += home >= branch
        account = (home - 1) * ACCOUNTS_PER_BRANCH + int(draw() * ACCOUNTS_PER_BRANCH) + 1
        delta = int(draw() * (2 * LARGEST_DELTA + 1)) - LARGEST_DELTA
        return account, teller, branch, delta

    def execute(self, session: Session, inputs: tuple) -> Outcome:
        [(balance,)] = session.call("transfer", inputs)
        if balance is None:
            raise CallFailed(ErrorClass.OTHER, "", f"account {inputs[0]} does not exist: run `stallmark check`")
        return Outcome.COMMITTED


def _share(around: WorkloadContext) -> range:
    return around.part(around.scale["branches"])


WORKLOAD = Workload(
    name="bank",
    version=1,
    schema="bank",
    tables="stallmark.schema.bank.tables",
    conditions=Condition.read_all(__name__),
    package=__name__,
    derived_from="TPC-B",
    cells_by="branches",
    users=UserLoad({Transfer: 1}, share=_share, counted={Transfer: "SELECT COUNT(*) FROM bank.history"}),
)
