"""The row counts of the tables: of a load unit, and of a database of a wanted size."""

from bisect import bisect_left
from collections.abc import Callable, Mapping
from functools import cache
from typing import TypeVar

from stallmark import format
from stallmark.errors import StallmarkError
from stallmark.loaders import LoadPlan, TableGroup
from stallmark.schema.brokerage import (
    BROKERS,
    COMPANIES,
    EXCHANGES,
    KEY,
    MOST_ACCOUNTS,
    SECURITIES,
    TRADE_KEY,
    UNIT,
    Population,
    address_key_of_company,
    address_key_of_customer,
    symbol,
)

# The row counts of the tables, and the rows of one load unit.
#
# Most counts are exact. Those that depend on chance (permissions, watch items, what is held after the initial trades)
# are what to expect, for the disk estimate and for progress; what holdings come to was fitted to simulations of 0.01 to
# 300 days.


T = TypeVar("T")

WEEK_DAYS = 5
COMPETITORS, NEWS = 3, 2  # rows per company
FIXED_ROWS = {
    "charge": 15,
    "commission_rate": 240,
    "exchange": EXCHANGES,
    "industry": 102,
    "sector": 12,
    "status_type": 5,
    "taxrate": 320,
    "trade_type": 5,
    "zip_code": 14_741,
}
PERMISSIONS = 1.42  # average permissions of an account


def rows(population: Population) -> dict[str, dict[str, int]]:
    """Return row counts by group and table."""
    p, days = population, population.days
    return {
        "trade": {
            "trade": p.trades,
            "trade_history": round(2.4 * p.trades),
            "settlement": p.trades,
            "cash_transaction": round(0.92 * p.trades),
            "holding_history": round((1 + 0.34 * days / (days + 2.4)) * p.trades),
            "holding": round(min(1, 0.68 * days**-0.43) * p.trades),
            "holding_summary": min(p.trades, round(9.956 * days / (days + 0.74) * p.accounts)),
            "customer_account": p.accounts,
            "broker": p.brokers,
        },
        "market": {
            "address": p.companies,
            "company": p.companies,
            "company_competitor": COMPETITORS * p.companies,
            "security": p.securities,
            "daily_market": WEEK_DAYS * p.market_weeks * p.securities,
            "financial": p.quarters * p.companies,
            "last_trade": p.securities,
            "news_item": NEWS * p.companies,
            "news_xref": NEWS * p.companies,
        },
        "customers": {
            "address": p.customers,
            "customer": p.customers,
            "customer_taxrate": 2 * p.customers,
            "account_permission": round(PERMISSIONS * p.accounts),
            "watch_list": p.customers,
            "watch_item": (p.fewest_watched + p.most_watched) // 2 * p.customers,
        },
        "fixed": {"address": EXCHANGES, **FIXED_ROWS},
    }


