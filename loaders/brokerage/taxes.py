"""Tax rates, and the two that a customer pays: one of the country and one of the home state."""

from functools import lru_cache

import numpy as np
import pyarrow as pa

from stallmark.loaders.brokerage.addresses import state_of, zip_of
from stallmark.schema import words
from stallmark.schema.draw import Ints, whole
from stallmark.schema.words import decimals

# Rates in 0.00001 of what was earned: those of the country, then those of each state in turn.
_OF_COUNTRY, _OF_STATE, _STATES = 20, 6, 50
RATES = np.concatenate(
    [
        10_000 + 1_000 * np.arange(_OF_COUNTRY),
        (15 * np.arange(_STATES)[:, None] + 1_000 * np.arange(1, _OF_STATE + 1)[None, :]).ravel(),
    ]
)


def rates_of(seed: int, customer: Ints) -> tuple[Ints, Ints]:
    """Return the customer's two taxes, as places in `RATES`."""
    state = state_of(zip_of(seed, "customer", customer))
    bracket = whole(seed, "state tax", customer, _OF_STATE)
    return whole(seed, "country tax", customer, _OF_COUNTRY), _OF_COUNTRY + state * _OF_STATE + bracket


@lru_cache
def ids() -> pa.StringArray:
    brackets = [("US", number) for number in range(_OF_COUNTRY)]
    brackets += [(state, number) for state, _ in words.states() for number in range(_OF_STATE)]
    return pa.array([f"{place}{number + 1:02}" for place, number in brackets])


def tax_rate_table() -> pa.Table:
    names = [f"Federal tax, bracket {number + 1}" for number in range(_OF_COUNTRY)]
    names += [f"{state} tax, bracket {number + 1}" for _, state in words.states() for number in range(_OF_STATE)]
    return pa.table({"tx_id": ids(), "tx_name": names, "tx_rate": decimals(RATES, 6, 5)})
