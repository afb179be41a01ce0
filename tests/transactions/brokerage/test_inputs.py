"""The inputs of every transaction that users or a timer start."""

import random
from collections.abc import Callable
from math import log2

import numpy as np
import pytest
import scipy  # its parts are imported when first asked for
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq

from stallmark.engines.base import Engine, Session
from stallmark.schema.draw import Floats, Numbers, unit
from stallmark.transactions.brokerage import WORKLOAD
from stallmark.transactions.brokerage.context import ID_SKEW, TIME_SKEW, Context, Skew
from stallmark.transactions.brokerage.read_only import WEEK_SKEW
from stallmark.transactions.workload import Outcome, Transaction

pytestmark = pytest.mark.thorough

KINDS = [*WORKLOAD.users.deck, *WORKLOAD.background.timers]
EACH = pytest.mark.parametrize("kind", KINDS, ids=[kind.name for kind in KINDS])


@EACH
def test_they_are_a_function_of_the_generator(context: Context, kind: type[Transaction]) -> None:
    def drawn(seed: int) -> list[tuple]:
        transaction, rng = kind(context), random.Random(seed)
        return [transaction.inputs(rng) for _ in range(300)]

    assert drawn(3) == drawn(3) != drawn(4)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.reads_only], ids=lambda kind: kind.name)
def test_all_that_is_drawn_is_executed(
    session: Session, context: Context, rng: random.Random, kind: type[Transaction]
) -> None:
    transaction = kind(context)
    assert {transaction.execute(session, transaction.inputs(rng)) for _ in range(30)} == {Outcome.COMMITTED}


# All procedures of the brokerage are there under the names by which their transactions call them


_NAMES = {
    "postgresql": "SELECT proname FROM pg_proc WHERE pronamespace = 'brokerage'::regnamespace",
    "mssql": "SELECT name FROM sys.procedures WHERE schema_id = SCHEMA_ID('brokerage')",
}


def test_every_procedure_is_deployed(engine: Engine, not_deployed: dict[str, str]) -> None:
    assert not_deployed == {}
    called = {frame for kind in WORKLOAD.transactions for frame in kind.frames}
    assert called - {name for (name,) in engine.query(_NAMES[engine.dialect])} == set()


# Skewed draws follow the formula of TPC-E's non-uniform random numbers, and keep its skew if a range is short


DRAWS = 200_000
SURELY = 1e-9  # a p-value below it is no accident
PAGE = 60  # trades
HOUR_MS = 3_600_000

Draw = Callable[[Skew, float, Numbers], Floats]


def skewed(skew: Skew, length: float, bits: Numbers) -> Floats:
    return skew.draw(length, bits)


def uniform(skew: Skew, length: float, bits: Numbers) -> Floats:
    return unit(bits) * length


def ramp(skew: Skew, length: float, bits: Numbers) -> Floats:
    return np.sqrt(unit(bits)) * length


def random_bits(seed: int, count: int = DRAWS) -> Numbers:
    return np.frombuffer(random.Random(seed).randbytes(8 * count), np.uint64)


def published(skew: Skew, length: int) -> Floats:
    """Return the probability of each number by the published formula: a uniform number, and bits of a second one."""
    first, second = np.arange(length)[:, None], np.arange(1 << skew.width)[None, :] << skew.shift
    return np.bincount(((first | second) % length).ravel(), minlength=length) / (length << skew.width)


def misfit(draw: Draw, skew: Skew, length: int) -> float:
    """Return the p-value of draws under the published formula (chi-square)."""
    seen = np.bincount(draw(skew, length, random_bits(1)).astype(int), minlength=length)
    return float(scipy.stats.chisquare(seen, published(skew, length) * DRAWS).pvalue)


@pytest.mark.parametrize(
    ("skew", "length"),
    [(WEEK_SKEW, 256), (Skew(3, 0), 8), (Skew(3, 2), 32), (Skew(4, 1), 96), (Skew(5, 3), 1_024), (Skew(1, 0), 2)],
)
def test_whole_periods_are_drawn_as_published(skew: Skew, length: int) -> None:
    assert misfit(skewed, skew, length) > 0.001
    assert misfit(uniform, skew, length) < SURELY
    if length > 2:  # of two halves a ramp takes the second three times out of four as well
        assert misfit(ramp, skew, length) < SURELY


def blocks(draw: Draw, skew: Skew, length: float, bits: int, periods: int) -> np.ndarray:
    """Return the block of each draw in its period."""
    return (draw(skew, length, random_bits(2)) * (periods << bits) / length).astype(int) % (1 << bits)


