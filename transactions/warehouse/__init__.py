"""The warehouse: 22 queries of decision support on eight tables, and two refresh functions, derived from TPC-H.

Not comparable with published TPC results: other refresh sets, other rules, no audit. It has no transactions that
virtual users start: streams execute the queries, and one refreshes (`refresh`).
"""

import random
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from stallmark.engines import sql_file
from stallmark.errors import StallmarkError
from stallmark.schema import warehouse
from stallmark.schema.warehouse import SHIP_MODES
from stallmark.transactions.workload import Condition, QueryStreams, Workload

# The words that columns of the warehouse hold and queries ask for.

NATIONS = {
    "ALGERIA": "AFRICA",
    "ARGENTINA": "AMERICA",
    "BRAZIL": "AMERICA",
    "CANADA": "AMERICA",
    "EGYPT": "MIDDLE EAST",
    "ETHIOPIA": "AFRICA",
    "FRANCE": "EUROPE",
    "GERMANY": "EUROPE",
    "INDIA": "ASIA",
    "INDONESIA": "ASIA",
    "IRAN": "MIDDLE EAST",
    "IRAQ": "MIDDLE EAST",
    "JAPAN": "ASIA",
    "JORDAN": "MIDDLE EAST",
    "KENYA": "AFRICA",
    "MOROCCO": "AFRICA",
    "MOZAMBIQUE": "AFRICA",
    "PERU": "AMERICA",
    "CHINA": "ASIA",
    "ROMANIA": "EUROPE",
    "SAUDI ARABIA": "MIDDLE EAST",
    "VIETNAM": "ASIA",
    "RUSSIA": "EUROPE",
    "UNITED KINGDOM": "EUROPE",
    "UNITED STATES": "AMERICA",
}
"""The nations and the region of each, in the order of their keys, from 0."""

REGIONS = ("AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST")
SEGMENTS = ("AUTOMOBILE", "BUILDING", "FURNITURE", "MACHINERY", "HOUSEHOLD")

TYPES = (
    ("STANDARD", "SMALL", "MEDIUM", "LARGE", "ECONOMY", "PROMO"),
    ("ANODIZED", "BURNISHED", "PLATED", "POLISHED", "BRUSHED"),
    ("TIN", "NICKEL", "BRASS", "STEEL", "COPPER"),
)
"""The three syllables of a part's type."""

CONTAINERS = (("SM", "LG", "MED", "JUMBO", "WRAP"), ("CASE", "BOX", "BAG", "JAR", "PKG", "PACK", "CAN", "DRUM"))
"""The two syllables of a part's container."""

FIRST_WORDS = ("special", "pending", "unusual", "express")
SECOND_WORDS = ("packages", "requests", "accounts", "deposits")
"""The words that q13 searches for in the comments of orders, one after the other."""

_COLOURS = (
    "almond antique aquamarine azure beige bisque black blanched blue blush brown burlywood burnished chartreuse "
    "chiffon chocolate coral cornflower cornsilk cream cyan dark deep dim dodger drab firebrick floral forest frosted "
    "gainsboro ghost goldenrod green grey honeydew hot indian ivory khaki lace lavender lawn lemon light lime linen "
    "magenta maroon medium metallic midnight mint misty moccasin navajo navy olive orange orchid pale papaya peach "
    "peru pink plum powder puff purple red rose rosy royal saddle salmon sandy seashell sienna sky slate smoke snow "
    "spring steel tan thistle tomato turquoise violet wheat white yellow"
)
COLOURS = tuple(_COLOURS.split())
"""The colours, five of which are in the name of a part."""


Parameters = dict[str, str]


def parameters(query: int, seed: int, stream: int, factor: float) -> Parameters:
    """Return the parameters that `stream` puts into `query` at scale factor `factor`: literals by name.

    A pure function. Each query of each stream draws by itself, so a run of some of the queries has the same parameters
    as a run of all. Raise ValueError for an unknown query.
    """
    if query not in _DRAWN:
        raise ValueError(f"no query {query}: there are 1 to {len(_DRAWN)}")
    drawn = _DRAWN[query](random.Random(f"warehouse {seed} {stream} {query}"))
    return drawn | ({"fraction": fraction(factor)} if query == 11 else {})


