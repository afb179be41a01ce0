"""Cells of a load have data of their own; a load without cells draws what it always drew."""

import random
from dataclasses import replace
from functools import cache
from hashlib import sha256
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stallmark.errors import StallmarkError
from stallmark.schema.brokerage import (
    BROKERS,
    KEY,
    UNIT,
    Population,
    address_key_of_customer,
    customer_key,
    owner_of,
    permitted,
    tax_number,
    trade_key,
)
from stallmark.transactions import find_workload
from stallmark.transactions.brokerage.corrections import TABLES, WATCH_LISTS
from stallmark.transactions.mail import BackgroundScan
from stallmark.transactions.workload import Transaction, WorkloadContext

# The first inputs of each transaction as they were before there were cells.
DRAWN = {
    "bank": {"transfer": "9ca805e6e470a9ec"},
    "brokerage": {
        "trade_order": "4e904e41cee54dbd",
        "trade_status": "1b728f491afa7f90",
        "market_watch": "4847350fc4733302",
        "security_detail": "a631cfed20bd3d2d",
        "customer_position": "6e1baf5396e040fd",
        "trade_lookup": "87207f84bbce0ef0",
        "broker_volume": "2d910cefb8ad39a1",
        "trade_update": "641a27d8f7e54ca2",
        "data_maintenance": "ff461edd9391bfe1",
    },
    "mail": {
        "read_message": "b2e6eccc92b9d1ff",
        "deliver_message": "9f39f8dd600c36b0",
        "delete_message": "b2e6eccc92b9d1ff",
        "update_message": "1f3e1dc79bee3531",
        "move_message": "ff6b3126052aff50",
    },
}
SCALES: dict[str, dict[str, Any]] = {
    "bank": {"branches": 5},
    "brokerage": {"customers": 3_000, "days": 1},
    "mail": {"mailboxes": 40, "messages": 100, "compressibility": 2.0},
}
ROWS = {"company": 1_500, "broker": 30, "sector": 12, "industry": 102}
CELLS = st.integers(1, 12).flatmap(lambda cells: st.tuples(st.integers(1, cells), st.just(cells)))


def around(scale: dict[str, Any], cell: int = 1, cells: int = 1) -> WorkloadContext:
    """The context of a database that has the names of as many things as the scale says, each with its number."""
    units = scale.get("customers", UNIT) // UNIT

    def query(sql: str) -> list[tuple]:
        if "MAX(t_id)" in sql:
            return [(200_000_000_000_999,)]
        table = sql.split(".")[1].split()[0]
        rows = ROWS[table] * units // 3 if table in ("company", "broker") else ROWS[table]
        return [(f"{table} {number}",) for number in range(rows)]

    return WorkloadContext(scale, 1, query, lambda *_: None, cell=cell, cells=cells)


def inputs(kind: Transaction, draws: int, seed: int = 7) -> list[tuple]:
    rng = random.Random(seed)
    return [kind.inputs(rng) for _ in range(draws)]


@cache
def mail_context() -> Any:
    return find_workload("mail").users.share(around(SCALES["mail"]))


def mail_of(mailboxes: int, cell: int, cells: int) -> Any:
    """The context of a cell; texts are made once for all."""
    part = around({}, cell, cells).part(mailboxes)
    return replace(mail_context(), mailboxes=range(part.start + 1, part.stop + 1))


@pytest.mark.parametrize("name", DRAWN)
def test_without_cells_the_draws_are_as_they_were(name: str) -> None:
    workload = find_workload(name)
    shared = workload.users.share(around(SCALES[name]))
    drawn = {}
    for kind in (*workload.users.deck, *workload.background.timers):
        if kind.name not in DRAWN[name]:
            continue
        # Bodies are of Faker's words, which a later version of it may change.
        values = [
            [each for each in drawn if name != "mail" or isinstance(each, int)] for drawn in inputs(kind(shared), 300)
        ]
        drawn[kind.name] = sha256(repr(values).encode()).hexdigest()[:16]
    assert drawn == DRAWN[name]


@given(units=st.integers(1, 100_000), cells=st.integers(1, 64))
def test_parts_are_disjoint_cover_all_and_are_alike(units: int, cells: int) -> None:
    contexts = [around({}, cell, cells) for cell in range(1, cells + 1)]
    if units < cells:
        with pytest.raises(StallmarkError, match=f"{cells} cells have {units} units"):
            contexts[-1].part(units)
        return
    parts = [context.part(units) for context in contexts]
    assert (parts[0].start, parts[-1].stop) == (0, units)
    assert all(one.stop == following.start for one, following in pairwise(parts))
    sizes = {len(part) for part in parts}
    assert min(sizes) > 0 and max(sizes) - min(sizes) <= 1


