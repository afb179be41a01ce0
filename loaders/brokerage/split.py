"""The customers and initial trade days that a database of a wanted size is best made of.

Days come first: with a short history the latest trades of an account are most of it, and what is cold in such a
database is hot here. More customers follow when the history has all its days.
"""

from bisect import bisect_left
from functools import cache

from stallmark import format
from stallmark.errors import StallmarkError
from stallmark.loaders.brokerage import counts
from stallmark.loaders.plan import LoadPlan
from stallmark.schema.brokerage.population import UNIT, Population

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
    customers = UNIT * (1 + bisect_left(units, wanted_bytes, key=lambda each: estimated_bytes(each * UNIT, MOST_DAYS)))
    steps = range(LEAST_DAYS * _STEPS, MOST_DAYS * _STEPS)
    step = steps.start + bisect_left(steps, wanted_bytes, key=lambda each: estimated_bytes(customers, each / _STEPS))
    return customers, step / _STEPS


def estimated_bytes(customers: int, days: float) -> int:
    """Return the estimated bytes of the data of such a database on PostgreSQL."""
    from stallmark.schema.brokerage.tables import METADATA  # a loader process starts without SQLAlchemy

    return LoadPlan(counts.groups(Population(customers, days))).estimate(METADATA, "postgresql").data_bytes