def validation(query: int, factor: float) -> Parameters:
    """Return the parameters that answers are validated with. Raise ValueError for an unknown query."""
    if query not in VALIDATION:
        raise ValueError(f"no query {query}: there are 1 to {len(VALIDATION)}")
    return dict(VALIDATION[query]) | ({"fraction": fraction(factor)} if query == 11 else {})


def fraction(factor: float) -> str:
    """Return the fraction of a nation's stock for q11: 0.0001 at scale factor 1, so that the answer does not grow with
    the scale."""
    return f"{0.0001 / factor:.10f}"


def _month(rng: random.Random, months: int, first: int = 1) -> str:
    """Return the first day of one of `months` months, beginning with month `first` of 1993."""
    number = first - 1 + rng.randrange(months)
    return f"{1993 + number // 12}-{number % 12 + 1:02}-01"


def _year(rng: random.Random) -> str:
    return f"{rng.randint(1993, 1997)}-01-01"


def _brand(rng: random.Random) -> str:
    return f"Brand#{rng.randint(1, 5)}{rng.randint(1, 5)}"


def _one(rng: random.Random, *word_lists: tuple[str, ...]) -> str:
    """Return a word of each list, with blanks between them."""
    return " ".join(rng.choice(words) for words in word_lists)


def _numbered(name: str, values: Sequence[int]) -> Parameters:
    return {f"{name}{number}": str(value) for number, value in enumerate(values, 1)}


def _q07(rng: random.Random) -> Parameters:
    first, second = rng.sample(list(NATIONS), 2)
    return {"nation1": first, "nation2": second}


def _q08(rng: random.Random) -> Parameters:
    nation = _one(rng, tuple(NATIONS))
    return {"nation": nation, "region": NATIONS[nation], "type": _one(rng, *TYPES)}


def _q12(rng: random.Random) -> Parameters:
    first, second = rng.sample(SHIP_MODES, 2)
    return {"shipmode1": first, "shipmode2": second, "date": _year(rng)}


def _q16(rng: random.Random) -> Parameters:
    sizes = _numbered("size", rng.sample(range(1, 51), 8))
    return {"brand": _brand(rng), "type": _one(rng, *TYPES[:2]), **sizes}


def _q22(rng: random.Random) -> Parameters:
    # The country code of a nation is its key and 10.
    return _numbered("code", rng.sample(range(10, 10 + len(NATIONS)), 7))


_NATIONS = tuple(NATIONS)
_DRAWN: Mapping[int, Callable[[random.Random], Parameters]] = {
    1: lambda rng: {"delta": str(rng.randint(60, 120))},
    2: lambda rng: {"size": str(rng.randint(1, 50)), "type": _one(rng, TYPES[2]), "region": _one(rng, REGIONS)},
    3: lambda rng: {"segment": _one(rng, SEGMENTS), "date": f"1995-03-{rng.randint(1, 31):02}"},
    4: lambda rng: {"date": _month(rng, 58)},
    5: lambda rng: {"region": _one(rng, REGIONS), "date": _year(rng)},
    6: lambda rng: {"date": _year(rng), "discount": f"0.0{rng.randint(2, 9)}", "quantity": str(rng.randint(24, 25))},
    7: _q07,
    8: _q08,
    9: lambda rng: {"colour": _one(rng, COLOURS)},
    10: lambda rng: {"date": _month(rng, 24, first=2)},
    11: lambda rng: {"nation": _one(rng, _NATIONS)},
    12: _q12,
    13: lambda rng: {"word1": _one(rng, FIRST_WORDS), "word2": _one(rng, SECOND_WORDS)},
    14: lambda rng: {"date": _month(rng, 60)},
    15: lambda rng: {"date": _month(rng, 58)},
    16: _q16,
    17: lambda rng: {"brand": _brand(rng), "container": _one(rng, *CONTAINERS)},
    18: lambda rng: {"quantity": str(rng.randint(312, 315))},
    19: lambda rng: {
        "brand1": _brand(rng),
        "brand2": _brand(rng),
        "brand3": _brand(rng),
        "quantity1": str(rng.randint(1, 10)),
        "quantity2": str(rng.randint(10, 20)),
        "quantity3": str(rng.randint(20, 30)),
    },
    20: lambda rng: {"colour": _one(rng, COLOURS), "date": _year(rng), "nation": _one(rng, _NATIONS)},
    21: lambda rng: {"nation": _one(rng, _NATIONS)},
    22: _q22,
}

