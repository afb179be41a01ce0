import numpy as np

from stallmark.stats.ceiling_search import Verdict, enough, judge


def test_a_share_far_from_its_limit_is_decided():
    every = [100] * 20
    assert judge([1, 2] * 10, every, 0.05).verdict == Verdict.HELD
    assert judge([9, 11] * 10, every, 0.05).verdict == Verdict.BROKE
    assert judge([4, 6] * 10, every, 0.05).verdict == Verdict.UNDECIDED


def test_too_few_transactions_decide_nothing():
    found = judge([0] * 10, [10] * 10, 0.05, enough(0.05))
    assert (found.verdict, found.value, found.of) == (Verdict.UNDECIDED, None, 100)
    assert judge([0] * 10, [20] * 10, 0.05, enough(0.05)).verdict == Verdict.HELD


def test_nothing_seen_decides_nothing():
    assert judge([], [], 10).verdict == Verdict.UNDECIDED
    assert judge([0.0] * 5, [0.0] * 5, 10).verdict == Verdict.UNDECIDED
    assert judge([5.0], [1.0], 10).verdict == Verdict.UNDECIDED


def test_the_mean_is_weighted_by_what_was_done():
    found = judge([10, 900] * 5 + [10, 700] * 5, [10, 100] * 10, 8)
    assert found.value == 8100 / 1100
    assert found.low < found.value < found.high


def test_wrong_in_no_more_than_5_of_100_where_seconds_resemble_each_other():
    """Slow transactions come in bursts: a queue builds up and drains. A test by single transactions would be wrong far
    more often."""
    rng = np.random.default_rng(4)
    wrong = by_transactions = 0
    for _ in range(1_000):
        busy = np.repeat(rng.gamma(2, 0.5, 20), 3)  # bursts of three seconds
        done = np.full(60, 100)
        slow = rng.binomial(done, np.clip(0.05 * busy, 0, 1))
        found = judge(slow, done, 0.05)
        wrong += found.verdict != Verdict.UNDECIDED
        share = slow.sum() / done.sum()
        by_transactions += abs(share - 0.05) > 1.96 * np.sqrt(share * (1 - share) / done.sum())
    assert wrong <= 80  # of a skew distribution ten batches are a little too few: 5 % would be 50
    assert by_transactions > 2 * wrong
