"""Each validity gate at both sides of its threshold."""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stallmark.analysis import validity_gates as gates
from stallmark.analysis.read.transactions import Lateness, TransactionSummary
from stallmark.analysis.validity_gates import GateKind, deviation, variance
from stallmark.driver.pacing import Dealer
from stallmark.record.manifest.course import Condition, Unheard
from stallmark.record.manifest.workload import Counted, Follows, Transaction, Workload

ORDER = Transaction(name="trade_order", cards=101, limit_s=2.0)
STATUS, RESULT = (
    Transaction(name="trade_status", cards=303, limit_s=1.0),
    Transaction(name="trade_result", cards=100, source="followers"),
)
TRADING = Workload(transactions=(ORDER, STATUS, RESULT))
EACH = {"trade_result": 100 / 101, "market_feed": 10 / 101}


def kind(name: str, committed: int = 1000, **more) -> TransactionSummary:
    counts = more.pop("rolled_back", 0), more.pop("failed", 0), 0
    return TransactionSummary(name, committed, *counts, 1.0, 1.0, {}, {}, **more)


def of_mix(order: int, status: int, under_way: float = 0.0) -> gates.Gate:
    gate = gates.mix(TRADING, {"trade_order": order, "trade_status": status}, {"trade_order": under_way}, executors=2)
    assert gate
    return gate


def test_a_mix_within_a_percent_or_within_chance_passes():
    assert of_mix(25_200, 74_800).passed and of_mix(25_200, 74_800).limit == 0.01
    few = of_mix(27, 73)
    assert few.passed and few.value > 0.01 and few.facts["by_chance"]
    failed = of_mix(24_600, 75_400)
    assert failed.passed is False and failed.voids and failed.failure.kind is GateKind.MIX
    assert failed.facts["transaction"] == "trade_order" and failed.facts["off"] == pytest.approx(-0.016)


def test_more_under_way_at_the_ends_explain_more():
    assert not of_mix(2_700, 7_300).passed
    assert of_mix(2_700, 7_300, under_way=4_000).passed


def test_a_single_type_or_none_that_ended_has_no_mix():
    assert gates.mix(Workload(transactions=(ORDER,)), {"trade_order": 10}, {}, 1) is None
    assert gates.mix(TRADING, {}, {}, 1) is None
    assert gates.mix(Workload(), {"transfer": 10}, {}, 1) is None


def following(results: int, orders: int = 10_100, before: tuple[int, int] = (1_010, 900), **more) -> gates.Following:
    name = more.get("of", "trade_result")
    follows = Follows(transaction="trade_order", each=EACH[name])
    return gates.Following(name, follows, orders, more.get("rolled_back", 100), results, *before)


def test_followers_may_differ_by_what_is_under_way():
    steady = gates.followers([following(10_000)], executors=2, seconds=100)
    assert steady and steady.passed and steady.facts["expected_each"] == pytest.approx(0.990, abs=1e-3)
    explained = gates.followers([following(100, orders=110)], executors=2, seconds=100)  # 100 under way, 108.9 due
    assert explained and explained.passed and explained.limit > 0.3
    lost = gates.followers([following(9_000)], executors=2, seconds=100)
    assert lost and lost.passed is False and lost.failure.kind is GateKind.FOLLOWERS
    assert lost.facts["each"] == pytest.approx(0.891, abs=1e-3)
    assert (lost.facts["under_way_at_begin"], lost.facts["under_way_at_end"]) == pytest.approx((100, 1100))


def test_what_is_under_way_goes_up_and_down_with_the_rate():
    """100 under way at the beginning and 500 at the end: of 100 a second that is 5 s."""
    found = following(9_600)
    changing = gates.followers([found], executors=2, seconds=100)
    assert changing and changing.passed and changing.limit == 0.1
    held_back = gates.followers([found], executors=2, seconds=1_000)  # 50 s of 10 a second
    assert held_back and held_back.passed is False


def test_the_followers_furthest_off_are_told():
    feeds = following(600, of="market_feed", before=(1_010, 99))
    gate = gates.followers([following(10_000), feeds], executors=2, seconds=100)
    assert gate and gate.passed is False and gate.facts["transaction"] == "market_feed"
    assert gates.followers([following(0, orders=0)], executors=2, seconds=100) is None


