"""Inputs are a function of the generator, name what exists, and have the shares and sizes that are intended."""

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stallmark.schema.mail.scale import LEAST_BYTES, MEAN_BYTES, MOST_BYTES
from stallmark.transactions.mail import MAILBOXES_PER_USER, WORKLOAD
from stallmark.transactions.mail.deliver_message import DeliverMessage
from stallmark.transactions.mail.update_message import UpdateMessage


@given(seed=st.integers())
def test_inputs_are_a_function_of_the_generator(context, seed: int) -> None:
    for kind in WORKLOAD.users.deck:
        one, two = kind(context), kind(context)
        a, b = random.Random(seed), random.Random(seed)
        assert [one.inputs(a) for _ in range(5)] == [two.inputs(b) for _ in range(5)]


@given(seed=st.integers())
def test_inputs_name_what_exists(context, seed: int) -> None:
    rng = random.Random(seed)
    for kind in WORKLOAD.users.deck:
        inputs = kind(context).inputs(rng)
        assert inputs.mailbox in context.mailboxes
        assert 0 <= getattr(inputs, "place", 0) < 1_000_000
        assert 1 <= getattr(inputs, "folder", 1) <= 10
        if body := getattr(inputs, "body", None):
            assert LEAST_BYTES <= len(body) <= MOST_BYTES and body.endswith(".") and body.isascii()


def test_sizes_and_shares(context, rng: random.Random) -> None:
    deliver, update = DeliverMessage(context), UpdateMessage(context)
    delivered = [deliver.inputs(rng) for _ in range(4_000)]
    sizes = [len(each.body) for each in delivered]
    assert sum(sizes) / len(sizes) == pytest.approx(MEAN_BYTES, rel=0.3)  # of such sizes even thousands scatter
    assert sorted(sizes)[2_000] == pytest.approx(8_000, rel=0.15)
    folders = Counter(each.folder for each in delivered)
    assert folders.keys() == {1, 2} and folders[2] / 4_000 == pytest.approx(0.2, abs=0.03)
    with_body = sum(update.inputs(rng).body is not None for _ in range(4_000))
    assert with_body / 4_000 == pytest.approx(0.2, abs=0.03)


def test_hardly_two_bodies_are_alike(context, rng: random.Random) -> None:
    deliver = DeliverMessage(context)
    begins = Counter(deliver.inputs(rng).body[:99] for _ in range(2_000))
    assert max(begins.values()) <= 3


def test_too_few_mailboxes_are_advised_against() -> None:
    scale = {"mailboxes": 100}
    assert WORKLOAD.users.contention(scale, 100 // MAILBOXES_PER_USER) is None
    said = WORKLOAD.users.contention(scale, 11)
    assert said == (
        "11 users share 100 mailboxes, whose rows are locked by each change: they wait for each other and not for "
        "storage alone; use at least 110 mailboxes."
    )
