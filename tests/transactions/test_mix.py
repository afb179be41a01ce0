"""A scenario's mix as a deck: what is asked for, as nearly as a deck that is soon dealt allows."""

import random
from dataclasses import replace
from fractions import Fraction
from math import sqrt
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stallmark.errors import StallmarkError
from stallmark.transactions import find_workload
from stallmark.transactions.workload import (
    FEWEST,
    MOST_CARDS,
    Background,
    Outcome,
    Transaction,
    UserLoad,
    Workload,
    apportioned,
    background_per_user,
    deck_of,
)


def kind(name: str, reads: bool) -> type[Transaction]:
    class Kind(Transaction):
        frames: ClassVar = {}
        reads_only = reads

        def inputs(self, rng: random.Random) -> tuple:
            return ()

        def execute(self, session: Any, inputs: tuple) -> Outcome:
            return Outcome.COMMITTED

    Kind.name = name
    return Kind


BUY, FIX, LOOK, LIST, SENT = (
    kind(name, reads)
    for name, reads in (("buy", False), ("fix", False), ("look", True), ("list", True), ("sent", False))
)
DECK = {BUY: 30, FIX: 10, LOOK: 45, LIST: 15}
SHOP = Workload("shop", 1, "shop", "", "", users=UserLoad(DECK), background=Background({SENT: (BUY, 1.0)}))
NAMES = [each.name for each in DECK]
WEIGHTS = st.one_of(st.integers(1, 10**6), st.floats(1e-6, 1e6))


def test_without_a_mix_it_is_the_workloads_own():
    assert deck_of(SHOP, None) == {"buy": 30, "fix": 10, "look": 45, "list": 15}


@pytest.mark.parametrize(
    ("mix", "deck"),
    [
        ({"buy": 10, "look": 90}, {"buy": 1, "fix": 0, "look": 9, "list": 0}),
        ({"look": 0.5}, {"buy": 0, "fix": 0, "look": 1, "list": 0}),
        ({"buy": 10.1, "look": 19}, {"buy": 101, "fix": 0, "look": 190, "list": 0}),
        ({"buy": 1e-9, "look": 1}, {"buy": 1, "fix": 0, "look": 999, "list": 0}),
        ({"read_share": 1}, {"buy": 0, "fix": 0, "look": 3, "list": 1}),
        ({"read_share": 0}, {"buy": 3, "fix": 1, "look": 0, "list": 0}),
        ({"read_share": 0.5}, {"buy": 3, "fix": 1, "look": 3, "list": 1}),
        ({"read_share": 0.9}, {"buy": 3, "fix": 1, "look": 27, "list": 9}),
        ({"read_share": 0.9999}, {"buy": 1, "fix": 1, "look": 749, "list": 249}),
    ],
)
def test_the_smallest_deck_that_has_the_mix(mix, deck):
    assert {name: cards for name, cards in deck_of(SHOP, mix).items()} == deck


@given(mix=st.dictionaries(st.sampled_from(NAMES), WEIGHTS, min_size=1))
def test_weights_become_cards(mix):
    deck = deck_of(SHOP, mix)
    total = sum(deck.values())
    assert list(deck) == NAMES and total <= MOST_CARDS
    assert {name for name, cards in deck.items() if cards} == set(mix)
    exact = {name: Fraction(str(weight)) for name, weight in mix.items()}
    quotas = {name: weight / sum(exact.values()) * total for name, weight in exact.items()}
    raised = sum(1 for quota in quotas.values() if quota < 1)  # to the one card that each has
    for name, quota in quotas.items():
        assert abs(deck[name] - quota) <= 1 + raised


@given(share=st.floats(0, 1))
def test_a_read_share_keeps_the_proportions_of_what_reads_and_of_what_writes(share):
    deck = deck_of(SHOP, {"read_share": share})
    total, reads = sum(deck.values()), deck["look"] + deck["list"]
    assert total <= MOST_CARDS
    assert abs(reads / total - share) <= 2 / MOST_CARDS  # two types write, and two read
    if 0 < share < 1:
        assert all(deck.values())
    for many, few in (("look", "list"), ("buy", "fix")):
        assert abs(deck[many] - 3 * deck[few]) <= 3


