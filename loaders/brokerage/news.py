"""News about companies: two items each, with bodies of 1 to 100,000 characters, or fewer in a small database."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stallmark.loaders.brokerage.counts import NEWS
from stallmark.loaders.brokerage.people import people
from stallmark.loaders.plan import Piece
from stallmark.schema import words
from stallmark.schema.brokerage.population import KEY, Population, company_key
from stallmark.schema.draw import Ints, whole
from stallmark.schema.words import chosen, prose, short

_ROWS = 160  # of a piece: no more than 16 MB
_FIRST_DAY, _DAY_MS = np.datetime64("2004-01-01", "ms"), 24 * 3600 * 1000
_SIGNED_PERCENT = 90


def news(seed: int, population: Population, company: Ints, compressibility: float) -> Iterator[Piece]:
    number = (company[:, None] * NEWS + np.arange(NEWS)[None, :]).ravel()
    yield "brokerage.news_xref", pa.table({"nx_ni_id": _key(number), "nx_co_id": company_key(number // NEWS)})
    for start in range(0, len(number), _ROWS):
        yield "brokerage.news_item", _items(seed, population, number[start : start + _ROWS], compressibility)


def _items(seed: int, population: Population, number: Ints, compressibility: float) -> pa.Table:
    lengths = 1 + whole(seed, "body length", number, population.longest_article)
    day, millisecond = whole(seed, "day of news", number, 366), whole(seed, "time of news", number, _DAY_MS)
    return pa.table(
        {
            "ni_id": _key(number),
            "ni_headline": short(seed, "headline", number, np.full(len(number), 2)),
            "ni_summary": short(seed, "summary", number, 5 + whole(seed, "summary length", number, 3)),
            "ni_item": prose(seed, "body", number, lengths, compressibility),
            "ni_dts": _FIRST_DAY + (day * _DAY_MS + millisecond),
            "ni_source": _sources(seed, number),
            "ni_author": _authors(seed, number),
        }
    )


def _key(number: Ints) -> Ints:
    return KEY + number + 1


def _sources(seed: int, number: Ints) -> pa.StringArray:
    towns = words.towns()
    town = chosen(towns, whole(seed, "source", number, len(towns)))
    return pc.binary_join_element_wise(town, pa.repeat("News", len(number)), " ")


def _authors(seed: int, number: Ints) -> pa.StringArray:
    """Return the authors; the other articles are unsigned."""
    signed = pa.array(whole(seed, "signed", number, 100) < _SIGNED_PERCENT)
    return pc.if_else(signed, people(seed, "author", number), pa.scalar(None, pa.string()))
