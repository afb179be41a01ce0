"""Pools of words: names, streets, towns, companies and the vocabulary of the news, taken from Faker.

Only Faker's word lists are used, none of its random generators: a pool is the same in every process, whatever the seed.
Another version of Faker may have other words, so a digest of all pools is part of a database's identity. All is ASCII.
"""

from collections.abc import Iterable
from functools import lru_cache
from hashlib import blake2b

import pyarrow as pa
from faker.providers.address.en_US import Provider as Address
from faker.providers.company.en_US import Provider as Company
from faker.providers.internet import Provider as Internet
from faker.providers.lorem.en_US import Provider as Lorem
from faker.providers.person.en_US import Provider as Person

__all__ = [
    "MOST_LETTERS",
    "company_suffixes",
    "digest",
    "email_domains",
    "first_names",
    "last_names",
    "states",
    "streets",
    "towns",
    "vocabulary",
]

MOST_LETTERS = 14


@lru_cache
def first_names() -> tuple[pa.StringArray, pa.StringArray]:
    """Return first names of women and of men."""
    return _pool(Person.first_names_female), _pool(Person.first_names_male)


@lru_cache
def last_names() -> pa.StringArray:
    """Return family names of one word."""
    return _pool(name for name in Person.last_names if name.isalpha())


@lru_cache
def streets() -> pa.StringArray:
    suffixes = Address.street_suffixes
    return _pool(f"{name} {suffixes[i * 7 % len(suffixes)]}" for i, name in enumerate(Person.last_names))


@lru_cache
def towns() -> pa.StringArray:
    prefixes, suffixes = Address.city_prefixes, Address.city_suffixes
    return _pool(
        f"{prefixes[i % len(prefixes)]} {name}" if i % 3 == 0 else f"{name}{suffixes[i % len(suffixes)]}"
        for i, name in enumerate(Person.first_names)
    )


@lru_cache
def states() -> tuple[tuple[str, str], ...]:
    """Return (abbreviation, name) of the 50 states."""
    without_capital = (abbreviation for abbreviation in Address.states_abbr if abbreviation != "DC")
    return tuple(zip(without_capital, Address.states, strict=True))


@lru_cache
def company_suffixes() -> pa.StringArray:
    return _pool(Company.company_suffixes)


@lru_cache
def email_domains() -> pa.StringArray:
    """Return domains that never belong to anybody (RFC 2606)."""
    return _pool(Internet.safe_domain_names)


@lru_cache
def vocabulary() -> tuple[str, ...]:
    """Return words of prose and of business in lower case, some of each length up to `MOST_LETTERS`."""
    business = (word for words in (*Company.bsWords, *Company.catch_phrase_words) for word in words)
    return tuple(
        _pool(
            word.lower() for word in (*Lorem.word_list, *business) if word.isalpha() and len(word) <= MOST_LETTERS
        ).to_pylist()
    )


def digest() -> str:
    """Return a digest of all pools, in eight characters."""
    pools = (
        *first_names(), last_names(), streets(), towns(), company_suffixes(), email_domains(),
    )  # fmt: skip
    text = repr([pool.to_pylist() for pool in pools]) + repr(states()) + repr(vocabulary())
    return blake2b(text.encode(), digest_size=4).hexdigest()


def _pool(words: Iterable[str]) -> pa.StringArray:
    return pa.array(dict.fromkeys(word for word in words if word.isascii()), pa.string())
