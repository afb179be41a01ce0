"""Pools of words: without doubles, in ASCII, and wide enough."""

import pyarrow as pa
import pytest

from stallmark.schema import words

POOLS = {
    "women": lambda: words.first_names()[0].to_pylist(), "men": lambda: words.first_names()[1].to_pylist(),
    "last names": lambda: words.last_names().to_pylist(), "streets": lambda: words.streets().to_pylist(),
    "towns": lambda: words.towns().to_pylist(), "states": lambda: [name for pair in words.states() for name in pair],
    "company suffixes": lambda: words.company_suffixes().to_pylist(),
    "e-mail domains": lambda: words.email_domains().to_pylist(), "vocabulary": lambda: list(words.vocabulary()),
}  # fmt: skip


@pytest.mark.parametrize("name", POOLS)
def test_pools_are_of_ascii_words_without_doubles(name: str) -> None:
    pool = POOLS[name]()
    assert len(pool) >= 3
    assert len(set(pool)) == len(pool)
    assert all(word.isascii() and word.isprintable() and word == word.strip() != "" for word in pool)


def test_names_make_more_companies_than_there_are() -> None:
    """10,000,000 customers have 5,000,000 companies; names are made of two family names and a legal form."""
    assert len(words.last_names()) ** 2 * len(words.company_suffixes()) > 5_000_000
    assert not any(" " in name for name in words.last_names().to_pylist())


def test_the_vocabulary_has_words_of_each_length() -> None:
    assert {len(word) for word in words.vocabulary()} == set(range(1, words.MOST_LETTERS + 1))


def test_there_are_fifty_states() -> None:
    assert len(words.states()) == 50
    assert ("WY", "Wyoming") in words.states()
    assert ("DE", "Delaware") in words.states()
    assert ("FL", "Florida") in words.states()


def test_a_pool_is_built_once() -> None:
    assert words.towns() is words.towns()
    assert isinstance(words.towns(), pa.Array)