def groups(population: Population) -> list[TableGroup]:
    """Return the groups of the ledger: a batch for each load unit, or one for tables that all units share."""
    articles = {"market": {"news_item": population.longest_article // 2}}
    return [
        TableGroup(
            group,
            1 if group == "fixed" else population.units,
            _full_names(counts),
            _full_names(articles.get(group, {})),
        )
        for group, counts in rows(population).items()
    ]


def predicates(population: Population, group: str, load_unit: int) -> dict[str, str]:
    """Return the SQL condition that selects exactly the rows of one batch, by full table name."""
    return _full_names(_OF_GROUP[group](population, load_unit))


def _full_names(by_table: Mapping[str, T]) -> dict[str, T]:
    return {f"brokerage.{table}": value for table, value in by_table.items()}


def _trade_conditions(population: Population, unit: int) -> dict[str, str]:
    ids = population.unit_trade_ids
    trades = _sql_range(TRADE_KEY + unit * ids + 1, ids)
    accounts = _sql_range((KEY + unit * UNIT) * MOST_ACCOUNTS + 1, UNIT * MOST_ACCOUNTS)
    by_trade = {
        "trade": "t_id",
        "trade_history": "th_t_id",
        "settlement": "se_t_id",
        "cash_transaction": "ct_t_id",
        "holding_history": "hh_t_id",
        "holding": "h_t_id",
    }
    return {table: f"{key} {trades}" for table, key in by_trade.items()} | {
        "holding_summary": f"hs_ca_id {accounts}",
        "customer_account": f"ca_id {accounts}",
        "broker": f"b_id {_sql_range(KEY + unit * BROKERS + 1, BROKERS)}",
    }


def _market_conditions(population: Population, unit: int) -> dict[str, str]:
    companies = _sql_range(KEY + unit * COMPANIES + 1, COMPANIES)
    numbers = range(unit * SECURITIES, (unit + 1) * SECURITIES)
    symbols = "IN (" + ", ".join(f"'{symbol(number)}'" for number in numbers) + ")"
    return {
        "address": f"ad_id {_sql_range(address_key_of_company(unit * COMPANIES), COMPANIES)}",
        "company": f"co_id {companies}",
        "company_competitor": f"cp_co_id {companies}",
        "security": f"s_co_id {companies}",
        "daily_market": f"dm_s_symb {symbols}",
        "financial": f"fi_co_id {companies}",
        "last_trade": f"lt_s_symb {symbols}",
        "news_item": f"ni_id {_sql_range(KEY + unit * COMPANIES * NEWS + 1, COMPANIES * NEWS)}",
        "news_xref": f"nx_co_id {companies}",
    }


def _customer_conditions(population: Population, unit: int) -> dict[str, str]:
    customers = _sql_range(KEY + unit * UNIT + 1, UNIT)
    accounts = _sql_range((KEY + unit * UNIT) * MOST_ACCOUNTS + 1, UNIT * MOST_ACCOUNTS)
    return {
        "address": f"ad_id {_sql_range(address_key_of_customer(population, unit * UNIT), UNIT)}",
        "customer": f"c_id {customers}",
        "customer_taxrate": f"cx_c_id {customers}",
        "account_permission": f"ap_ca_id {accounts}",
        "watch_list": f"wl_c_id {customers}",
        "watch_item": f"wi_wl_id {customers}",
    }


def _fixed_conditions(population: Population, unit: int) -> dict[str, str]:
    return {"address": f"ad_id {_sql_range(KEY + 1, EXCHANGES)}", **dict.fromkeys(FIXED_ROWS, "1 = 1")}


def _sql_range(first: int, count: int) -> str:
    return f"BETWEEN {first} AND {first + count - 1}"


_OF_GROUP: Mapping[str, Callable[[Population, int], dict[str, str]]] = {
    "trade": _trade_conditions,
    "market": _market_conditions,
    "customers": _customer_conditions,
    "fixed": _fixed_conditions,
}


# The customers and initial trade days that a database of a wanted size is best made of.
#
# Days come first: with a short history the latest trades of an account are most of it, and what is cold in such a
# database is hot here. More customers follow when the history has all its days.


MOST_CUSTOMERS, MOST_DAYS = 10_000_000, 300
LEAST_DAYS = 2  # a tenth of a day is more than a twentieth of a smaller database
_STEPS = 10
"""In one day: finer steps are lost in the estimate."""


@cache
def split(wanted_bytes: int) -> tuple[int, float]:
    """Return customers and days of a database of about that size on PostgreSQL; raise StallmarkError if it is too small
    or too large."""
    smallest, largest = estimated_bytes(UNIT, LEAST_DAYS), estimated_bytes(MOST_CUSTOMERS, MOST_DAYS)
    if not smallest <= wanted_bytes <= largest:
        raise StallmarkError(
            f"A brokerage of {format.size(wanted_bytes)} cannot be: it takes from {format.size(smallest)} to "
            f"{format.size(largest)}."
        )
    units = range(1, MOST_CUSTOMERS // UNIT)
    customers = UNIT * (
        1 + bisect_left(units, wanted_bytes, key=lambda unit_count: estimated_bytes(unit_count * UNIT, MOST_DAYS))
    )
    steps = range(LEAST_DAYS * _STEPS, MOST_DAYS * _STEPS)
    step = steps.start + bisect_left(steps, wanted_bytes, key=lambda step: estimated_bytes(customers, step / _STEPS))
    return customers, step / _STEPS


def estimated_bytes(customers: int, days: float) -> int:
    """Return the estimated bytes of the data of such a database on PostgreSQL."""
    from stallmark.schema.brokerage.tables import METADATA  # a loader process starts without SQLAlchemy

    return LoadPlan(groups(Population(customers, days))).estimate(METADATA, "postgresql").data_bytes
