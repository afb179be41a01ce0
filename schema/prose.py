"""Free text: articles of chosen compressibility, and short English ones.

An article is a row of phrases of 32 characters. Most are English, and neighbouring texts have a stock of only 32 of
them, so that they come back within a page of 8 KiB, which is what an LZ compressor finds. The others are random
letters, which it cannot shorten: their share sets the ratio. Phrases follow each other at random, so that no stretch
of 4 KiB comes twice and deduplication finds nothing.

The ratio is that of LZ4, as fast as what arrays use inline. A compressor that also codes single letters finds more:
zlib and zstd make 2.8:1 of 2:1.
"""

from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from stallmark.schema import words
from stallmark.schema.arrays import Ints
from stallmark.schema.draw import bits, whole
from stallmark.schema.hashing import hashed

WIDTH = 32  # of a phrase, with the blank after it
STOCK = 32  # English phrases
NEIGHBOURS = 256  # texts that share a stock

COMPRESSIBILITY, COMPRESSIBILITIES = 2.0, (1.3, 4.0)  # unless a scale says otherwise; the least and the most

_PAGE = 8192
_PHRASES, _NOISE = 2**12, 2**15  # in the pool: English first
_LETTERS = np.frombuffer(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-", np.uint8)
# What LZ4 needs for a phrase, in bytes: one that it has seen in the page, and one that it has not. Fitted.
_SEEN, _NEW = 3.9, 31.7


def prose(seed: int, what: str, number: Ints, lengths: Ints, compressibility: float) -> pa.StringArray:
    """Return a text of the given length for each of `number`; `what` tells the columns apart. All together below
    2 GiB."""
    phrases = -(-lengths // WIDTH)
    ends = np.cumsum(phrases)
    within = np.arange(ends[-1]) - np.repeat(ends - phrases, phrases)
    draws = bits(seed, f"{what} phrase", np.repeat(number << 16, phrases) + within)
    themes = np.repeat(whole(seed, f"{what} theme", number // NEIGHBOURS, _PHRASES), phrases)
    is_noise = (draws & np.uint64(0xFFFF)) < np.uint64(noise_share(compressibility) * 0x10000)
    drawn = (draws >> np.uint64(32)).astype(np.int64)
    places = np.where(is_noise, _PHRASES + drawn % _NOISE, (themes + drawn % STOCK) % _PHRASES)
    return _cut(_pool().take(places).view(np.uint8), phrases * WIDTH, lengths)


def short(seed: int, what: str, number: Ints, phrases: Ints) -> pa.StringArray:
    """Return English texts of so many phrases, which end with a whole word and a full stop."""
    ends = np.cumsum(phrases)
    within = np.arange(ends[-1]) - np.repeat(ends - phrases, phrases)
    draws = whole(seed, f"{what} phrase", np.repeat(number << 16, phrases) + within, _PHRASES)
    text = _pool().take(draws).view(np.uint8)
    text[ends * WIDTH - 1] = ord(".")
    text[(ends - phrases) * WIDTH] -= ord("a") - ord("A")
    offsets = np.append(0, ends * WIDTH).astype(np.int32)
    return pa.StringArray.from_buffers(len(number), pa.py_buffer(offsets), pa.py_buffer(text))


@lru_cache
def noise_share(compressibility: float) -> float:
    """Return the share of random phrases with which LZ4 compresses pages of 8 KiB to 1 / `compressibility`.

    A page has 256 phrases. Of the English ones LZ4 stores in full those that are the first of their kind in the page,
    and of the others a reference. That is solved for the share.
    """
    share = np.linspace(0, 1, 1_001)
    of_page = _PAGE / WIDTH
    english = of_page * (1 - share)
    kinds = STOCK * (1 - (1 - 1 / STOCK) ** english)
    compressed = (_NEW * (of_page * share + kinds) + _SEEN * (english - kinds)) / _PAGE
    return float(np.interp(1 / compressibility, compressed, share))


def _cut(text: npt.NDArray[np.uint8], widths: Ints, lengths: Ints) -> pa.StringArray:
    """Return the first `lengths` characters of consecutive stretches of `widths`."""
    kept_and_left_out = np.stack([lengths, widths - lengths], axis=1).ravel()
    offsets = np.append(0, np.cumsum(kept_and_left_out)).astype(np.int32)
    pieces = pa.StringArray.from_buffers(len(offsets) - 1, pa.py_buffer(offsets), pa.py_buffer(text))
    return pieces.take(pa.array(np.arange(0, len(pieces), 2)))


@lru_cache
def _pool() -> npt.NDArray[np.void]:
    """Return all phrases, English ones first."""
    noise = _LETTERS[hashed(0, np.arange(_NOISE * WIDTH // 8, dtype=np.uint64)).view(np.uint8) & 63]
    noise.reshape(_NOISE, WIDTH)[:, -1] = ord(" ")
    english = np.frombuffer("".join(_english()).encode(), np.uint8)
    return np.concatenate([english, noise]).view(f"V{WIDTH}")


def _english() -> list[str]:
    """Return phrases of the vocabulary's words, each as wide as any other: the last word is one that fills it."""
    by_length: dict[int, list[str]] = {}
    for word in words.vocabulary():
        by_length.setdefault(len(word), []).append(word)
    shorter = [word for word in words.vocabulary() if len(word) < words.MOST_LETTERS]
    draws = iter(hashed(1, np.arange(_PHRASES * WIDTH // 2, dtype=np.uint64)).tolist())
    phrases = []
    for _ in range(_PHRASES):
        phrase = ""
        while (left := WIDTH - 1 - len(phrase)) > 0:
            fitting = shorter if left > words.MOST_LETTERS else by_length[left]
            phrase += fitting[next(draws) % len(fitting)] + " "
        phrases.append(phrase)
    return phrases
