"""The bank's tables are pgbench's, as pgbench itself makes them."""

import subprocess
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stallmark.engines.postgres.embedded_engine import EmbeddedEngine
from stallmark.engines.postgres.embedded_server import EmbeddedServer, binary
from stallmark.loaders.load import build
from stallmark.schema import words
from stallmark.schema.words import WIDTH, prose, short
from stallmark.transactions.bank import WORKLOAD

COLUMNS = """
SELECT attname, format_type(atttypid, atttypmod), attnotnull
  FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 ORDER BY attnum"""
KEYS = """
SELECT contype, pg_get_constraintdef(oid) FROM pg_constraint
 WHERE conrelid = %s::regclass AND contype <> 'n' ORDER BY 1, 2"""
FILL_FACTOR = """
SELECT coalesce(substring(reloptions::text FROM 'fillfactor=(\\d+)'), '100')
  FROM pg_class WHERE oid = %s::regclass"""


def pgbench(database: EmbeddedEngine, *arguments: str) -> str:
    result = subprocess.run(
        [binary("pgbench"), *arguments, database.spec()], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.fixture(scope="module")
def bank(embedded_server: EmbeddedServer) -> EmbeddedEngine:
    engine = EmbeddedEngine(embedded_server, "beside_pgbench")
    build(engine, WORKLOAD, {"branches": 1}, 1, workers=1)
    return engine


def test_same_as_pgbench(bank: EmbeddedEngine) -> None:
    pgbench(bank, "-i", "-q", "-s1")
    for table in ("branches", "tellers", "accounts", "history"):
        for question in (COLUMNS, KEYS, FILL_FACTOR):
            assert bank.query(question, [f"bank.{table}"]) == bank.query(question, [f"pgbench_{table}"])
            assert bank.query(question, [f"bank.{table}"]) or table == "history"


def test_pgbench_script_runs(bank: EmbeddedEngine, tmp_path: Path) -> None:
    shown = subprocess.run([binary("pgbench"), "--show-script=tpcb-like"], capture_output=True, text=True, check=True)
    script = tmp_path / "peer.sql"
    script.write_text((shown.stdout or shown.stderr).replace("pgbench_", "bank."))
    pgbench(bank, "-n", "-s1", "-t25", "-c2", f"-f{script}")
    assert bank.query("SELECT count(*) FROM bank.history") == [(50,)]
    # Our function writes what its statements write: same columns filled, same columns left null.
    bank.query("SELECT bank.transfer(7, 3, 1, 100)")
    shapes = bank.query(
        "SELECT DISTINCT tid IS NULL, bid IS NULL, aid IS NULL, delta IS NULL, mtime IS NULL, filler IS NULL "
        "FROM bank.history"
    )
    assert shapes == [(False, False, False, False, False, True)]


# Pools of words: without doubles, in ASCII, and wide enough


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


# Free text: of the length and the compressibility that was asked for, and never twice the same


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


@pytest.mark.thorough
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