VALIDATION: Mapping[int, Mapping[str, str]] = {
    1: {"delta": "90"},
    2: {"size": "15", "type": "BRASS", "region": "EUROPE"},
    3: {"segment": "BUILDING", "date": "1995-03-15"},
    4: {"date": "1993-07-01"},
    5: {"region": "ASIA", "date": "1994-01-01"},
    6: {"date": "1994-01-01", "discount": "0.06", "quantity": "24"},
    7: {"nation1": "FRANCE", "nation2": "GERMANY"},
    8: {"nation": "BRAZIL", "region": "AMERICA", "type": "ECONOMY ANODIZED STEEL"},
    9: {"colour": "green"},
    10: {"date": "1993-10-01"},
    11: {"nation": "GERMANY", "fraction": "0.0001000000"},
    12: {"shipmode1": "MAIL", "shipmode2": "SHIP", "date": "1994-01-01"},
    13: {"word1": "special", "word2": "requests"},
    14: {"date": "1995-09-01"},
    15: {"date": "1996-01-01"},
    16: {"brand": "Brand#45", "type": "MEDIUM POLISHED", **_numbered("size", (49, 14, 23, 45, 19, 3, 36, 9))},
    17: {"brand": "Brand#23", "container": "MED BOX"},
    18: {"quantity": "300"},
    19: {
        "brand1": "Brand#12",
        "brand2": "Brand#23",
        "brand3": "Brand#34",
        "quantity1": "1",
        "quantity2": "10",
        "quantity3": "20",
    },
    20: {"colour": "forest", "date": "1994-01-01", "nation": "CANADA"},
    21: {"nation": "SAUDI ARABIA"},
    22: _numbered("code", (13, 31, 23, 29, 30, 18, 17)),
}
"""Parameters of the validation at scale factor 1; the fraction of q11 changes with the scale (`validation`)."""


# The 22 queries of the warehouse, as one statement each.

QUERIES = tuple(range(1, 23))

# What a literal may hold: nothing that ends a string, begins a comment or names a parameter.
_PLAIN = re.compile(r"(?!.*--)[A-Za-z0-9 #.-]+")
_NAMED = re.compile(r"(?<![:\w]):([a-z]\w*)")


def text(query: int, dialect: str, parameters: Mapping[str, str], dop: int | None = None) -> str:
    """Return the text of a query for a dialect ("postgresql" or "mssql"), with literals for its parameters.

    It begins with a comment that names it, by which a DBA finds it in a trace. `dop` is the most processors that SQL
    Server may execute it with; PostgreSQL has a setting for that, and no word in the statement.

    Raise ValueError for an unknown query or dialect, for parameters that are not its own, and for a `dop` that cannot
    be. A value may hold only letters, digits, spaces and `# - .`; others raise it too.
    """
    template = _template(query, dialect)
    if names(query) != parameters.keys():
        raise ValueError(f"q{query} has the parameters {sorted(names(query))}, and not {sorted(parameters)}")
    for name, value in parameters.items():
        if not _PLAIN.fullmatch(value):
            raise ValueError(f"q{query}: {name} cannot be {value!r}")
    statement = _NAMED.sub(lambda match: parameters[match[1]], template)
    if dop is None:
        return statement
    if dialect != "mssql" or dop < 1:
        raise ValueError(f"q{query} cannot be limited to {dop} processors in {dialect}")
    return f"{statement}OPTION (MAXDOP {dop})\n"


def names(query: int) -> set[str]:
    """Return the names of a query's parameters; both twins have the same."""
    return set(_NAMED.findall(_template(query, "postgresql")))


def _template(query: int, dialect: str) -> str:
    if query not in QUERIES or dialect not in ("postgresql", "mssql"):
        raise ValueError(f"no query {query} for {dialect}: there are 1 to {len(QUERIES)}, for postgresql and mssql")
    return sql_file.read(__package__, f"q{query:02}.{dialect}")


# The order in which a stream executes the 22 queries, and the number of streams of a throughput run.

