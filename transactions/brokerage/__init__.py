"""The brokerage: customers trade securities through brokers, derived from TPC-E.

Not comparable with published TPC results: other data, other word lists, no audit.
"""

from collections.abc import Mapping
from typing import Any

from stallmark.schema.brokerage import BROKERS, UNIT, Population
from stallmark.transactions.brokerage.context import Context, open_context
from stallmark.transactions.brokerage.corrections import DataMaintenance, TradeCleanup, TradeUpdate
from stallmark.transactions.brokerage.read_only import (
    BrokerVolume,
    CustomerPosition,
    MarketWatch,
    SecurityDetail,
    TradeLookup,
    TradeStatus,
)
from stallmark.transactions.brokerage.trading import MarketFeed, TradeOrder, TradeResult
from stallmark.transactions.workload import Background, Condition, UserLoad, Workload, WorkloadContext


def _numbers(scale: Mapping[str, Any]) -> dict[str, int]:
    population = Population.from_scale(scale)
    return {
        name: getattr(population, name)
        for name in (
            "customers", "units", "accounts", "brokers", "companies", "securities",
            "trades", "unit_trades", "unit_trade_ids", "market_weeks", "quarters", "fewest_watched", "most_watched",
        )
    }  # fmt: skip


# Customers of the population for each Trade-Result per second: what TPC-E scales by.
CUSTOMERS_PER_RATE = 500


# Each Trade-Result updates the row of a broker. With 30 users on 10 brokers, as fast as they could, at most 0.6 % of
# their time was waiting for locks, and at most 1 transaction in 6,000 was tried again.
USERS_PER_BROKER = 3


def _contention(scale: Mapping[str, Any], users: int) -> str | None:
    """Return a sentence if users are many for the brokers, whose rows each Trade-Result updates; else None."""
    brokers = Population.from_scale(scale).brokers
    if users <= USERS_PER_BROKER * brokers:
        return None
    units = -(-users // (USERS_PER_BROKER * BROKERS))
    return (
        f"{users:,} users share {brokers:,} brokers, whose rows each trade updates: they may wait for each other "
        f"more than for storage; use at least {units * UNIT:,} customers."
    )


def _share(around: WorkloadContext) -> Context:
    return open_context(around, TradeResult, MarketFeed)


WORKLOAD = Workload(
    name="brokerage",
    version=3,
    schema="brokerage",
    tables="stallmark.schema.brokerage.tables",
    package=__name__,
    derived_from="TPC-E",
    cells_by="customers",
    conditions=Condition.read_all(__name__),
    numbers=_numbers,
    build_mib_per_s=35,
    users=UserLoad(
        deck={
            TradeOrder: 101,
            TradeStatus: 190,
            MarketWatch: 180,
            SecurityDetail: 140,
            CustomerPosition: 130,
            TradeLookup: 80,
            BrokerVolume: 49,
            TradeUpdate: 20,
        },
        share=_share,
        opening=TradeCleanup,
        primary=TradeResult,
        nominal_rate=lambda scale: scale["customers"] / CUSTOMERS_PER_RATE,
        # As bigint: SQL Server adds integers up to an integer, which 125,000 customers with 300 days are too many for.
        counted={TradeResult: "SELECT SUM(CAST(b_num_trades AS bigint)) FROM brokerage.broker"},
        has_local_customers=True,
        contention=_contention,
    ),
    background=Background(
        followers={TradeResult: (TradeOrder, 100 / 101), MarketFeed: (TradeOrder, 10 / 101)},
        timers={DataMaintenance: 60.0},
        # With half of them the market fell behind 20 users on a busy processor: 0.7 s late, not 0.03.
        sessions_per_user=1.0,
        executed_by="the market emulator",
    ),
)
