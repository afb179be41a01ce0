"""Addresses of exchanges, companies and customers, and the ZIP codes they are in."""

from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stallmark.loaders.brokerage.counts import FIXED_ROWS
from stallmark.loaders.text import digits
from stallmark.schema import words
from stallmark.schema.draw import Ints, whole
from stallmark.schema.words import chosen

ZIP_CODES = FIXED_ROWS["zip_code"]
_FLATS = 40


def addresses(seed: int, whose: str, number: Ints, keys: Ints) -> pa.Table:
    """Return rows of the table `address`; `number` counts exchanges, companies or customers. Half have one line."""
    streets = words.streets()
    house = pc.cast(pa.array(1 + whole(seed, f"{whose} house", number, 9_999)), pa.string())
    street = chosen(streets, whole(seed, f"{whose} street", number, len(streets)))
    flat = whole(seed, f"{whose} flat", number, 2 * _FLATS)
    return pa.table(
        {
            "ad_id": keys,
            "ad_line1": pc.binary_join_element_wise(house, street, " "),
            "ad_line2": chosen(_flats(), flat),
            "ad_zc_code": chosen(zip_codes(), zip_of(seed, whose, number)),
            "ad_ctry": pa.repeat("USA", len(keys)),
        }
    )


def zip_of(seed: int, whose: str, number: Ints) -> Ints:
    """Return the ZIP code of an address."""
    return whole(seed, f"{whose} ZIP code", number, ZIP_CODES)


def state_of(zip_code: Ints) -> Ints:
    """Return the index in `words.states()` of a ZIP code: each state is a range of codes."""
    return zip_code * len(words.states()) // ZIP_CODES


@lru_cache
def zip_codes() -> pa.StringArray:
    return digits(501 + 6 * np.arange(ZIP_CODES), 5)


def zip_code_table() -> pa.Table:
    number = np.arange(ZIP_CODES)
    towns, states = words.towns(), [abbreviation for abbreviation, _ in words.states()]
    return pa.table(
        {
            "zc_code": zip_codes(),
            "zc_town": chosen(towns, number % len(towns)),
            "zc_div": chosen(states, state_of(number)),
        }
    )


@lru_cache
def _flats() -> pa.StringArray:
    return pa.array([f"Apt. {number + 1}" for number in range(_FLATS)] + [None] * _FLATS, pa.string())
