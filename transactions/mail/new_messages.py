"""New messages and bodies, with the sizes and the compressibility of loaded messages.

Each body is cut out of one long text, from any phrase on, so it costs the driver no more than a copy. Almost no two
begin at the same place of a page, so deduplication finds as little as among loaded messages.
"""

import random
from typing import NamedTuple

import numpy as np

from stallmark.schema.mail.scale import MOST_BYTES

_STOCK_BYTES = 2 * MOST_BYTES
_PEOPLE = 1_000


class NewMessage(NamedTuple):
    sender: str
    subject: str
    body: str


class NewMessages:
    """The texts that a process makes new messages of. These are a pure function of the seed and a generator."""

    def __init__(self, seed: int, compressibility: float):
        # Not before a load begins: the words of Faker take half a second to come.
        from stallmark.schema.mail.messages import DELIVERED, bodies, likely_sizes, senders, subjects
        from stallmark.schema.words import WIDTH

        self._width = WIDTH
        [self._text] = bodies(seed, np.array([DELIVERED]), np.array([_STOCK_BYTES]), compressibility).to_pylist()
        number = DELIVERED + np.arange(_PEOPLE)
        self._senders: list[str] = senders(seed, number).to_pylist()
        self._subjects: list[str] = subjects(seed, number).to_pylist()
        self._sizes = likely_sizes().tolist()

    def message(self, rng: random.Random) -> NewMessage:
        return NewMessage(rng.choice(self._senders), rng.choice(self._subjects), self.body(rng))

    def body(self, rng: random.Random) -> str:
        size = rng.choice(self._sizes)
        start = self._width * int(rng.random() * ((_STOCK_BYTES - size) // self._width))
        return self._text[start : start + size - 1] + "."
