"""The parameters of the 22 queries: drawn for each stream from a seed, or those that answers are validated with."""

import random
from collections.abc import Callable, Mapping, Sequence

from stallmark.schema.warehouse.refresh import SHIP_MODES as SHIP_MODES

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
