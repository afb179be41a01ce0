"""The sources of parameters: each yields, for one transaction, the values of one name or of several that belong
together.

What a source draws is a function of the user's generator alone, so that the same seed makes the same load. Sources are
mappings here, as the model writes them: an executor needs no model.
"""

import math
import random
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import accumulate
from typing import Any, NamedTuple

from stallmark.engines.base import MOST_READ, READ_ONLY
from stallmark.errors import CallFailed, StallmarkError
from stallmark.own_sql.pgbench_functions import draw_exponential, draw_gaussian, draw_uniform
from stallmark.transactions.workload import Clock, as_text

Row = tuple[Any, ...]
Draw = Callable[[random.Random, "Place"], Row]


class Place(NamedTuple):
    """The user that draws: its number, and how many transactions it has drawn for before."""

    user: int
    turn: int


class Users(NamedTuple):
    """The users that share rows: how many there may be."""

    most: int


class OpenedSource(NamedTuple):
    """A source as a process draws from it."""

    given: Mapping[str, Any]
    rows: Sequence[Row]  # all that it draws from; of a range its ends, and of a time none
    draw: Draw


def names_in(key: str) -> tuple[str, ...]:
    """Return the names that a key of `parameters` lists: `customer, region`."""
    return tuple(name.strip() for name in key.split(","))


def open_source(
    key: str, source: Mapping[str, Any], query: Callable[[str], Sequence[Row]], clock: Clock, seed: int, users: Users
) -> OpenedSource:
    """Open a source; a query is executed now. Raise StallmarkError if it has no rows."""
    if "from" in source:
        return OpenedSource(source, *_range(source))
    if "time" in source:
        return OpenedSource(source, (), _time(source, clock))
    if "faker" in source:
        rows = [(value,) for value in fake_values(key, source, seed)]
        return OpenedSource(source, rows, _from_rows(key, rows, {"draw": "uniform"}, users))
    if "values" in source:
        rows = [(value,) for value in source["values"]]
    elif "query" in source:
        rows = _fitting(key, _rows_of_query(key, source["query"], query), source["draw"])
    else:
        rows = _fitting(key, [tuple(row) for row in source["rows"]], source["draw"])
    return OpenedSource(source, rows, _from_rows(key, rows, source, users))


def _rows_of_query(key: str, text: str, query: Callable[[str], Sequence[Row]]) -> list[Row]:
    try:
        rows = query(text)
    except CallFailed as error:
        if error.code == READ_ONLY:
            raise StallmarkError(f"The query for {key} writes, by a function: write one that only reads.") from None
        raise StallmarkError(f"The query for {key} failed: {error.message.rstrip('.')} ({error.code}).") from None
    if len(rows) > MOST_READ:
        raise StallmarkError(
            f"The query for {key} returns more than {MOST_READ:,} rows, and every process would keep them: add a limit."
        )
    if not rows:
        raise StallmarkError(f"The query for {key} returns no row, so {key} has no value: load data, or change it.")
    # Without an ORDER BY a server may return rows in another order to each process: users would not be apart.
    rows = [tuple(map(_plain, row)) for row in rows]
    return rows if "order by" in " ".join(text.lower().split()) else sorted(rows, key=repr)


def _plain(value: Any) -> Any:
    """Return a value as it can be bound again."""
    if value is None or isinstance(value, (str, int, float, Decimal, bool)):
        return value
    if isinstance(value, datetime):
        # SQL Server's `datetime` takes a text with at most three decimals, and by the T in the same order of day and
        # month in every language.
        return value.isoformat(timespec="auto" if value.microsecond % 1000 else "milliseconds")
    if isinstance(value, (list, dict, bytes, memoryview)):
        raise StallmarkError(f"A parameter query returns {type(value).__name__} values: cast them to text.")
    return str(value)


def _fitting(key: str, rows: list[Row], draw: Any) -> list[Row]:
    names = names_in(key)
    wanted = len(names) + (draw == "weight")
    if len(rows[0]) != wanted:
        weight = " and a weight" if draw == "weight" else ""
        raise StallmarkError(
            f"The source of {key} has {len(rows[0])} columns, and needs {len(names)}{weight}: name a parameter for "
            "each."
        )
    return rows


def _from_rows(key: str, rows: list[Row], source: Mapping[str, Any], users: Users) -> Draw:
    draw = source["draw"]
    if source.get("apart"):
        if len(rows) < users.most:
            raise StallmarkError(
                f"The source of {key} has {len(rows):,} rows for {users.most:,} users, and is to be apart: each needs "
                "a row of its own."
            )
        return _draw_apart(rows, draw, users)
    if draw == "in order":
        count = len(rows)
        return lambda rng, place: rows[(place.user + place.turn * users.most) % count]
    if draw == "weight":
        return _weighted(key, rows)
    choose = _chooser(draw, len(rows))
    return lambda rng, place: rows[choose(rng)]


