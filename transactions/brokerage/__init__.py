"""The brokerage: customers trade securities through brokers, derived from TPC-E.

Not comparable with published TPC results: other data, other word lists, no audit.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

from stallmark.schema.brokerage.population import BROKERS, UNIT, Population
from stallmark.transactions.brokerage.broker_volume import BrokerVolume
from stallmark.transactions.brokerage.context import Context, open_context
from stallmark.transactions.brokerage.customer_position import CustomerPosition
from stallmark.transactions.brokerage.data_maintenance import DataMaintenance
from stallmark.transactions.brokerage.market_feed import MarketFeed
from stallmark.transactions.brokerage.market_watch import MarketWatch
from stallmark.transactions.brokerage.security_detail import SecurityDetail
from stallmark.transactions.brokerage.trade_cleanup import TradeCleanup
from stallmark.transactions.brokerage.trade_lookup import TradeLookup
from stallmark.transactions.brokerage.trade_order import TradeOrder
from stallmark.transactions.brokerage.trade_result import TradeResult
from stallmark.transactions.brokerage.trade_status import TradeStatus
from stallmark.transactions.brokerage.trade_update import TradeUpdate
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


_condition = partial(Condition.from_file, __name__)

CONDITIONS = (
    _condition("broker_totals", "a broker's totals are those of the completed trades", "scan"),
    _condition("holding_summary", "an account's holdings add up, and so do their changes", "scan"),
    _condition("holding", "a holding agrees with the trade that began it", "scan"),
    _condition("holding_history", "a holding's history leads to what is left of it", "scan"),
    _condition("holding_changes", "holdings begin with a trade, and others reduce them", "scan"),
    _condition("trade_lifo", "the newest or the oldest holding is closed first", "scan", fresh_only=True),
    _condition("trade_quantity", "a trade changes holdings by the shares traded", "scan"),
    _condition("settlement", "completed trades are settled with what they amount to", "scan"),
    _condition("settlement_due", "trades are settled two working days later", "scan", fresh_only=True),
    _condition("cash_transaction", "completed cash trades are paid as they are settled", "scan"),
    _condition("account_balance", "an account's balance is the sum of what was paid", "scan"),
    _condition("charge_commission", "charge and commission follow from the price list", "scan"),
    _condition("tax", "tax follows from what a trade earned", "scan", fresh_only=True),
    _condition("trade_history", "a trade's history has the states it has been in", "scan"),
    _condition("trade_order", "trades and their states follow each other in time", "scan", fresh_only=True),
    _condition("trade_request", "pending trades, and no others, have a request", "scan"),
    _condition("loaded_trades", "as many trades as the scale says, all completed", "scan", fresh_only=True),
    _condition("trade_ids", "trade ids lie in their load unit's range", "scan", fresh_only=True),
    _condition("loaded_names", "trades are ordered and paid under their names", "scan", fresh_only=True),
    _condition("last_trade", "last trades are at the end of the initial days", "scan", fresh_only=True),
    _condition("daily_market", "every security has the days of its market", "scan"),
    _condition("security_year", "a security's year is that of its market", "scan"),
    _condition("rows", "other tables have the rows that the scale says", "cheap"),
    _condition("types", "states and types of trades are as known", "cheap"),
    _condition("active", "all are active, securities named after companies", "cheap"),
    _condition("customers", "a customer has one watch list and two tax rates", "cheap"),
    _condition("tiers", "tiers have the customers and accounts they should", "cheap"),
    _condition("accounts", "a customer has the accounts that the tier allows", "cheap"),
    _condition("account_permission", "one to three may trade, the owner among them", "cheap"),
    _condition("watch_items", "a watch list has the securities that it should", "cheap"),
    _condition("addresses", "an address belongs to one who lives there", "cheap"),
    _condition("companies", "a company has its figures, competitors and news", "cheap"),
    _condition("financial", "a company's figures follow from each other", "cheap"),
    _condition("industries", "industries belong to sectors, companies to industries", "cheap"),
    _condition("news", "a news item says something about one company", "cheap"),
    _condition("securities", "securities have a last trade, a company, an exchange", "cheap"),
    _condition("trade_shares", "trades are of all kinds in their shares", "scan", statistical=True, fresh_only=True),
    _condition("history_per_trade", "a trade changes 1 to 1.36 holdings", "scan", statistical=True, fresh_only=True),
    _condition(
        "account_shares", "permissions and tax status in their shares", "cheap", statistical=True, fresh_only=True
    ),
)

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
    cells_by="customers",
    conditions=CONDITIONS,
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
