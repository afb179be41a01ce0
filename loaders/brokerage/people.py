"""Names of people."""

import pyarrow as pa
import pyarrow.compute as pc

from stallmark.schema import words
from stallmark.schema.draw import Ints, whole
from stallmark.schema.words import chosen


def people(seed: int, who: str, number: Ints) -> pa.StringArray:
    """Return first and last name of each of `number`; `who` tells brokers, authors and so on apart."""
    first, last = pa.concat_arrays(words.first_names()), words.last_names()
    return pc.binary_join_element_wise(
        chosen(first, whole(seed, f"{who}'s first name", number, len(first))),
        chosen(last, whole(seed, f"{who}'s last name", number, len(last))),
        " ",
    )
