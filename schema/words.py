"""Words and texts: names, streets and companies from Faker, articles of chosen compressibility."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from hashlib import blake2b
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from stallmark.schema.draw import Ints, bits, hashed, whole

# Arrow columns out of NumPy arrays and pools of words.


def decimals(units: Ints, precision: int, scale: int = 2) -> pa.Array:
    """Return decimals from whole numbers of their last digit, for money: from cents. No larger than 64 bits."""
    words = np.empty((len(units), 2), np.int64)
    words[:, 0] = units
    words[:, 1] = units >> 63  # the sign, carried on
    return pa.Array.from_buffers(pa.decimal128(precision, scale), len(units), [None, pa.py_buffer(words)])


def chosen(pool: pa.StringArray | Sequence[str], places: Ints) -> pa.StringArray:
    """Return the texts of a pool at those places."""
    texts = pool if isinstance(pool, pa.Array) else pa.array(pool, pa.string())
    return texts.take(pa.array(places))


# Pools of words: names, streets, towns, companies and the vocabulary of the news, taken from Faker.
#
# Only Faker's word lists are used, none of its random generators: a pool is the same in every process, whatever the
# seed. Another version of Faker may have other words, so a digest of all pools is part of a database's identity. All is
# ASCII.

MOST_LETTERS = 14


def _faker_words(topic: str) -> Any:
    """Return Faker's words on a topic. Importing it takes a quarter of a second, and most processes draw no word."""
    return import_module(f"faker.providers.{topic}").Provider


@lru_cache
def first_names() -> tuple[pa.StringArray, pa.StringArray]:
    """Return first names of women and of men."""
    person = _faker_words("person.en_US")
    return _pool(person.first_names_female), _pool(person.first_names_male)


@lru_cache
def last_names() -> pa.StringArray:
    """Return family names of one word."""
    return _pool(name for name in _faker_words("person.en_US").last_names if name.isalpha())


@lru_cache
def streets() -> pa.StringArray:
    suffixes, names = _faker_words("address.en_US").street_suffixes, _faker_words("person.en_US").last_names
    return _pool(f"{name} {suffixes[i * 7 % len(suffixes)]}" for i, name in enumerate(names))


@lru_cache
def towns() -> pa.StringArray:
    address = _faker_words("address.en_US")
    prefixes, suffixes = address.city_prefixes, address.city_suffixes
    return _pool(
        f"{prefixes[i % len(prefixes)]} {name}" if i % 3 == 0 else f"{name}{suffixes[i % len(suffixes)]}"
        for i, name in enumerate(_faker_words("person.en_US").first_names)
    )


@lru_cache
def states() -> tuple[tuple[str, str], ...]:
    """Return (abbreviation, name) of the 50 states."""
    address = _faker_words("address.en_US")
    without_capital = (abbreviation for abbreviation in address.states_abbr if abbreviation != "DC")
    return tuple(zip(without_capital, address.states, strict=True))


@lru_cache
def company_suffixes() -> pa.StringArray:
    return _pool(_faker_words("company.en_US").company_suffixes)


@lru_cache
def email_domains() -> pa.StringArray:
    """Return domains that never belong to anyone (RFC 2606)."""
    return _pool(_faker_words("internet").safe_domain_names)


@lru_cache
def vocabulary() -> tuple[str, ...]:
    """Return words of prose and of business in lower case, some of each length up to `MOST_LETTERS`."""
    prose, company = _faker_words("lorem.en_US").word_list, _faker_words("company.en_US")
    business = (word for words in (*company.bsWords, *company.catch_phrase_words) for word in words)
    return tuple(
        _pool(word.lower() for word in (*prose, *business) if word.isalpha() and len(word) <= MOST_LETTERS).to_pylist()
    )


@lru_cache
def digest() -> str:
    """Return a digest of all pools, in eight characters."""
    pools = (
        *first_names(), last_names(), streets(), towns(), company_suffixes(), email_domains(),
    )  # fmt: skip
    text = repr([pool.to_pylist() for pool in pools]) + repr(states()) + repr(vocabulary())
    return blake2b(text.encode(), digest_size=4).hexdigest()


