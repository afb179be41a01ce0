"""Names of people, their addresses, and the taxes that they pay there."""

from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stallmark.loaders.brokerage.counts import FIXED_ROWS
from stallmark.loaders.plan import digits
from stallmark.schema import words
from stallmark.schema.draw import Ints, whole
from stallmark.schema.words import chosen, decimals


# Names of people.
def people(seed: int, who: str, number: Ints) -> pa.StringArray:
    """Return first and last name of each of `number`; `who` gives brokers, authors and others different names."""
    first, last = pa.concat_arrays(words.first_names()), words.last_names()
    return pc.binary_join_element_wise(
        chosen(first, whole(seed, f"{who}'s first name", number, len(first))),
        chosen(last, whole(seed, f"{who}'s last name", number, len(last))),
        " ",
    )


# Addresses of exchanges, companies and customers, and the ZIP codes they are in.

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


# Tax rates, and the two that a customer pays: one of the country and one of the home state.


# Rates in 0.00001 of what was earned: those of the country, then those of each state in turn.
_OF_COUNTRY, _OF_STATE, _STATES = 20, 6, 50
TAX_RATES = np.concatenate(
    [
        10_000 + 1_000 * np.arange(_OF_COUNTRY),
        (15 * np.arange(_STATES)[:, None] + 1_000 * np.arange(1, _OF_STATE + 1)[None, :]).ravel(),
    ]
)


def tax_rates(seed: int, customer: Ints) -> tuple[Ints, Ints]:
    """Return the customer's two taxes, as places in `RATES`."""
    state = state_of(zip_of(seed, "customer", customer))
    bracket = whole(seed, "state tax", customer, _OF_STATE)
    return whole(seed, "country tax", customer, _OF_COUNTRY), _OF_COUNTRY + state * _OF_STATE + bracket


@lru_cache
def tax_ids() -> pa.StringArray:
    brackets = [("US", number) for number in range(_OF_COUNTRY)]
    brackets += [(state, number) for state, _ in words.states() for number in range(_OF_STATE)]
    return pa.array([f"{place}{number + 1:02}" for place, number in brackets])


def tax_rate_table() -> pa.Table:
    names = [f"Federal tax, bracket {number + 1}" for number in range(_OF_COUNTRY)]
    names += [f"{state} tax, bracket {number + 1}" for _, state in words.states() for number in range(_OF_STATE)]
    return pa.table({"tx_id": tax_ids(), "tx_name": names, "tx_rate": decimals(TAX_RATES, 6, 5)})
