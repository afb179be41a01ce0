"""The transactions of the brokerage that correct what is there: Trade-Update, Data-Maintenance and Trade-Cleanup."""

import random
from collections.abc import Callable, Mapping
from typing import ClassVar, NamedTuple

import numpy as np

from stallmark.engines.base import Isolation, Session
from stallmark.errors import CallFailed, ErrorClass
from stallmark.schema.brokerage import address_key_of_customer, company_key, customer_key, trade_key
from stallmark.transactions.brokerage.context import Context, FrameCall, PastTrades, ask
from stallmark.transactions.workload import Opening, Outcome, Transaction, as_text

EXECUTOR = "trade_update_executor"
CASH_TYPE = "trade_update_cash_type"
CASH_NAME = "trade_update_cash_name"

# Cumulative shares of the transactions; the rest changes names of cash transactions.
_EXECUTOR, _CASH_TYPE = 0.33, 0.66


class TradeUpdate(Transaction):
    """Trade-Update: small corrections to past trades, which are read as well."""

    name = "trade_update"
    frames: ClassVar = {EXECUTOR: 1, CASH_TYPE: 2, CASH_NAME: 2}
    limit_s = 3.0

    def __init__(self, context: Context):
        super().__init__(context)
        self._past: PastTrades | None = None

    def inputs(self, rng: random.Random) -> FrameCall:
        past = self._past = self._past or PastTrades(self.shared, rng)
        draw = rng.random()
        if draw < _EXECUTOR:
            return FrameCall.by_id(EXECUTOR, past.some())
        if draw < _CASH_TYPE:
            return FrameCall(CASH_TYPE, past.account_time())
        return FrameCall(CASH_NAME, past.security_time())

    def execute(self, session: Session, inputs: tuple) -> Outcome:
        with session.transaction(Isolation.REPEATABLE_READ):
            asked = FrameCall(*inputs)
            if asked.expected:
                ask(session, asked)  # trades that are missing undo it
            else:
                session.finish(asked.frame, asked.parameters)
        return Outcome.COMMITTED


# A watch list is searched for among so many consecutive ones: not each has what can be exchanged.
WATCH_LISTS = 10

_DAYS = 28  # days that every month has


class Correction(NamedTuple):
    """The inputs. A row is found by `key`, or by `symbol` and `day`."""

    table: str
    key: int | None = None  # account, address, company or customer that has the row
    symbol: str | None = None  # security that has the row
    day: int | None = None  # day of the month


class DataMaintenance(Transaction):
    """Data-Maintenance: a small correction once a minute, in one of twelve tables in turn; the next correction there
    undoes it."""

    name = "data_maintenance"
    frames: ClassVar = {"data_maintenance_tweak": 4}
    call_isolation = Isolation.READ_COMMITTED
    shared: Context

    def inputs(self, rng: random.Random) -> Correction:
        """Draw inputs for the next table in rotation, which all sessions go through together."""
        table = TABLES[self.shared.next_round() % len(TABLES)]
        return _DRAWN[table](self.shared, rng, table)

    def execute(self, session: Session, inputs: tuple) -> Outcome:
        [(changed,)] = session.call("data_maintenance_tweak", inputs)
        if not changed:
            raise CallFailed(ErrorClass.OTHER, "", f"there is nothing to maintain for {inputs}: run `stallmark check`")
        return Outcome.COMMITTED


def _account(context: Context, rng: random.Random, table: str) -> Correction:
    return Correction(table, next(context.choices(rng)).account)


def _address(context: Context, rng: random.Random, table: str) -> Correction:
    return Correction(table, address_key_of_customer(context.population, rng.choice(context.customers)))


def _company(context: Context, rng: random.Random, table: str) -> Correction:
    return Correction(table, company_key(rng.randrange(context.population.companies)))


def _customer(context: Context, rng: random.Random, table: str) -> Correction:
    return Correction(table, customer_key(rng.choice(context.customers)))


def _watch_lists(context: Context, rng: random.Random, table: str) -> Correction:
    return Correction(table, customer_key(rng.choice(context.customers[: 1 - WATCH_LISTS])))


def _security(context: Context, rng: random.Random, table: str) -> Correction:
    return Correction(table, symbol=rng.choice(context.symbols))


def _security_and_day(context: Context, rng: random.Random, table: str) -> Correction:
    return Correction(table, symbol=rng.choice(context.symbols), day=1 + rng.randrange(_DAYS))


# By table, in the order of the rotation.
_DRAWN: Mapping[str, Callable[[Context, random.Random, str], Correction]] = {
    "account_permission": _account,
    "address": _address,
    "company": _company,
    "customer": _customer,
    "customer_taxrate": _customer,
    "daily_market": _security_and_day,
    "exchange": _security,
    "financial": _company,
    "news_item": _company,
    "security": _security,
    "taxrate": _customer,
    "watch_item": _watch_lists,
}
TABLES = tuple(_DRAWN)


class FirstTrade(NamedTuple):
    id: int
    """The first id that a trade of a run may have: all that were loaded have ended."""


class TradeCleanup(Opening):
    """Trade-Cleanup: it cancels what an earlier run has left over, before the next one begins."""

    name = "trade_cleanup"
    frames: ClassVar = {"trade_cleanup_cancel": 2}
    call_isolation = Isolation.READ_COMMITTED
    shared: Context

    def inputs(self, rng: random.Random) -> FirstTrade:
        """Return the inputs; nothing is drawn."""
        loaded = self.shared.population
        last_trade = trade_key(loaded, loaded.units - 1, np.array([loaded.unit_trades - 1]))
        return FirstTrade(int(last_trade[0]) + 1)

    def execute(self, session: Session, inputs: tuple) -> Outcome:
        now = as_text(self.shared.clock.now())
        [(waited, unanswered)] = session.call("trade_cleanup_cancel", (*inputs, now))
        self.done = {"limit orders cancelled": waited, "unanswered orders cancelled": unanswered}
        return Outcome.COMMITTED
