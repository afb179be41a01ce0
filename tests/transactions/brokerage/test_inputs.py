"""The inputs of every transaction that users or a timer start."""

import random

import pytest

from stallmark.engines.base import Session
from stallmark.transactions.brokerage import WORKLOAD
from stallmark.transactions.brokerage.context import Context
from stallmark.transactions.workload import Outcome, Transaction

KINDS = [*WORKLOAD.users.deck, *WORKLOAD.background.timers]
EACH = pytest.mark.parametrize("kind", KINDS, ids=[kind.name for kind in KINDS])


@EACH
def test_they_are_a_function_of_the_generator(context: Context, kind: type[Transaction]) -> None:
    def drawn(seed: int) -> list[tuple]:
        transaction, rng = kind(context), random.Random(seed)
        return [transaction.inputs(rng) for _ in range(300)]

    assert drawn(3) == drawn(3) != drawn(4)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.reads_only], ids=lambda kind: kind.name)
def test_all_that_is_drawn_is_executed(
    session: Session, context: Context, rng: random.Random, kind: type[Transaction]
) -> None:
    transaction = kind(context)
    assert {transaction.execute(session, transaction.inputs(rng)) for _ in range(30)} == {Outcome.COMMITTED}