def count_misfit(draw: Draw, skew: Skew, length: float, bits: int, periods: int, share: float) -> float:
    """Return the p-value of the numbers of ones among `bits`, if each is 1 with this share (chi-square)."""
    ones = np.bitwise_count(blocks(draw, skew, length, bits, periods))
    expected = scipy.stats.binom.pmf(np.arange(bits + 1), bits, share) * DRAWS
    enough = expected >= 5
    seen = np.bincount(ones, minlength=bits + 1)
    return float(
        scipy.stats.chisquare([*seen[enough], seen[~enough].sum()], [*expected[enough], expected[~enough].sum()]).pvalue
    )


def information(share: float) -> float:
    return float(scipy.stats.entropy([share, 1 - share], [0.5, 0.5], base=2))


def standing_for(width: int, bits: int) -> float:
    """Return the share of ones at which `bits` are as far from fair as `width` with three of four."""
    return float(brentq(lambda share: bits * information(share) - width * information(0.75), 0.5, 0.9999))


TRADES = [
    # days of one load unit, the bits of a block's number, periods
    (300, 16, 2),
    (146, 16, 1),
    (40, 14, 1),
    (5, 11, 1),
    (1, 9, 1),
    (0.2, 6, 1),
]


@pytest.mark.parametrize(("days", "bits", "periods"), TRADES)
def test_bits_of_trades_are_ones_as_often_as_they_should(days: float, bits: int, periods: int) -> None:
    length = days * 57_600
    assert bits == min(16, round(log2(length / periods / 128)))
    share = standing_for(16, bits)
    assert bits < 16 or share == pytest.approx(0.75)
    assert count_misfit(skewed, ID_SKEW, length, bits, periods, share) > 0.001
    for other in (uniform, ramp):
        assert count_misfit(other, ID_SKEW, length, bits, periods, share) < SURELY
    drawn = blocks(skewed, ID_SKEW, length, bits, periods)
    each = [np.mean(drawn >> bit & 1) for bit in range(bits)]
    assert each == pytest.approx([share] * bits, abs=0.005)


def hottest(places: np.ndarray, count: int, share: float) -> float:
    """Return the share of draws in the hottest `share` of `count` places."""
    seen = np.sort(np.bincount(places.astype(int), minlength=count))[::-1]
    return float(seen[: round(count * share)].sum() / seen.sum())


@pytest.mark.parametrize("days", [300, 40, 5, 1, 0.2])
def test_the_hottest_pages_of_trades_stay_as_hot_at_every_length(days: float) -> None:
    """By the published formula they have 78 % and 89 % of the draws in 300 days, and only 22 % and 38 % in 5. Six pages
    of 300 days count as one, as draws would not tell them apart."""
    length = days * 57_600
    places = min(50_000, round(length / PAGE))
    bits = random_bits(3, 3 * DRAWS)

    def of(draw: Draw, share: float) -> float:
        return hottest(draw(ID_SKEW, length, bits) * places / length, places, share)

    assert of(skewed, 0.1) == pytest.approx(0.78, abs=0.05)
    assert of(skewed, 0.2) == pytest.approx(0.89, abs=0.03)
    for other in (uniform, ramp):
        assert of(other, 0.1) < 0.35 and of(other, 0.2) < 0.5


@pytest.mark.parametrize(
    ("hours", "bits", "periods"), [(2_368, 12, 32), (2_396 + 2 / 3, 12, 32), (288, 12, 4), (20, 10, 1)]
)
def test_bits_of_start_times_are_ones_as_often_as_they_should(hours: float, bits: int, periods: int) -> None:
    share = standing_for(12, bits)
    assert count_misfit(skewed, TIME_SKEW, hours * HOUR_MS, bits, periods, share) > 0.001
    for other in (uniform, ramp):
        assert count_misfit(other, TIME_SKEW, hours * HOUR_MS, bits, periods, share) < SURELY


def test_periods_are_alike_and_blocks_even_inside() -> None:
    length, periods, bits = 17_280_000, 2, 16
    drawn = ID_SKEW.draw(length, random_bits(4)) * periods / length
    assert scipy.stats.binomtest(int(np.sum(drawn < 1)), DRAWS).pvalue > 0.001
    within = drawn * (1 << bits) % 1
    assert scipy.stats.kstest(within, "uniform").pvalue > 0.001


@given(
    width=st.integers(1, 16),
    shift=st.integers(0, 16),
    length=st.floats(1, 1e11),
    some=st.lists(st.sampled_from([0, 2**64 - 1]) | st.integers(0, 2**64 - 1), min_size=1, max_size=20),
)
def test_draws_are_in_the_range_and_in_the_order_of_their_bits(
    width: int, shift: int, length: float, some: list[int]
) -> None:
    drawn = Skew(width, shift).draw(length, np.array(sorted(some), np.uint64))
    assert drawn[0] >= 0 and drawn[-1] < length
    assert (np.diff(drawn) >= 0).all()
