"""The mix of transactions as a shuffled deck: a true permutation, not a weighted draw.

After every full deck the mix is met exactly, so two runs differ in order only.
"""

import random
from collections.abc import Iterator, Mapping
from typing import TypeVar

Card = TypeVar("Card")


def deal(deck: Mapping[Card, int], rng: random.Random) -> Iterator[Card]:
    """Deal cards for ever, reshuffling at the end of each deck."""
    cards = [card for card, count in deck.items() for _ in range(count)]
    while len(cards) > 1:
        rng.shuffle(cards)
        yield from cards
    while True:
        yield cards[0]