@given(place=CELLS, more=st.integers(0, 30), seed=st.integers())
def test_a_cell_of_the_bank_has_branches_of_its_own(place: tuple[int, int], more: int, seed: int) -> None:
    bank = find_workload("bank")
    here = around({"branches": place[1] + more}, *place)
    part = here.part(place[1] + more)
    [transfer] = (kind(bank.users.share(here)) for kind in bank.users.deck)
    homes = set()
    for account, teller, branch, _ in inputs(transfer, 200, seed):
        assert branch - 1 in part and branch == -(-teller // 10)
        homes.add((-(-account // 100_000) - 1, branch - 1))
    assert {home for home, _ in homes} <= set(part)
    # Some accounts are of another branch, where the cell has one.
    assert any(home != branch for home, branch in homes) == (len(part) > 1)


@given(place=CELLS, more=st.integers(0, 50), seed=st.integers())
def test_a_cell_of_mail_has_mailboxes_of_its_own(place: tuple[int, int], more: int, seed: int) -> None:
    context = mail_of(place[1] + more, *place)
    for kind in find_workload("mail").users.deck:
        assert {drawn.mailbox for drawn in inputs(kind(context), 20, seed)} <= set(context.mailboxes)


def test_the_scan_of_a_cell_goes_round_its_mailboxes() -> None:
    asked = []

    class Session:
        def call(self, frame: str, parameters: tuple, commits: bool) -> list[tuple]:
            asked.append(parameters[:2])
            return [(parameters[1] + 4, 10, 0)] if parameters[1] < 10 else [(None, None, None)]

    share = find_workload("mail").users.share
    scan = BackgroundScan(share(around(SCALES["mail"] | {"mailboxes": 6}, 2, 2)))
    for _ in range(12):
        scan.execute(Session(), ())  # type: ignore[arg-type]
    assert [mailbox for mailbox, _ in asked] == [4] * 3 + [5] * 3 + [6] * 3 + [4] * 3
    assert [message for _, message in asked[:3]] == [1, 6, 11]


@pytest.mark.thorough
@given(place=CELLS, more=st.integers(0, 4), machines=st.integers(0, 3), seed=st.integers())
def test_a_cell_of_the_brokerage_has_customers_and_brokers_of_its_own(
    place: tuple[int, int], more: int, machines: int, seed: int
) -> None:
    units = place[1] + more
    population = Population(units * UNIT, 1.0)
    here = around({"customers": units * UNIT, "days": 1.0}, *place)
    here = replace(here, machine=min(machines, 2), machines=machines, locality=0.5)
    part = here.part(units)
    workload = find_workload("brokerage")
    context = workload.users.share(here)
    drawn = {kind.name: inputs(kind(context), 60, seed) for kind in workload.users.deck}

    def owners(accounts: list[int]) -> set[int]:
        return {int(owner_of(account)) // UNIT for account in accounts}

    by_tax_id = {f"{tax_number(customer):012}": customer for customer in range(population.customers)}
    assert context.customers == range(part.start * UNIT, part.stop * UNIT)
    assert owners([each.account for each in drawn["trade_order"] + drawn["trade_status"]]) <= set(part)
    for order in drawn["trade_order"]:
        # Whoever may trade in an account is said in its data, and may be a customer of another cell.
        may = {int(permitted(1, population, np.array([order.account]), which)[0]) for which in (1, 2)}
        assert order.executor is None or by_tax_id[order.executor] in may | set(context.customers)
    for position in drawn["customer_position"]:
        customer = by_tax_id[position.tax_id] if position.customer is None else position.customer - 1 - KEY
        assert customer in context.customers
    for watch in drawn["market_watch"]:
        assert getattr(watch, "customer", customer_key(part.start * UNIT)) - 1 - KEY in context.customers
        assert owners([watch.account] if hasattr(watch, "account") else []) <= set(part)
    brokers = {f"broker {number}" for number in range(part.start * BROKERS, part.stop * BROKERS)}
    assert {name for volume in drawn["broker_volume"] for name in volume.brokers.split(",")} <= brokers
    first, end = (int(trade_key(population, unit, np.array([0]))[0]) for unit in (part.start, part.stop))
    for past in drawn["trade_lookup"] + drawn["trade_update"]:
        if past.frame.endswith(("by_id", "executor")):
            assert all(first <= int(trade) < end for trade in past.parameters[0].split(","))
        elif past.frame.endswith(("by_account", "holdings", "cash_type")):
            assert owners([past.parameters[0]]) <= set(part)
    maintained(context, population, seed)


def maintained(context: Any, population: Population, seed: int) -> None:
    """Assert that maintenance changes rows of the cell's customers, or of the market that all cells share."""
    [maintenance] = (kind(context) for kind in find_workload("brokerage").background.timers)
    addresses = range(
        address_key_of_customer(population, context.customers.start),
        address_key_of_customer(population, context.customers.stop),
    )
    keys = range(customer_key(context.customers.start), customer_key(context.customers.stop))
    found = {}
    for table, key, symbol, _ in inputs(maintenance, 4 * len(TABLES), seed):
        found[table] = symbol
        if table == "account_permission":
            assert int(owner_of(key)) in context.customers
        elif table == "address":
            assert key in addresses
        elif table in ("customer", "customer_taxrate", "taxrate"):
            assert key in keys
        elif table == "watch_item":
            assert key in keys and key + WATCH_LISTS - 1 in keys
    assert set(found) == set(TABLES)
