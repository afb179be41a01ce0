"""The words for the scale of a database."""

from stallmark.format import exact, number
from stallmark.record.manifest.workload import TradeHistory


def depth(days: float, trades_per_account: float) -> str:
    """Return the depth of a brokerage's history: "40 initial trade days (461 trades per account)"."""
    return f"{exact(days)} initial trade day{'s' * (days != 1)} ({number(trades_per_account)} trades per account)"


def history_line(history: TradeHistory) -> str:
    """Return the depth with the customers that it is of."""
    return f"{history.customers:,} customers, {depth(history.days, history.trades_per_account)}"
