"""The warehouse database, derived from TPC-H: its size by its scale factor, the program that makes its data, and its
refresh sets.

Apart from the tables, so that a loader process starts without SQLAlchemy.
"""

import shutil
import sysconfig
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache

import numpy as np
import pyarrow as pa

from stallmark.errors import StallmarkError
from stallmark.schema.draw import Ints, whole
from stallmark.schema.words import chosen, decimals

# The size of the warehouse by its scale factor.
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


# Refresh sets: the orders that come and the orders that go, by the number of the set.
#
# Derived from TPC-H's refresh functions RF1 and RF2: as many orders, its sparse keys, and the rules of specification
# 2.17.3 (4.2.3) for every column. The rows are ours, and not those that its own generator would make.
#
# A key consists of the place of its order and the octet within 32 keys, of which the load uses the first eight. A set
# inserts at its places into the next octet what it then deletes there from the octet before it, so the number of orders
# does not change. After 1,000 sets all places had their turn, after 3,000 all octets.
#
# All functions are pure. A set is made in memory: about 1.5 MB for each 1 of the scale factor.

# Comments of the refresh sets: pieces of one English text, cut anywhere, as the loaded comments are.
#
# Words and their shares are those of the loaded ones, so that a search for `special … requests` finds about as many.


_SENTENCES, _PIECES = 8_192, 65_536

# Common words stand there as often as they are more common than the others.
_ADVERBS = ("slyly", "furiously", "carefully", "blithely", "quickly", "fluffily", "evenly", "daringly")
_ADJECTIVES = (
    *("regular", "final", "ironic") * 6,
    *("special",) * 3,
    *("even", "express", "bold", "special", "unusual", "pending") * 3,
    *("silent", "stealthy", "brave", "ruthless", "enticing", "thin", "close", "dogged", "idle", "busy", "quiet"),
)
_NOUNS = (
    *("deposits", "accounts", "packages", "requests") * 4,
    *("pinto beans", "foxes", "ideas", "instructions", "theodolites") * 2,
    *("platelets", "excuses", "asymptotes", "dependencies", "dolphins", "courts", "warthogs", "sentiments"),
)
_VERBS = (
    *("haggle", "sleep", "wake", "are", "cajole") * 3,
    *("nag", "use", "boost", "affix", "detect", "integrate", "serve", "print", "maintain", "doze", "believe"),
)
_PREPOSITIONS = ("after", "above", "about", "across", "according to", "along", "against", "among", "alongside of")
_ENDS = (". ", ". ", ". ", "; ", "? ", "! ")
_ORDERS = (  # orders of the words in a sentence
    (_ADJECTIVES, _NOUNS, _VERBS, _ADVERBS),
    (_ADVERBS, _ADJECTIVES, _NOUNS, _VERBS),
    (_NOUNS, _VERBS, _ADVERBS, _PREPOSITIONS, ("the",), _ADJECTIVES, _NOUNS),
    (_ADVERBS, _ADJECTIVES, _NOUNS, _VERBS, _PREPOSITIONS, ("the",), _NOUNS),
)


def comment_texts(seed: int, name: str, numbers: Ints, shortest: int, longest: int) -> pa.StringArray:
    """Return a text for each of `numbers`, of evenly spread lengths. The column's `name` makes the texts differ."""
    return chosen(_pieces(shortest, longest), whole(seed, name, numbers, _PIECES))


@lru_cache
def _pieces(shortest: int, longest: int) -> pa.StringArray:
    text, numbers = _text(), np.arange(_PIECES)
    starts = whole(0, f"start of {longest}", numbers, len(text) - longest)
    lengths = shortest + whole(0, f"length to {longest}", numbers, longest - shortest + 1)
    return pa.array([text[s : s + n] for s, n in zip(starts.tolist(), lengths.tolist(), strict=True)])


@lru_cache
def _text() -> str:
    orders = whole(0, "order of words", np.arange(_SENTENCES), len(_ORDERS)).tolist()
    draws = iter(whole(0, "word", np.arange(_SENTENCES * 8), 2**31).tolist())
    sentences = []
    for order in orders:
        words = [kind[next(draws) % len(kind)] for kind in _ORDERS[order]]
        sentences.append(" ".join(words) + _ENDS[next(draws) % len(_ENDS)])
    return "".join(sentences)