# The ordered sets of TPC-H, appendix A: row 0 for the power run, the others for the streams of a throughput run.
_ORDERS = (
    (14, 2, 9, 20, 6, 17, 18, 8, 21, 13, 3, 22, 16, 4, 11, 15, 1, 10, 19, 5, 7, 12),
    (21, 3, 18, 5, 11, 7, 6, 20, 17, 12, 16, 15, 13, 10, 2, 8, 14, 19, 9, 22, 1, 4),
    (6, 17, 14, 16, 19, 10, 9, 2, 15, 8, 5, 22, 12, 7, 13, 18, 1, 4, 20, 3, 11, 21),
    (8, 5, 4, 6, 17, 7, 1, 18, 22, 14, 9, 10, 15, 11, 20, 2, 21, 19, 13, 16, 12, 3),
    (5, 21, 14, 19, 15, 17, 12, 6, 4, 9, 8, 16, 11, 2, 10, 18, 1, 13, 7, 22, 3, 20),
    (21, 15, 4, 6, 7, 16, 19, 18, 14, 22, 11, 13, 3, 1, 2, 5, 8, 20, 12, 17, 10, 9),
    (10, 3, 15, 13, 6, 8, 9, 7, 4, 11, 22, 18, 12, 1, 5, 16, 2, 14, 19, 20, 17, 21),
    (18, 8, 20, 21, 2, 4, 22, 17, 1, 11, 9, 19, 3, 13, 5, 7, 10, 16, 6, 14, 15, 12),
    (19, 1, 15, 17, 5, 8, 9, 12, 14, 7, 4, 3, 20, 16, 6, 22, 10, 13, 2, 21, 18, 11),
    (8, 13, 2, 20, 17, 3, 6, 21, 18, 11, 19, 10, 15, 4, 22, 1, 7, 12, 9, 14, 5, 16),
    (6, 15, 18, 17, 12, 1, 7, 2, 22, 13, 21, 10, 14, 9, 3, 16, 20, 19, 11, 4, 8, 5),
    (15, 14, 18, 17, 10, 20, 16, 11, 1, 8, 4, 22, 5, 12, 3, 9, 21, 2, 13, 6, 19, 7),
    (1, 7, 16, 17, 18, 22, 12, 6, 8, 9, 11, 4, 2, 5, 20, 21, 13, 10, 19, 3, 14, 15),
    (21, 17, 7, 3, 1, 10, 12, 22, 9, 16, 6, 11, 2, 4, 5, 14, 8, 20, 13, 18, 15, 19),
    (2, 9, 5, 4, 18, 1, 20, 15, 16, 17, 7, 21, 13, 14, 19, 8, 22, 11, 10, 3, 12, 6),
    (16, 9, 17, 8, 14, 11, 10, 12, 6, 21, 7, 3, 15, 5, 22, 20, 1, 13, 19, 2, 4, 18),
    (1, 3, 6, 5, 2, 16, 14, 22, 17, 20, 4, 9, 10, 11, 15, 8, 12, 19, 18, 13, 7, 21),
    (3, 16, 5, 11, 21, 9, 2, 15, 10, 18, 17, 7, 8, 19, 14, 13, 1, 4, 22, 20, 6, 12),
    (14, 4, 13, 5, 21, 11, 8, 6, 3, 17, 2, 20, 1, 19, 10, 9, 12, 18, 15, 7, 22, 16),
    (4, 12, 22, 14, 5, 15, 16, 2, 8, 10, 17, 9, 21, 7, 3, 6, 13, 18, 11, 20, 19, 1),
    (16, 15, 14, 13, 4, 22, 18, 19, 7, 1, 12, 17, 5, 10, 20, 3, 9, 21, 11, 2, 6, 8),
    (20, 14, 21, 12, 15, 17, 4, 19, 13, 10, 11, 1, 16, 5, 18, 7, 8, 22, 9, 6, 3, 2),
    (16, 14, 13, 2, 21, 10, 11, 4, 1, 22, 18, 12, 19, 5, 7, 8, 6, 3, 15, 20, 9, 17),
    (18, 15, 9, 14, 12, 2, 8, 11, 22, 21, 16, 1, 6, 17, 5, 10, 19, 4, 20, 13, 3, 7),
    (7, 3, 10, 14, 13, 21, 18, 6, 20, 4, 9, 8, 22, 15, 2, 1, 5, 12, 19, 17, 11, 16),
    (18, 1, 13, 7, 16, 10, 14, 2, 19, 5, 21, 11, 22, 15, 8, 17, 20, 3, 4, 12, 6, 9),
    (13, 2, 22, 5, 11, 21, 20, 14, 7, 10, 4, 9, 19, 18, 6, 3, 1, 8, 15, 12, 17, 16),
    (14, 17, 21, 8, 2, 9, 6, 4, 5, 13, 22, 7, 15, 3, 1, 18, 16, 11, 10, 12, 20, 19),
    (10, 22, 1, 12, 13, 18, 21, 20, 2, 14, 16, 7, 15, 3, 4, 17, 5, 19, 6, 8, 9, 11),
    (10, 8, 9, 18, 12, 6, 1, 5, 20, 11, 17, 22, 16, 3, 13, 2, 15, 21, 14, 19, 7, 4),
    (7, 17, 22, 5, 3, 10, 13, 18, 9, 1, 14, 15, 21, 19, 16, 12, 8, 6, 11, 20, 4, 2),
    (2, 9, 21, 3, 4, 7, 1, 11, 16, 5, 20, 19, 18, 8, 17, 13, 10, 12, 15, 6, 14, 22),
    (15, 12, 8, 4, 22, 13, 16, 17, 18, 3, 7, 5, 6, 1, 9, 11, 21, 10, 14, 20, 19, 2),
    (15, 16, 2, 11, 17, 7, 5, 14, 20, 4, 21, 3, 10, 9, 12, 8, 13, 6, 18, 19, 22, 1),
    (1, 13, 11, 3, 4, 21, 6, 14, 15, 22, 18, 9, 7, 5, 10, 20, 12, 16, 17, 8, 19, 2),
    (14, 17, 22, 20, 8, 16, 5, 10, 1, 13, 2, 21, 12, 9, 4, 18, 3, 7, 6, 19, 15, 11),
    (9, 17, 7, 4, 5, 13, 21, 18, 11, 3, 22, 1, 6, 16, 20, 14, 15, 10, 8, 2, 12, 19),
    (13, 14, 5, 22, 19, 11, 9, 6, 18, 15, 8, 10, 7, 4, 17, 16, 3, 1, 12, 2, 21, 20),
    (20, 5, 4, 14, 11, 1, 6, 16, 8, 22, 7, 3, 2, 12, 21, 19, 17, 13, 10, 15, 18, 9),
    (3, 7, 14, 15, 6, 5, 21, 20, 18, 10, 4, 16, 19, 1, 13, 9, 8, 17, 11, 12, 22, 2),
    (13, 15, 17, 1, 22, 11, 3, 4, 7, 20, 14, 21, 9, 8, 2, 18, 16, 6, 10, 12, 5, 19),
)

