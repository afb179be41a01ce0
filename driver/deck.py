"""The mix of transactions as a shuffled deck: a true permutation, not a weighted draw.

After every full deck the mix is met exactly, so two runs differ in order only.
"""

import random
import threading
from collections.abc import Mapping
from typing import Generic, TypeVar

Card = TypeVar("Card")


class Dealer(Generic[Card]):
    """A dealer of cards to all users of an executor, so that what is dealt is never further from the mix than one
    deck allows."""

    def __init__(self, deck: Mapping[Card, int], rng: random.Random):
        self._cards = [card for card, count in deck.items() for _ in range(count)]
        self._rng = rng
        self._left: list[Card] = []
        self._lock = threading.Lock()

    def next_card(self) -> Card:
        """Return the next card. The deck is reshuffled when it is used up."""
        with self._lock:
            if not self._left:
                self._left = self._cards.copy()
                self._rng.shuffle(self._left)
            return self._left.pop()
