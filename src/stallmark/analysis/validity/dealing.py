"""How far the mix may be from the deck by chance alone.

Each executor deals from a shuffled deck of its own, without replacement. A measured interval is a window over what was
dealt: it begins and ends somewhere within a deck. Whole decks inside it have exactly their shares; of a part of m cards
of a deck of N, the number of one type is hypergeometric, with variance m · p (1 − p) · (N − m) / (N − 1). Where in the
deck the window begins is not known: the variance is the mean over all places, each as likely.
"""

import math

import numpy as np


def variance(dealt: float, deck: int, share: float, executors: int) -> float:
    """Of the number of cards of one type (`share` of the `deck`'s cards) among those `dealt` by all executors alike."""
    each = round(dealt / executors)
    if deck < 2 or not each:
        return 0.0
    begin = np.arange(deck)  # cards of the first deck that were dealt before the window
    head = np.minimum(each, deck - begin)
    tail = (each - head) % deck
    parts = head * (deck - head) + tail * (deck - tail)
    return executors * share * (1 - share) * float(parts.mean()) / (deck - 1)


def deviation(
    dealt: float, deck: int, share: float, executors: int, under_way: float, others_under_way: float
) -> float:
    """Standard deviation of how many of one type ended within an interval, against its share of all that did.

    What ended in it is what was dealt in it, and those under way (on average) when it began, without those when it
    ended: taken as two Poisson numbers, an upper bound, for no more are under way than there are users. Those of other
    types count because they change of how many the share is taken.
    """
    ends = 2 * ((1 - share) ** 2 * under_way + share**2 * others_under_way)
    return math.sqrt(variance(dealt, deck, share, executors) + ends)