def _draw_apart(rows: list[Row], draw: Any, users: Users) -> Draw:
    """Return a draw in which user k of n has rows k, k + n, k + 2n … for itself."""
    most, count = users.most, len(rows)
    choosers: dict[int, Callable[[random.Random], int]] = {}

    def choose(rng: random.Random, place: Place) -> Row:
        user = place.user % most
        own = (count - user + most - 1) // most
        if draw == "in order":
            return rows[user + place.turn % own * most]
        # Users differ by one row at most, so that two choosers serve all of them.
        chooser = choosers.get(own)
        if chooser is None:
            chooser = choosers[own] = _chooser(draw, own)
        return rows[user + chooser(rng) * most]

    return choose


def _weighted(key: str, rows: list[Row]) -> Draw:
    weights = [float(row[-1] or 0) for row in rows]
    if any(weight < 0 or not math.isfinite(weight) for weight in weights) or not any(weights):
        raise StallmarkError(f"The weights of {key} are not numbers above 0: the last column of its source has them.")
    totals, values = list(accumulate(weights)), [row[:-1] for row in rows]
    return lambda rng, place: values[_draw_place(totals, rng)]


def _chooser(draw: Any, count: int) -> Callable[[random.Random], int]:
    """Return a function that draws a number below `count`."""
    if draw == "uniform":
        return lambda rng: int(rng.random() * count)
    [(kind, parameter)] = draw.items()
    if kind == "zipf":
        totals = zipf_totals(count, parameter)
        return lambda rng: _draw_place(totals, rng)
    spread = draw_gaussian if kind == "normal" else draw_exponential
    return lambda rng: spread(rng, 0, count - 1, parameter)


def zipf_totals(count: int, exponent: float) -> list[float]:
    """Return the running totals of 1/k**exponent for k = 1 … count."""
    return list(accumulate(k**-exponent for k in range(1, count + 1)))


def _draw_place(totals: Sequence[float], rng: random.Random) -> int:
    """Return a place drawn by running totals of weights; one of weight 0 is never drawn."""
    # 1 − random() is above 0. A 0 itself would choose the first place even if its weight is 0.
    return bisect_left(totals, (1.0 - rng.random()) * totals[-1])


def _range(source: Mapping[str, Any]) -> tuple[list[Row], Draw]:
    """Return the ends of a range, and the draw."""
    low, high, decimals, draw = source["from"], source["to"], source["decimals"], source["draw"]
    # Counted in whole steps of the last decimal, so that both ends can be drawn.
    times = 10**decimals
    first, count = round(low * times), round(high * times) - round(low * times) + 1
    if draw == "uniform" and not decimals:
        return [(low,), (high,)], lambda rng, place: (draw_uniform(rng, low, high),)
    choose = _chooser(draw, count)

    def value(step: int) -> Row:
        number = first + step
        return (f"{number / times:.{decimals}f}" if decimals else number,)

    return [value(0), value(count - 1)], lambda rng, place: value(choose(rng))


def _time(source: Mapping[str, Any], clock: Clock) -> Draw:
    first, last = source["time"]["from"], source["time"]["to"]
    as_date = source["as"] == "date"

    def draw(rng: random.Random, place: Place) -> Row:
        moment = clock.now() + timedelta(seconds=first + rng.random() * (last - first))
        return (moment.date().isoformat() if as_date else as_text(moment),)

    return draw


def fake_values(key: str, source: Mapping[str, Any], seed: int) -> list[Any]:
    """Return the values of a Faker provider, the same for the same seed. Raise StallmarkError for one it does not
    have."""
    # Only a load that asks for Faker pays for its import.
    from faker import Faker, Generator

    if hasattr(Faker, source["faker"]) or hasattr(Generator, source["faker"]):
        raise StallmarkError(
            f"{source['faker']} is a method of Faker's own, and not a provider: name another for {key}."
        )
    try:
        fake = Faker(source["locale"])
        # By the seed alone, two sources of one provider would have the same values in the same order.
        fake.seed_instance(f"{seed}/{key}")
        provider = getattr(fake, source["faker"])
        return [_faked(provider(**source["arguments"])) for _ in range(source["distinct"])]
    except AttributeError:
        raise StallmarkError(
            f"Faker has no provider {source['faker']} for {source['locale']}, which {key} asks for: name another."
        ) from None
    except (TypeError, ValueError) as error:
        raise StallmarkError(
            f"Faker cannot make {key} by {source['faker']}, {source['locale']} ({error}): change its `arguments`."
        ) from None


def _faked(value: Any) -> Any:
    return ", ".join(map(str, value)) if isinstance(value, Iterable) and not isinstance(value, str) else _plain(value)
