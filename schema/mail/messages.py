"""Messages as pure functions of the seed and a number: who sent them, what about, and their bodies.

Sizes of bodies are log-normal, as measured ones nearly are ("Fluctuations in email size", Eur. Phys. J. Plus 132,
2017). Their mean is what Microsoft plans Exchange with, 75 KB; their median 8 KB; none is above Exchange's limit of
10 MB. One in a hundred has more than 1 MB.
"""

from functools import lru_cache
from math import exp
from statistics import NormalDist, fmean

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stallmark.schema import words
from stallmark.schema.draw import Ints, whole
from stallmark.schema.mail import LEAST_BYTES, MEAN_BYTES, MOST_BYTES
from stallmark.schema.words import chosen, prose, short

DELIVERED = 2**42
"""The numbers of loaded messages are below; what comes in a run is made from here on."""

MAILBOX_NUMBERS = 2**16
"""The first number of a mailbox's loaded messages is this number times the mailbox's place."""

_SIGMA = 2.13  # spread of the logarithm: the median is then 8 KB
_QUANTILES = 4_096

# Numbers of texts that `prose` tells apart have 2**16 phrases each, and a body of 10 MB has more.
_NUMBERS_OF_A_BODY = 16


def sizes(seed: int, number: Ints) -> Ints:
    """Return the bytes of the bodies."""
    return likely_sizes()[whole(seed, "mail body size", number, _QUANTILES)]


def bodies(seed: int, number: Ints, lengths: Ints, compressibility: float) -> pa.StringArray:
    """Return bodies of given lengths. Each ends with a full stop, so that a truncated body is noticed."""
    texts = prose(seed, "mail body", number * _NUMBERS_OF_A_BODY, lengths - 1, compressibility)
    return pc.binary_join_element_wise(texts, ".", "")


def senders(seed: int, number: Ints) -> pa.StringArray:
    names, domains = words.last_names(), words.email_domains()
    name = pc.ascii_lower(chosen(names, whole(seed, "mail sender", number, len(names))))
    return pc.binary_join_element_wise(name, chosen(domains, whole(seed, "mail domain", number, len(domains))), "@")


def subjects(seed: int, number: Ints) -> pa.StringArray:
    """Return short texts of one or two phrases."""
    return short(seed, "mail subject", number, 1 + whole(seed, "mail subject length", number, 2))


@lru_cache
def likely_sizes() -> Ints:
    """Return equally likely sizes, the smallest first. Their mean is `MEAN_BYTES`, although both ends are cut off.

    The sizes come from a table, because a logarithm may differ in its last bit between machines that share a load.
    """
    normal = NormalDist(sigma=_SIGMA)
    shape = [exp(normal.inv_cdf((place + 0.5) / _QUANTILES)) for place in range(_QUANTILES)]

    def scaled(median: float) -> list[int]:
        return [round(min(MOST_BYTES, max(LEAST_BYTES, median * factor))) for factor in shape]

    low, high = 1.0, float(MEAN_BYTES)
    for _ in range(60):
        median = (low + high) / 2
        low, high = (median, high) if fmean(scaled(median)) < MEAN_BYTES else (low, median)
    return np.array(scaled(high), np.int64)