def test_a_stuck_market_does_not_explain_itself():
    """However many are under way at the end because none came: the deviation grows faster than its root."""
    gate = gates.followers([following(0, orders=1_010)], executors=2, seconds=100)
    assert gate and gate.passed is False


@pytest.mark.parametrize(("aborted", "passes"), [(100, True), (102, False)])
def test_aborts(aborted, passes):
    gate = gates.aborts([kind("trade_result", 1_000, aborted=aborted), kind("trade_status", 9_050)])
    assert gate and gate.passed is passes and gate.facts["transaction"] == "trade_result"
    assert (gate.failure and gate.failure.kind) == (None if passes else GateKind.ABORTS)
    assert gates.aborts([]) is None


def test_locks():
    waits = dict.fromkeys(("io", "wal", "cpu", "client", "other"), 0.1)
    assert gates.locks(None) is None
    assert gates.locks(waits | {"lock": 0.2}).passed
    assert gates.locks(waits | {"lock": 0.21}).failure.kind is GateKind.LOCKS


def test_limits_need_ten_beyond_them_and_do_not_void_a_step():
    def judged(order: float, status: float, done: int = 1000) -> gates.Gate:
        gate = gates.limits(
            [
                kind("trade_order", done, over_limit=order, limit_s=2.0),
                kind("trade_status", done, over_limit=status, limit_s=1.0),
                kind("data_maintenance", done),
            ]
        )
        assert gate
        return gate

    assert judged(0.1, 0.05).passed
    slow = judged(0.02, 0.101)
    assert slow.failure.kind is GateKind.LIMITS and not slow.voids
    assert slow.facts["slow"] == [["trade_status", 0.101, 1.0]]
    assert judged(0.3, 0.0, done=20).passed  # six of twenty
    assert judged(0.5, 0.0, done=20).passed is False
    assert gates.limits([kind("trade_order", 5, failed=95, over_limit=0.95, limit_s=2.0)]).passed is False
    assert gates.limits([kind("data_maintenance")]) is None


def test_lag_is_lateness_or_a_queue_that_grows():
    assert gates.lag(None) is None
    assert gates.lag(Lateness(0.1, 3.0, 40.0, 2.0, 4.0)).passed
    late = gates.lag(Lateness(0.3, 3.0, 40.0, 12.0, 13.0))
    assert late.failure.kind is GateKind.LAG and not late.facts["grows"]
    grows = gates.lag(Lateness(0.05, 3.0, 40.0, 1.0, 9.0))
    assert grows.passed is False and grows.facts["grows"]


@pytest.mark.parametrize(
    ("ended", "noted", "missed"),
    [
        (10, 0, None), (9, 0, None), (8, 0, [8, 10]), (0, 0, [0, 10]),
        (10, 1, [9, 10]), (11, 1, [10, 11]), (9, 1, [8, 10]), (10, 10, [0, 10]),
    ],
)  # fmt: skip
def test_a_timer_that_skips_periods_has_missed_its_schedule(ended, noted, missed):
    """One that the driver noted is enough; by the number that ended, one fewer may be chance."""
    timer = gates.missed_periods(Transaction(name="tidy", source="timer", every_s=6.0), ended, noted, 60.0)
    assert timer == (["tidy", *missed] if missed else None)
    gate = gates.lag(Lateness(0.0, 0.0, 1.0, 0.0, 0.0), [timer] if timer else [])
    assert gate.passed is not bool(missed) and gate.facts.get("missed") == ([timer] if timer else None)
    assert gates.missed_periods(Transaction(name="order", source="rate", every_s=6.0), ended, noted, 60.0) is None


def test_a_timer_that_never_ended_has_missed_its_schedule():
    gate = gates.lag(None, [["tidy", 0, 10]])
    assert gate and gate.passed is False


def test_conditions_left_out_do_not_count():
    assert gates.conditions([]) is None
    assert gates.conditions([Condition(name="fresh", holds=None)]) is None
    both = [Condition(name=name, holds=holds) for name, holds in (("a", False), ("b", True), ("c", False))]
    gate = gates.conditions(both)
    assert gate.failure.kind is GateKind.CONSISTENCY
    assert gate.facts == {"checked": 3, "broken": ["a", "c"], "refused": 0}


def test_a_refused_condition_is_counted_and_the_others_are_judged():
    refused, held = Condition(name="a", holds=None, refused="no such function"), Condition(name="b", holds=True)
    gate = gates.conditions([refused, held])
    assert gate.passed and gate.facts == {"checked": 1, "broken": [], "refused": 1}
    assert gates.conditions([refused]).passed is None


