"""Comments of the refresh sets: pieces of one English text, cut anywhere, as the loaded comments are.

Words and their shares are those of the loaded ones, so that a search for `special … requests` finds about as many.
"""

from functools import lru_cache

import numpy as np
import pyarrow as pa

from stallmark.schema.arrays import Ints
from stallmark.schema.columns import chosen
from stallmark.schema.draw import whole

_SENTENCES, _PIECES = 8_192, 65_536

# Common words stand there as often as they are more common than the others.
_ADVERBS = ("slyly", "furiously", "carefully", "blithely", "quickly", "fluffily", "evenly", "daringly")
_ADJECTIVES = (
    *("regular", "final", "ironic") * 6,
    *("special",) * 3,
    *("even", "express", "bold", "special", "unusual", "pending") * 3,
    *("silent", "stealthy", "brave", "ruthless", "enticing", "thin", "close", "dogged", "idle", "busy", "quiet"),
)
_NOUNS = (
    *("deposits", "accounts", "packages", "requests") * 4,
    *("pinto beans", "foxes", "ideas", "instructions", "theodolites") * 2,
    *("platelets", "excuses", "asymptotes", "dependencies", "dolphins", "courts", "warthogs", "sentiments"),
)
_VERBS = (
    *("haggle", "sleep", "wake", "are", "cajole") * 3,
    *("nag", "use", "boost", "affix", "detect", "integrate", "serve", "print", "maintain", "doze", "believe"),
)
_PREPOSITIONS = ("after", "above", "about", "across", "according to", "along", "against", "among", "alongside of")
_ENDS = (". ", ". ", ". ", "; ", "? ", "! ")
_ORDERS = (  # of words in a sentence
    (_ADJECTIVES, _NOUNS, _VERBS, _ADVERBS),
    (_ADVERBS, _ADJECTIVES, _NOUNS, _VERBS),
    (_NOUNS, _VERBS, _ADVERBS, _PREPOSITIONS, ("the",), _ADJECTIVES, _NOUNS),
    (_ADVERBS, _ADJECTIVES, _NOUNS, _VERBS, _PREPOSITIONS, ("the",), _NOUNS),
)


def texts(seed: int, what: str, numbers: Ints, shortest: int, longest: int) -> pa.StringArray:
    """Return a text for each of `numbers`, of evenly spread lengths; `what` tells the columns apart."""
    return chosen(_pieces(shortest, longest), whole(seed, what, numbers, _PIECES))


@lru_cache
def _pieces(shortest: int, longest: int) -> pa.StringArray:
    text, numbers = _text(), np.arange(_PIECES)
    starts = whole(0, f"start of {longest}", numbers, len(text) - longest)
    lengths = shortest + whole(0, f"length to {longest}", numbers, longest - shortest + 1)
    return pa.array([text[s : s + n] for s, n in zip(starts.tolist(), lengths.tolist(), strict=True)])


@lru_cache
def _text() -> str:
    orders = whole(0, "order of words", np.arange(_SENTENCES), len(_ORDERS)).tolist()
    draws = iter(whole(0, "word", np.arange(_SENTENCES * 8), 2**31).tolist())
    sentences = []
    for order in orders:
        words = [kind[next(draws) % len(kind)] for kind in _ORDERS[order]]
        sentences.append(" ".join(words) + _ENDS[next(draws) % len(_ENDS)])
    return "".join(sentences)
