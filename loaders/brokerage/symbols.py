"""The symbols of many securities at once: those of `population.symbol`."""

from string import ascii_uppercase

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stallmark.loaders.text import strings
from stallmark.schema.brokerage.population import TICKER_LETTERS, company_of, is_preferred, ticker_numbers
from stallmark.schema.draw import Ints
from stallmark.schema.words import chosen

_FIFTH = ("", *ascii_uppercase[1:])  # before the four, where so many companies need one


def symbols(security: Ints) -> pa.StringArray:
    """Return the symbols of securities, for fewer than 26**5 companies."""
    fifth, four = ticker_numbers(company_of(security))
    places = 26 ** np.arange(TICKER_LETTERS - 1, -1, -1)
    letters = four[:, np.newaxis] // places % 26 + ord("A")
    kind = chosen(("", ".PRA"), is_preferred(security).astype(np.int64))
    return pc.binary_join_element_wise(chosen(_FIFTH, fifth), strings(letters.astype(np.uint8)), kind, "")
