"""Numbers in sentences: three significant digits, thousands separated, units spelled out."""

import math
from collections.abc import Sequence

import humanize


def number(value: float) -> str:
    if value == 0 or not math.isfinite(value):
        return f"{value:.0f}"
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:,.{min(digits, 3)}f}"


def per_transaction(value: float) -> str:
    return f"{value:.1f}" if value >= 0.1 or value == 0 else f"{value:.2g}"


def per_second(value: float) -> str:
    return f"{number(value)}/s"


def percent(share: float) -> str:
    """Whole percents, and two digits below ten where a whole one would hide half of the value."""
    if 0 < share < 0.01:
        return "under 1 %"
    return f"{share * 100:.0f} %"


def size(size_bytes: float) -> str:
    return humanize.naturalsize(size_bytes, binary=True, format="%.4g")


def factor(ratio: float) -> str:
    return f"{ratio:.2g}×" if ratio < 10 else f"{ratio:,.0f}×"


def listed(names: Sequence[str]) -> str:
    """ "a", "a and b", "a, b and c"."""
    return humanize.natural_list(list(names)).replace(", and ", " and ")


def spoken(transaction: str) -> str:
    """A transaction type as people write it: "trade_result" is Trade-Result; a name of one word stays."""
    return "-".join(part.capitalize() for part in transaction.split("_")) if "_" in transaction else transaction


def plural(transaction: str) -> str:
    name = spoken(transaction)
    return f"{name}es" if name.endswith("s") else f"{name}s"


def signed(share: float) -> str:
    """A change: "+3.1 %", "−18 %"; a minus sign, not a hyphen."""
    size_percent = abs(share) * 100
    text = f"{size_percent:.1f}" if size_percent < 9.95 else f"{size_percent:,.0f}"
    return f"{'−' if share < 0 and float(text.replace(',', '')) else '+'}{text} %"


def by(share: float) -> str:
    """A change as a verb: "rose by 18 %", "fell by 3.1 %"."""
    return f"{'fell' if share < 0 else 'rose'} by {signed(abs(share)).removeprefix('+')}"
