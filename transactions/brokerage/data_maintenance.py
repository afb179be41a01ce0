"""Data-Maintenance: a small correction once a minute, in one of twelve tables in turn; the next correction there
undoes it."""

import random
from collections.abc import Callable, Mapping
from typing import ClassVar, NamedTuple

from stallmark.engines.base import Isolation, Session
from stallmark.errors import CallFailed, ErrorClass
from stallmark.schema.brokerage.population import address_key_of_customer, company_key, customer_key
from stallmark.transactions.brokerage.context import Context
from stallmark.transactions.workload import Outcome, Transaction

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
    name = "data_maintenance"
    frames: ClassVar = {"data_maintenance_tweak": 4}
    call_isolation = Isolation.READ_COMMITTED

    def __init__(self, context: Context):
        super().__init__(context)
        self._context = context

    def inputs(self, rng: random.Random) -> Correction:
        """Draw inputs for the next table in rotation, which all sessions go through together."""
        table = TABLES[self._context.next_round() % len(TABLES)]
        return _DRAWN[table](self._context, rng, table)

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
