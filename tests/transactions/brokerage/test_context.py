"""State that the transactions of a process share: names, prices, and trade ids that nobody else gives out."""

import dataclasses
from datetime import datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.canonical import statement
from support.kept_databases import bring_back

from stallmark.engines.base import Engine
from stallmark.schema.brokerage import TRADE_KEY, price_cents, price_second, symbol
from stallmark.transactions.brokerage import WORKLOAD
from stallmark.transactions.brokerage.context import Context, Order, dollars, open_context
from stallmark.transactions.brokerage.trading import MarketFeed, TradeResult
from stallmark.transactions.workload import Clock, WorkloadContext


@pytest.fixture
def around(engine: Engine, context: Context) -> WorkloadContext:
    scale = {"customers": context.population.customers, "days": context.population.days}
    return WorkloadContext(scale, 1, engine.query, lambda kind, inputs, after_s: None)


@given(st.integers(0, 10**9))
def test_dollars(cents: int) -> None:
    assert round(float(dollars(cents)) * 100) == cents
    assert dollars(cents)[-3] == "."


def test_names_are_in_the_order_of_their_numbers(engine: Engine, context: Context) -> None:
    companies = context.population.companies
    assert context.symbols[0] == symbol(0)
    for security in (0, companies - 1, companies, context.population.securities - 1):
        [(name,)] = engine.query(
            f"SELECT co_name FROM brokerage.security JOIN brokerage.company ON co_id = s_co_id "
            f"WHERE s_symb = '{context.symbols[security]}'"
        )
        assert context.company_names[security if security < companies else security - companies] == name
    assert [len(names) for names in (context.symbols, context.company_names, context.broker_names)] == [685, 500, 10]
    assert (len(context.sector_names), len(context.industry_names)) == (12, 102)
    [(last,)] = engine.query("SELECT b_name FROM brokerage.broker WHERE b_id = 4300000010")
    assert context.broker_names[-1] == last


def test_no_two_processes_give_out_a_trade_id(engine: Engine, clock: Clock, around: WorkloadContext) -> None:
    [(last,)] = engine.query("SELECT MAX(t_id) FROM brokerage.trade")
    floors = [
        open_context(dataclasses.replace(around, process=process, processes=3), TradeResult, MarketFeed, clock)
        for process in range(3)
    ]
    ids = [each.next_trade_id() for _ in range(10) for each in floors]
    assert sorted(ids) == list(range(last + 1, last + 31))
    assert min(ids) > TRADE_KEY


def test_a_process_that_asks_later_has_ids_of_its_own(clock: Clock, around: WorkloadContext) -> None:
    """The last trade is by then another, of one who has begun."""
    given_out: list[int] = []
    last = 0

    def query(sql: str) -> list[tuple]:
        return [(last,)] if "MAX(t_id)" in sql else around.query(sql)

    for process, last in ((1, 1_000), (0, 1_003), (2, 1_004), (3, 1_000)):
        here = dataclasses.replace(around, process=process, processes=4, query=query)
        context = open_context(here, TradeResult, MarketFeed, clock)
        ids = [context.next_trade_id() for _ in range(20)]
        assert last < min(ids) <= last + 4
        given_out += ids
    assert len(set(given_out)) == len(given_out)


def test_prices_are_those_of_the_loaders(context: Context, clock: Clock) -> None:
    for minutes in (0, 3, 777):
        moment: datetime = clock.now() + timedelta(minutes=minutes, milliseconds=123)
        securities = np.arange(context.population.securities)
        expected = price_cents(securities, np.full(len(securities), price_second(moment)))
        assert [context.price(security, moment) for security in securities.tolist()] == expected.tolist()
        assert set(expected.tolist()) <= set(range(2_000, 3_001))


def test_processes_have_markets_of_their_own(clock: Clock, around: WorkloadContext) -> None:
    def answers(process: int) -> list[float]:
        posted: list[float] = []
        here = dataclasses.replace(
            around, process=process, processes=2, post=lambda kind, inputs, after_s: posted.append(after_s)
        )
        context = open_context(here, TradeResult, MarketFeed, clock)
        for trade in range(5):
            context.market.send(Order(trade, 1, 100))
        return posted

    assert answers(0) == answers(0) != answers(1)


# Changes that tests make in the brokerage they share can be undone


CHANGES = {
    "broker": "UPDATE brokerage.broker SET b_num_trades = b_num_trades + 1, b_comm_total = 0 WHERE b_id < 4300000003",
    "address": "UPDATE brokerage.address SET ad_line1 = 'elsewhere', ad_line2 = NULL WHERE ad_id < 4300000100",
    "holding_history": "DELETE FROM brokerage.holding_history",
    "trade_request": (
        "INSERT INTO brokerage.trade_request (tr_t_id, tr_tt_id, tr_s_symb, tr_qty, tr_bid_price, tr_b_id) "
        "SELECT t_id, t_tt_id, t_s_symb, t_qty, t_bid_price, 4300000001 FROM brokerage.trade "
        "WHERE t_id < 200000000000050 AND t_id NOT IN (SELECT tr_t_id FROM brokerage.trade_request)"
    ),
}


def test_changes_are_undone(engine: Engine) -> None:
    tables = {name: WORKLOAD.metadata.tables[f"brokerage.{name}"] for name in CHANGES}

    def rows(schema: str) -> dict[str, tuple]:
        asked = {name: statement(table, engine.dialect) for name, table in tables.items()}
        return {
            name: tuple(engine.query(sql.replace(f"brokerage.{name}", f"{schema}{name}"))[0])
            for name, sql in asked.items()
        }

    built = rows("kept.kept_")
    for change in CHANGES.values():
        engine.execute(change)
    assert all(now != built[name] for name, now in rows("brokerage.").items())
    bring_back(engine, WORKLOAD.metadata)
    assert rows("brokerage.") == built
