"""The deviation of the mix from the deck by chance alone.

Each executor deals from a shuffled deck of its own, without replacement. A measured interval is a window over the cards
dealt, which begins and ends somewhere within a deck. Whole decks inside it have exactly their shares. Of a part of m
cards of a deck of N, the number of one type is hypergeometric. Its variance is m · p (1 − p) · (N − m) / (N − 1). The
window's place in the deck is not known: the variance is the mean over all places, each as likely.
"""

import math

import numpy as np


def variance(dealt: float, deck: int, share: float, executors: int) -> float:
    """Return the variance of the number of cards of one type (`share` of the `deck`'s cards) among those `dealt`. All
    executors are taken to deal alike."""
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
    """Return the standard deviation of the number of one type that ended within an interval, against its share of all
    that did.

    Those that ended are those dealt, plus those under way when it began, less those under way when it ended. The latter
    two are taken as Poisson numbers: an upper bound, as no more are under way than there are users. Other types count
    because they change the total that the share is taken of.
    """
    ends = 2 * ((1 - share) ** 2 * under_way + share**2 * others_under_way)
    return math.sqrt(variance(dealt, deck, share, executors) + ends)