def _pool(words: Iterable[str]) -> pa.StringArray:
    return pa.array(dict.fromkeys(word for word in words if word.isascii()), pa.string())


# Free text: articles of chosen compressibility, and short English ones.
#
# An article is a row of phrases of 32 characters. Most are English, and neighbouring texts have a stock of only 32 of
# them, so that they come back within a page of 8 KiB, which is what an LZ compressor finds. The others are random
# letters, which it cannot shorten: their share sets the ratio. Phrases follow each other at random, so that no
# stretch of 4 KiB comes twice and deduplication finds nothing.
#
# The ratio is that of LZ4, as fast as what arrays use inline. A compressor that also codes single letters finds more:
# zlib and zstd make 2.8:1 of 2:1.

WIDTH = 32  # bytes of a phrase, with the blank after it
STOCK = 32  # English phrases
NEIGHBOURS = 256  # texts that share a stock

COMPRESSIBILITY, COMPRESSIBILITIES = 2.0, (1.3, 4.0)  # unless a scale says otherwise; the least and the most

_PAGE = 8192
_PHRASES, _NOISE = 2**12, 2**15  # phrases in the pool: English first
_LETTERS = np.frombuffer(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-", np.uint8)
# What LZ4 needs for a phrase, in bytes: one that it has seen in the page, and one that it has not. Fitted.
_SEEN, _NEW = 3.9, 31.7


def prose(seed: int, name: str, number: Ints, lengths: Ints, compressibility: float) -> pa.StringArray:
    """Return a text of the given length for each of `number`; The column's `name` makes the texts differ. All together
    are below 2 GiB."""
    phrases = -(-lengths // WIDTH)
    ends = np.cumsum(phrases)
    within = np.arange(ends[-1]) - np.repeat(ends - phrases, phrases)
    draws = bits(seed, f"{name} phrase", np.repeat(number << 16, phrases) + within)
    themes = np.repeat(whole(seed, f"{name} theme", number // NEIGHBOURS, _PHRASES), phrases)
    is_noise = (draws & np.uint64(0xFFFF)) < np.uint64(noise_share(compressibility) * 0x10000)
    drawn = (draws >> np.uint64(32)).astype(np.int64)
    places = np.where(is_noise, _PHRASES + drawn % _NOISE, (themes + drawn % STOCK) % _PHRASES)
    return _cut(_article_pool().take(places).view(np.uint8), phrases * WIDTH, lengths)


def short(seed: int, name: str, number: Ints, phrases: Ints) -> pa.StringArray:
    """Return English texts with the given numbers of `phrases`. Each ends with a complete word and a full stop."""
    ends = np.cumsum(phrases)
    within = np.arange(ends[-1]) - np.repeat(ends - phrases, phrases)
    draws = whole(seed, f"{name} phrase", np.repeat(number << 16, phrases) + within, _PHRASES)
    text = _article_pool().take(draws).view(np.uint8)
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
def _article_pool() -> npt.NDArray[np.void]:
    """Return all phrases, English ones first."""
    noise = _LETTERS[hashed(0, np.arange(_NOISE * WIDTH // 8, dtype=np.uint64)).view(np.uint8) & 63]
    noise.reshape(_NOISE, WIDTH)[:, -1] = ord(" ")
    english = np.frombuffer("".join(_english()).encode(), np.uint8)
    return np.concatenate([english, noise]).view(f"V{WIDTH}")


def _english() -> list[str]:
    """Return phrases of the vocabulary's words, each as wide as any other: the last word is one that fills it."""
    by_length: dict[int, list[str]] = {}
    for word in vocabulary():
        by_length.setdefault(len(word), []).append(word)
    shorter = [word for word in vocabulary() if len(word) < MOST_LETTERS]
    draws = iter(hashed(1, np.arange(_PHRASES * WIDTH // 2, dtype=np.uint64)).tolist())
    phrases = []
    for _ in range(_PHRASES):
        phrase = ""
        while (left := WIDTH - 1 - len(phrase)) > 0:
            fitting = shorter if left > MOST_LETTERS else by_length[left]
            phrase += fitting[next(draws) % len(fitting)] + " "
        phrases.append(phrase)
    return phrases
