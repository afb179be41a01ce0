"""Customer-Position: the worth of a customer's accounts, and the history of the last trades of one of them."""

import random
from collections.abc import Iterator
from typing import ClassVar, NamedTuple

from stallmark.engines.base import Isolation, Session
from stallmark.errors import CallFailed, ErrorClass
from stallmark.schema.brokerage.population import MOST_ACCOUNTS, customer_key, tax_id
from stallmark.transactions.brokerage.context import Choice, Context
from stallmark.transactions.workload import Outcome, Transaction

BY_TAX_ID_SHARE = 0.5
HISTORY_SHARE = 0.5


class Position(NamedTuple):
    """The inputs. The customer is named by either of the first two. `history_of` is one of the accounts in the order of
    their worth, counted from 0 and round again; None asks for no history."""

    customer: int | None
    tax_id: str | None
    history_of: int | None


class CustomerPosition(Transaction):
    """The transaction. It succeeds as well when an account has not traded yet."""

    name = "customer_position"
    frames: ClassVar = {"customer_position_accounts": 2, "customer_position_history": 1}
    limit_s = 3.0
    reads_only = True

    def __init__(self, context: Context):
        super().__init__(context)
        self._choices: Iterator[Choice] | None = None

    def inputs(self, rng: random.Random) -> Position:
        draw = rng.random
        self._choices = self._choices or self.shared.choices(rng)
        customer, account, _ = next(self._choices)
        by_tax_id = draw() < BY_TAX_ID_SHARE
        return Position(
            None if by_tax_id else customer_key(customer),
            tax_id(customer) if by_tax_id else None,
            # The number of a drawn account, so that each place is as likely.
            (account - 1) % MOST_ACCOUNTS if draw() < HISTORY_SHARE else None,
        )

    def execute(self, session: Session, inputs: tuple) -> Outcome:
        customer, tax, history_of = inputs
        with session.transaction(Isolation.READ_COMMITTED):
            accounts = session.call("customer_position_accounts", (customer, tax), last=history_of is None)  # frame 1
            if not accounts:
                who = f"{customer}" if customer else f"with tax id {tax}"
                raise CallFailed(ErrorClass.OTHER, "", f"customer {who} does not exist: run `stallmark check`")
            if history_of is not None:
                account = accounts[history_of % len(accounts)][0]
                session.finish("customer_position_history", (account,))  # frame 2
        return Outcome.COMMITTED  # without history this is frame 3
