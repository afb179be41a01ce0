"""Broker-Volume on every engine: the worth of the orders that wait, by broker."""

import random
from collections import Counter
from dataclasses import replace
from decimal import Decimal

import pytest
from support.answers import values
from support.undone import undone

from stallmark.engines.base import Engine, Session
from stallmark.transactions.brokerage.broker_volume import BrokerVolume, Volume
from stallmark.transactions.brokerage.context import Context

WAIT = "FROM brokerage.trade JOIN brokerage.customer_account ON ca_id = t_ca_id WHERE t_id < 200000000000300"
ALL_WAIT = (
    "INSERT INTO brokerage.trade_request (tr_t_id, tr_tt_id, tr_s_symb, tr_qty, tr_bid_price, tr_b_id) "
    f"SELECT t_id, 'TLB', t_s_symb, t_qty, t_bid_price, ca_b_id {WAIT}"
)


@pytest.fixture
def waiting(engine: Engine) -> list[tuple]:
    """Return what `ALL_WAIT` has wait: (name of broker, name of sector, quantity, price), each table read alone."""
    sectors = dict(engine.query("SELECT sc_id, sc_name FROM brokerage.sector"))
    industries = dict(engine.query("SELECT in_id, in_sc_id FROM brokerage.industry"))
    companies = dict(engine.query("SELECT co_id, co_in_id FROM brokerage.company"))
    securities = dict(engine.query("SELECT s_symb, s_co_id FROM brokerage.security"))
    brokers = dict(engine.query("SELECT b_id, b_name FROM brokerage.broker"))
    return [
        (brokers[broker], sectors[industries[companies[securities[symbol]]]], quantity, price)
        for broker, symbol, quantity, price in engine.query(f"SELECT ca_b_id, t_s_symb, t_qty, t_bid_price {WAIT}")
    ]


def expected(waiting: list[tuple], brokers: list[str], sector: str) -> list[tuple[str, Decimal]]:
    volumes: Counter = Counter()
    for broker, of_sector, quantity, price in waiting:
        if broker in brokers and of_sector == sector:
            volumes[broker] += quantity * price
    return volumes.most_common()


def test_the_worth_of_what_waits(session: Session, context: Context, waiting: list[tuple]) -> None:
    assert {sector for _, sector, *_ in waiting} == set(context.sector_names)
    with undone(session, "DELETE FROM brokerage.trade_request", ALL_WAIT):
        for sector in context.sector_names[:4]:
            for brokers in (context.broker_names, context.broker_names[2:5]):
                answer = session.call("broker_volume", (",".join(brokers), sector))
                volumes = expected(waiting, brokers, sector)
                assert {(name, str(volume)) for name, volume in answer} == {(n, str(v)) for n, v in volumes}
                assert values(answer)[1::2] == [str(volume) for _, volume in volumes]
                assert volumes


def test_nothing_waits(session: Session, context: Context, rng: random.Random) -> None:
    volume = BrokerVolume(context)
    with undone(session, "DELETE FROM brokerage.trade_request"):
        assert session.call("broker_volume", volume.inputs(rng)) == []


def test_as_many_brokers_as_there_are(context: Context, rng: random.Random) -> None:
    volume = BrokerVolume(context)
    drawn = [volume.inputs(rng) for _ in range(300)]
    assert len(context.broker_names) == 10
    assert all(sorted(each.brokers.split(",")) == sorted(context.broker_names) for each in drawn)
    assert {each.sector for each in drawn} == set(context.sector_names)


def test_twenty_to_forty_of_many_brokers(context: Context, rng: random.Random) -> None:
    names = [f"Broker {number}" for number in range(100)]
    volume = BrokerVolume(replace(context, broker_names=names))
    drawn: list[Volume] = [volume.inputs(rng) for _ in range(4_000)]
    chosen = [each.brokers.split(",") for each in drawn]
    counts = Counter(map(len, chosen))
    assert set(counts) == set(range(20, 41)) and min(counts.values()) > 120
    assert all(len(set(each)) == len(each) for each in chosen)
    each_broker = Counter(name for each in chosen for name in each)
    assert set(each_broker) == set(names)
    assert all(count / 4_000 == pytest.approx(0.3, abs=0.05) for count in each_broker.values())