PARTS = st.lists(st.tuples(st.integers(1, 10**9), st.integers(0, 30)), min_size=1, max_size=12)


@given(parts=PARTS, more=st.integers(0, 1_000))
def test_all_cards_are_apportioned_and_everybody_has_the_least(parts, more):
    weights = {number: Fraction(weight) for number, (weight, _) in enumerate(parts)}
    least = {number: few for number, (_, few) in enumerate(parts)}
    cards = sum(least.values()) + more
    dealt = apportioned(weights, cards, least)
    assert sum(dealt.values()) == cards
    assert all(dealt[number] >= few for number, few in least.items())
    # Who has more than the least has no more than one card beyond the proportion.
    total = sum(weights.values())
    assert all(dealt[n] <= weights[n] / total * cards + 1 for n in weights if dealt[n] > least[n])


def test_nine_of_ten_only_read_the_brokerage():
    brokerage = find_workload("brokerage")
    deck = deck_of(brokerage, {"read_share": 0.9})
    reads = sum(deck[each.name] for each in brokerage.users.deck if each.reads_only)
    assert reads / sum(deck.values()) == 0.9
    assert deck["trade_order"] / deck["trade_update"] == pytest.approx(101 / 20, rel=0.04)


@pytest.mark.parametrize(
    ("mix", "times"), [(None, 1), ({"buy": 1}, sqrt(1 / 0.3)), ({"buy": 3, "look": 7}, 1), ({"look": 1}, FEWEST)]
)
def test_more_sessions_where_more_follows(mix, times):
    shop = replace(SHOP, background=replace(SHOP.background, sessions_per_user=2.0))
    assert background_per_user(shop, deck_of(shop, mix)) == pytest.approx(2.0 * times)


def test_the_bank_has_no_background_sessions():
    bank = find_workload("bank")
    assert background_per_user(bank, deck_of(bank, None)) == 0


@pytest.mark.parametrize(
    ("mix", "sentence"),
    [
        ({"by": 1}, "by is no transaction of shop: there are buy, fix, look, list, or read_share alone"),
        ({"sent": 1}, "sent is not started by users: there are buy, fix, look, list, or read_share alone"),
        ({"buy": 0}, "buy has the weight 0: give it more than 0, or leave it out to have none started"),
        ({"look": 1, "buy": -2.5}, "buy has the weight -2.5: give it more than 0, or leave it out"),
        ({"read_share": 0.5, "buy": 1}, "read_share stands alone: remove it, or the weights beside it"),
        ({"read_share": 1.5}, r"read_share is 0 to 1 \(0.9: nine of ten only read\), not 1.5"),
        ({"read_share": -0.1}, "not -0.1"),
    ],
)
def test_what_cannot_be(mix, sentence):
    with pytest.raises(StallmarkError, match=sentence):
        deck_of(SHOP, mix)


def test_where_nothing_reads_or_nothing_writes():
    with pytest.raises(StallmarkError, match=r"read_share cannot be 0.9: no transaction of bank reads only"):
        deck_of(find_workload("bank"), {"read_share": 0.9})
    assert deck_of(find_workload("bank"), {"read_share": 0}) == {"transfer": 1}
    looks = Workload("looks", 1, "looks", "", "", users=UserLoad({LOOK: 1}))
    with pytest.raises(StallmarkError, match=r"read_share cannot be 0.9: no transaction of looks writes"):
        deck_of(looks, {"read_share": 0.9})


@pytest.mark.parametrize("mix", [None, {"q1": 1}, {"read_share": 1}])
def test_users_start_nothing_in_the_warehouse(mix):
    with pytest.raises(
        StallmarkError, match=r"users start no transactions of warehouse, .* say queries in place of users"
    ):
        deck_of(find_workload("warehouse"), mix)