POWER = 0
"""The stream of the power run; those of a throughput run count from 1."""

MOST_STREAMS = len(_ORDERS) - 1

# From that scale factor on.
_STREAMS = {
    1: 2, 10: 3, 30: 4, 100: 5, 300: 6, 1_000: 7, 3_000: 8, 10_000: 9, 30_000: 10, 100_000: 11,
}  # fmt: skip


def order(stream: int) -> tuple[int, ...]:
    """Return the numbers of the 22 queries in the order of a stream: 0 (the power run) to `MOST_STREAMS`.

    Raise StallmarkError for any other.
    """
    if not 0 <= stream <= MOST_STREAMS:
        raise StallmarkError(
            f"Stream {stream} does not exist: the 22 queries have an order for each of {MOST_STREAMS} streams, so "
            f"choose 1 to {MOST_STREAMS}."
        )
    return _ORDERS[stream]


def streams_for(factor: float) -> int:
    """Return the number of streams that a throughput run at that scale factor has by default; 2 below 1."""
    return max((streams for least, streams in _STREAMS.items() if factor >= least), default=2)


def _numbers(scale: Mapping[str, Any]) -> dict[str, int]:
    factor = scale["factor"]
    refreshed = warehouse.count(factor, warehouse.ORDERS_OF_A_SET)
    return warehouse.rows(factor) | {"refreshed": refreshed}


WORKLOAD = Workload(
    name="warehouse",
    version=4,
    schema="warehouse",
    tables="stallmark.schema.warehouse.tables",
    package=__name__,
    derived_from="TPC-H",
    conditions=Condition.read_all(__name__),
    numbers=_numbers,
    build_mib_per_s=25,
    streams=QueryStreams(QUERIES, lambda scale: streams_for(scale["factor"])),
)