ORDERS_OF_A_SET = 1_500  # orders at a scale factor of 1

FIRST_DATE = np.datetime64("1992-01-01")
CURRENT_DATE = np.datetime64("1995-06-17")  # lineitems shipped or received until then are final
ORDER_DAYS = 2_406  # the last day of an order is 1998-08-02

PRIORITIES = ("1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW")
INSTRUCTIONS = ("DELIVER IN PERSON", "COLLECT COD", "NONE", "TAKE BACK RETURN")
SHIP_MODES = ("REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB")

_SEED = 1
_ORDER_COMMENT, _LINE_COMMENT = (19, 78), (10, 43)  # characters


def most_sets(factor: float) -> int:
    """Return the number of refresh sets until the gaps between the keys are full."""
    return (KEYS_APART // KEYS_LOADED - 1) * _sets_of_an_octet(factor)


def inserts(factor: float, number: int) -> tuple[pa.Table, pa.Table]:
    """Return the rows of orders and of lineitem that set `number` (from 1) inserts, in the order of their keys.

    Raises StallmarkError beyond `most_sets`.
    """
    octet, places = _octet_and_places(factor, number)
    # A number for each order of all sets, by which everything about it is drawn.
    serial = np.arange(len(places), dtype=np.int64) + (number - 1) * len(places)
    lines = _lines(factor, serial)
    starts = np.flatnonzero(lines.number == 0)
    date = FIRST_DATE + whole(_SEED, "order date", serial, ORDER_DAYS)
    orders = _orders(factor, serial, order_keys(places, octet + 1), date, lines, starts)
    return orders, _lineitem(orders, lines)


def deletes(factor: float, number: int) -> Ints:
    """Return the keys of the orders that set `number` (from 1) deletes with their lineitems, ascending.

    Raises StallmarkError beyond `most_sets`.
    """
    octet, places = _octet_and_places(factor, number)
    return order_keys(places, octet)


def order_keys(places: Ints, octet: int) -> Ints:
    """Return keys of orders by their places, counted from 1; those of octet 0 are loaded."""
    block, within = np.divmod(places, KEYS_LOADED)
    return block * KEYS_APART + octet * KEYS_LOADED + within


@dataclass(frozen=True)
class _Lines:
    """Columns of lineitems: the order within the set, the line within the order; cents, percents."""

    order: Ints
    number: Ints  # counted from 0
    serial: Ints
    part: Ints
    supplier: Ints
    quantity: Ints
    price: Ints
    discount: Ints
    tax: Ints

    @property
    def charged(self) -> Ints:
        """Cents, cut off after each step as the generator of the load does it."""
        return self.price * (100 - self.discount) // 100 * (100 + self.tax) // 100


def retail_price(part: Ints) -> Ints:
    """Return the price of a part in cents, by its key."""
    return 90_000 + part // 10 % 20_001 + part % 1_000 * 100


def supplier_of(part: Ints, which: Ints, suppliers: int) -> Ints:
    """Return the key of one of the suppliers of a part, `which` from 0."""
    step = suppliers // SUPPLIERS_OF_A_PART + (part - 1) // suppliers
    return (part + which * step) % suppliers + 1


def _sets_of_an_octet(factor: float) -> int:
    return count(factor, ORDERS) // count(factor, ORDERS_OF_A_SET)


def _octet_and_places(factor: float, number: int) -> tuple[int, Ints]:
    if number < 1:
        raise ValueError(f"refresh sets are counted from 1, not {number}")
    if number > (most := most_sets(factor)):
        raise StallmarkError(
            f"The refresh sets are exhausted: there are {most:,}, and number {number:,} is asked for. "
            "Restore the database as it was loaded, or build it again."
        )
    octet, within = divmod(number - 1, _sets_of_an_octet(factor))
    size = count(factor, ORDERS_OF_A_SET)
    return octet, np.arange(within * size + 1, (within + 1) * size + 1, dtype=np.int64)


def _lines(factor: float, serial: Ints) -> _Lines:
    counts = 1 + whole(_SEED, "lines", serial, MOST_LINES)
    order = np.repeat(np.arange(len(serial)), counts)
    number = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
    line = serial[order] * MOST_LINES + number
    part = 1 + whole(_SEED, "part", line, count(factor, PARTS))
    which = whole(_SEED, "supplier", line, SUPPLIERS_OF_A_PART)
    quantity = 1 + whole(_SEED, "quantity", line, 50)
    return _Lines(
        order,
        number,
        line,
        part,
        supplier_of(part, which, count(factor, SUPPLIERS)),
        quantity,
        quantity * retail_price(part),
        whole(_SEED, "discount", line, 11),
        whole(_SEED, "tax", line, 9),
    )


def _orders(factor: float, serial: Ints, keys: Ints, date: np.ndarray, lines: _Lines, starts: Ints) -> pa.Table:
    shipped = np.add.reduceat((_ship_date(date, lines) <= CURRENT_DATE).astype(np.int64), starts)
    of_order = np.diff(starts, append=len(lines.order))
    status = np.where(shipped == of_order, 0, np.where(shipped == 0, 1, 2))
    # Two customers of three have orders: keys that three divides have none.
    customer = whole(_SEED, "customer", serial, count(factor, CUSTOMERS) // 3 * 2)
    clerk = 1 + whole(_SEED, "clerk", serial, max(CLERKS, count(factor, CLERKS)))
    return pa.table(
        {
            "o_orderkey": keys,
            "o_custkey": (customer // 2 * 3 + customer % 2 + 1).astype(np.int32),
            "o_orderstatus": chosen("FOP", status),
            "o_totalprice": decimals(np.add.reduceat(lines.charged, starts), 15),
            "o_orderdate": date,
            "o_orderpriority": chosen(PRIORITIES, whole(_SEED, "priority", serial, len(PRIORITIES))),
            "o_clerk": _numbered("Clerk#", clerk),
            "o_shippriority": np.zeros(len(serial), np.int32),
            "o_comment": comment_texts(_SEED, "order comment", serial, *_ORDER_COMMENT),
        }
    )


def _ship_date(order_date: np.ndarray, lines: _Lines) -> np.ndarray:
    return order_date[lines.order] + 1 + whole(_SEED, "shipped after", lines.serial, 121)


def _lineitem(orders: pa.Table, lines: _Lines) -> pa.Table:
    line, date = lines.serial, orders["o_orderdate"].to_numpy()
    ship = _ship_date(date, lines)
    receipt = ship + 1 + whole(_SEED, "received after", line, 30)
    returned = np.where(receipt <= CURRENT_DATE, whole(_SEED, "returned", line, 2), 2)
    return pa.table(
        {
            "l_orderkey": orders["o_orderkey"].to_numpy()[lines.order],
            "l_partkey": lines.part.astype(np.int32),
            "l_suppkey": lines.supplier.astype(np.int32),
            "l_linenumber": (lines.number + 1).astype(np.int32),
            "l_quantity": decimals(lines.quantity * 100, 15),
            "l_extendedprice": decimals(lines.price, 15),
            "l_discount": decimals(lines.discount, 15),
            "l_tax": decimals(lines.tax, 15),
            "l_returnflag": chosen("RAN", returned),
            "l_linestatus": chosen("FO", (ship > CURRENT_DATE).astype(np.int64)),
            "l_shipdate": ship,
            "l_commitdate": date[lines.order] + 30 + whole(_SEED, "committed after", line, 61),
            "l_receiptdate": receipt,
            "l_shipinstruct": chosen(INSTRUCTIONS, whole(_SEED, "instruction", line, len(INSTRUCTIONS))),
            "l_shipmode": chosen(SHIP_MODES, whole(_SEED, "mode", line, len(SHIP_MODES))),
            "l_comment": comment_texts(_SEED, "line comment", line, *_LINE_COMMENT),
        }
    )


def _numbered(prefix: str, numbers: Ints) -> pa.Array:
    """Return `prefix` and the number with nine digits."""
    import pyarrow.compute as pc  # only a refresh needs it, and every scenario imports this module

    digits = pc.utf8_lpad(pc.cast(pa.array(numbers), pa.string()), 9, "0")
    return pc.binary_join_element_wise(prefix, digits, "")
