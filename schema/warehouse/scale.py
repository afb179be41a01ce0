"""The size of the warehouse by its scale factor, and the program that makes its data."""

import shutil
import sysconfig
from decimal import Decimal

# The size of the warehouse by its scale factor.
#
# Apart from the tables, so that a loader process starts without SQLAlchemy.
#
# Sizes and keys are those of TPC-H's specification 2.17.3; the factors are the ones it allows, and two below 1 for
# trying out. Its largest two, 30,000 and 100,000, are left out: their part and customer keys do not fit in `integer`.


FACTORS = (0.01, 0.1, 1, 10, 30, 100, 300, 1_000, 3_000, 10_000)

REGIONS, NATIONS = 5, 25
# Of a scale factor of 1.
SUPPLIERS, PARTS, CUSTOMERS, ORDERS = 10_000, 200_000, 150_000, 1_500_000
CLERKS = 1_000
SUPPLIERS_OF_A_PART = 4
MOST_LINES = 7  # lines of an order

# How many lineitems the generator makes, which draws 1 to 7 for each order.
LINEITEMS = {
    0.01: 60_175,
    0.1: 600_572,
    1: 6_001_215,
    10: 59_986_052,
    30: 179_998_372,
    100: 600_037_902,
    300: 1_799_989_091,
    1_000: 5_999_989_709,
    3_000: 18_000_048_306,
    10_000: 59_999_994_267,
}

# Orders have the first eight of every 32 keys when they are loaded; refresh sets insert into the gaps.
KEYS_LOADED, KEYS_APART = 8, 32


def count(factor: float, of_one: int) -> int:
    """Return the count at a factor of what there are `of_one` of at factor 1."""
    return int(Decimal(str(factor)) * of_one)


def rows(factor: float) -> dict[str, int]:
    """Return the loaded rows by table name without the schema."""
    return {
        "region": REGIONS,
        "nation": NATIONS,
        "supplier": count(factor, SUPPLIERS),
        "part": count(factor, PARTS),
        "partsupp": count(factor, PARTS * SUPPLIERS_OF_A_PART),
        "customer": count(factor, CUSTOMERS),
        "orders": count(factor, ORDERS),
        "lineitem": LINEITEMS[factor],
        "refresh": 1,
    }


# The path of `tpchgen-cli`, which makes the warehouse's data for its loader and for the oracle of its answers.

GENERATOR = "tpchgen-cli"


def find_generator() -> str | None:
    """Return its path, beside our own programs or where commands are looked for; None if it is not installed."""
    return shutil.which(GENERATOR, path=sysconfig.get_path("scripts")) or shutil.which(GENERATOR)
