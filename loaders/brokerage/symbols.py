"""The symbols of many securities at once: what `population.symbol` says of each."""

from string import ascii_uppercase

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stallmark.loaders.brokerage.columns import chosen
from stallmark.loaders.text import strings
from stallmark.schema.arrays import Ints
from stallmark.schema.brokerage_population import company_of, is_preferred

_LETTERS = 4
_FIFTH = ("", *ascii_uppercase[1:])  # before the four, where so many companies need one


def symbols(security: Ints) -> pa.StringArray:
    """For fewer than 26**5 companies."""
    fifth, number = np.divmod(company_of(security), 26**_LETTERS)
    places = 26 ** np.arange(_LETTERS - 1, -1, -1)
    letters = (number * 271_829 % 26**_LETTERS)[:, np.newaxis] // places % 26 + ord("A")
    kind = chosen(("", ".PRA"), is_preferred(security).astype(np.int64))
    return pc.binary_join_element_wise(chosen(_FIFTH, fifth), strings(letters.astype(np.uint8)), kind, "")