@pytest.mark.parametrize(
    ("after", "unknown", "passes"),
    [
        (150, 0, True),
        (149, 0, False),
        (151, 0, False),
        (150, 2, True),
        (152, 2, True),
        (153, 2, False),
        (149, 2, False),
    ],
)
def test_completed_lies_between_committed_and_that_with_unknown_outcomes(after, unknown, passes):
    counted = {"trade_result": Counted(before=100, after=after)}
    gate = gates.commits(counted, {"trade_result": 50}, {"trade_result": unknown}, Unheard())
    assert gate and (gate.failure and gate.failure.kind) == (None if passes else GateKind.COMPLETED)


def test_completed_is_not_known_of_a_run_that_was_cut():
    gate = gates.commits({"trade_result": Counted(before=100)}, {"trade_result": 50}, {}, Unheard())
    assert gate and gate.passed is None
    assert gates.commits({}, {}, {}, Unheard()) is None


def test_completed_says_nothing_where_there_was_nothing_to_count():
    gate = gates.commits({"trade_result": Counted(before=100, after=100)}, {}, {}, Unheard())
    assert gate and gate.passed is None


def test_completed_allows_for_what_did_not_end_and_is_not_known_without_a_last_report():
    counted, committed = {"trade_result": Counted(before=100, after=153)}, {"trade_result": 50}
    for unfinished, passes in ((2, False), (3, True)):
        gate = gates.commits(counted, committed, {}, Unheard(unfinished=unfinished))
        assert gate and gate.passed is passes
    gate = gates.commits(counted, committed, {}, Unheard(silent=1))
    assert gate and gate.passed is None and gate.facts["silent_executors"] == 1
    fewer = {name: one.changed(after=one.before) for name, one in counted.items()}
    gate = gates.commits(fewer, committed, {}, Unheard(lost=1))
    assert gate and gate.passed is False, "lost with their executor or not, none may be missing from the database"


def test_completed_tells_of_several_types_the_one_that_is_furthest_off():
    counted = {name: Counted(before=0, after=after) for name, after in {"a": 10, "b": 8, "c": 3, "d": 0}.items()}
    gate = gates.commits(counted, {"a": 10, "b": 9, "c": 10}, {}, Unheard())
    assert gate and gate.passed is False and gate.facts["transaction"] == "c"
    gate = gates.commits(counted, {"a": 10, "b": 8, "c": 3}, {}, Unheard())
    assert gate and gate.passed is True and gate.facts["transaction"] != "d"


# A mix left to chance, against decks that are dealt.


@pytest.mark.thorough
@pytest.mark.parametrize(("deck", "of_type", "dealt", "executors"), [(20, 5, 13, 1), (20, 5, 33, 1), (30, 3, 240, 2)])
def test_windows_over_dealt_decks_vary_as_it_says(deck, of_type, dealt, executors):
    rng = random.Random(7)
    counts = []
    for _ in range(3000):
        seen = 0
        for _ in range(executors):
            dealer = Dealer({"it": of_type, "other": deck - of_type}, rng)
            for _ in range(rng.randrange(deck)):
                dealer.next_card()
            seen += sum(dealer.next_card() == "it" for _ in range(dealt // executors))
        counts.append(seen)
    assert np.mean(counts) == pytest.approx(dealt * of_type / deck, rel=0.02)
    assert np.var(counts) == pytest.approx(variance(dealt, deck, of_type / deck, executors), rel=0.1)


@given(st.floats(0, 1e6), st.integers(1, 1000), st.floats(0, 1), st.integers(1, 8))
def test_never_more_than_drawing_with_replacement_and_bounded_for_ever(dealt, deck, share, executors):
    of_cards = variance(dealt, deck, share, executors)
    assert 0 <= of_cards <= (dealt + executors) * share * (1 - share) + 1e-9
    assert of_cards <= executors * share * (1 - share) * (deck + 1) / 2 + 1e-9


def test_those_under_way_at_both_ends_count():
    """With a share of a fifth: 0.8² of its own variance and 0.2² of the others'."""
    assert deviation(0, 890, 0.2, 2, under_way=8, others_under_way=0) == pytest.approx(4 * 0.8)
    assert deviation(0, 890, 0.2, 2, under_way=0, others_under_way=8) == pytest.approx(4 * 0.2)
