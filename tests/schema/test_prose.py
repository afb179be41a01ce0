"""Free text: of the length and the compressibility that was asked for, and never twice the same."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stallmark.schema import words
from stallmark.schema.words import WIDTH, prose, short

PAGE = 8192
RATIOS = st.floats(1.3, 4)


def lz4_ratio(texts: pa.StringArray) -> float:
    """Of whole pages."""
    text = "".join(texts.to_pylist()).encode()
    pages = [text[start : start + PAGE] for start in range(0, len(text) - PAGE, PAGE)]
    return PAGE * len(pages) / sum(len(pa.compress(page, "lz4_raw", asbytes=True)) for page in pages)


@pytest.mark.parametrize("target", [1.3, 1.5, 2, 2.5, 3, 3.5, 4])
def test_articles_compress_as_asked(target: float) -> None:
    lengths = np.random.default_rng(1).integers(1, 100_001, 40)
    assert lz4_ratio(prose(5, "body", np.arange(40), lengths, target)) == pytest.approx(target, rel=0.1)


@given(
    seed=st.integers(0, 2**62),
    first=st.integers(0, 10**7),
    lengths=st.lists(st.integers(1, 3_000), min_size=1, max_size=8),
    ratio=RATIOS,
)
def test_a_text_does_not_depend_on_the_others(seed: int, first: int, lengths: list[int], ratio: float) -> None:
    number = first + np.arange(len(lengths))
    together = prose(seed, "body", number, np.array(lengths), ratio).to_pylist()
    assert [len(text) for text in together] == lengths
    assert all(text.isascii() and text.isprintable() for text in together)
    alone = [
        prose(seed, "body", number[[place]], np.array([length]), ratio)[0].as_py()
        for place, length in enumerate(lengths)
    ]
    assert alone == together


def test_seed_column_and_number_decide() -> None:
    length = np.full(2, 500)
    one, neighbour = prose(1, "body", np.arange(2), length, 2).to_pylist()
    others = [
        prose(2, "body", np.arange(1), length[:1], 2)[0].as_py(),
        prose(1, "summary", np.arange(1), length[:1], 2)[0].as_py(),
        prose(1, "body", np.arange(1), length[:1], 3)[0].as_py(),
        neighbour,
    ]
    assert one not in others


@pytest.mark.parametrize("ratio", [1.3, 4])
def test_no_stretch_comes_twice(ratio: float) -> None:
    """Deduplication looks for equal blocks of 4 KiB; here not even 32 phrases in a row are equal."""
    texts = prose(3, "body", np.arange(100), np.full(100, 50_000), ratio).to_pylist()
    stretches = [text[start : start + 32 * WIDTH] for text in texts for start in range(0, 50_000 - 32 * WIDTH, WIDTH)]
    assert len(set(stretches)) == len(stretches)


def test_english_phrases_are_words_of_the_vocabulary() -> None:
    text = prose(3, "body", np.arange(1), np.array([64 * WIDTH]), 1e9)[0].as_py()
    known = set(words.vocabulary())
    for start in range(0, len(text), WIDTH):
        phrase = text[start : start + WIDTH]
        assert phrase.endswith(" ")
        assert set(phrase.split()) <= known


def test_short_texts_are_english_sentences_of_whole_words() -> None:
    phrases = np.array([2, 5, 7])
    known = set(words.vocabulary())
    texts = short(3, "summary", np.arange(3), phrases).to_pylist()
    assert [len(text) for text in texts] == (phrases * WIDTH).tolist()
    for number, text in enumerate(texts):
        assert text[0].isupper() and text.endswith(".")
        assert set(text[:-1].lower().split()) <= known
        assert short(3, "summary", np.array([number]), phrases[[number]])[0].as_py() == text
