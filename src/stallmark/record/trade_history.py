"""The depth of the brokerage's history of trades, from the scale of its database. Everything that shows or judges it
takes it from here."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

WORKLOAD = "brokerage"
TRADES_PER_ACCOUNT = 11.52
"""Trades of an account in one initial trade day, on average: 57,600 by the 5,000 accounts of 1,000 customers."""


@dataclass(frozen=True)
class TradeHistory:
    """The history of trades in a brokerage's database as loaded. `days` are initial trade days."""

    customers: int
    days: float

    @property
    def trades_per_account(self) -> float:
        return round(self.days * TRADES_PER_ACCOUNT, 4)


def trade_history(workload: Any, scale: Any) -> TradeHistory | None:
    """Return the history of a workload's database, or of that of several; None without a brokerage or a known scale."""
    if not isinstance(workload, str) or WORKLOAD not in re.split(r"\W", workload) or not isinstance(scale, Mapping):
        return None
    customers, days = scale.get("customers"), scale.get("days")
    if type(customers) is not int or not (type(days) is int or type(days) is float) or not math.isfinite(days):
        return None
    return TradeHistory(customers, days)
