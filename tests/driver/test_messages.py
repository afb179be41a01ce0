"""Messages between processes arrive whole or not at all."""

import socket
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stallmark.driver.messages import Channel, Closed, inherited_channel

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False)
    | st.text(st.characters(codec="utf-8")) | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(codec="utf-8")) | st.integers(0, 9), inner),
    max_leaves=10,
)  # fmt: skip
NAMES = st.text(st.characters(codec="utf-8"), min_size=1).filter(lambda name: name not in ("self", "kind"))


def pair() -> tuple[Channel, Channel]:
    ours, theirs = socket.socketpair()
    return Channel(ours), Channel(theirs)


@given(messages=st.lists(st.tuples(st.text(st.characters(codec="utf-8")), st.dictionaries(NAMES, VALUES)), max_size=5))
@settings(max_examples=40)
def test_what_was_sent_is_received_in_order(messages):
    here, there = pair()
    for kind, fields in messages:
        here.send(kind, **fields)
    assert [there.receive() for _ in messages] == messages
    here.close()
    there.close()


def test_a_message_larger_than_any_buffer():
    here, there = pair()
    body = bytes(range(256)) * 40_000  # 10 MB
    sender = threading.Thread(target=here.send, args=("big",), kwargs={"body": body})
    sender.start()
    assert there.receive() == ("big", {"body": body})
    sender.join()


def test_messages_of_several_threads_do_not_mix():
    here, there = pair()
    bodies = [bytes([number]) * 300_000 for number in range(8)]
    threads = [threading.Thread(target=here.send, args=("x",), kwargs={"body": body}) for body in bodies]
    for thread in threads:
        thread.start()
    assert sorted(there.receive()[1]["body"] for _ in bodies) == bodies
    for thread in threads:
        thread.join()


def test_a_closed_peer_is_noticed_when_receiving_and_when_sending():
    here, there = pair()
    there.close()
    with pytest.raises(Closed):
        here.receive()
    with pytest.raises(Closed):
        here.send("hello")


def test_what_was_sent_before_the_end_is_still_received():
    here, there = pair()
    here.send("last", words=1)
    here.close()
    assert there.receive() == ("last", {"words": 1})
    with pytest.raises(Closed):
        there.receive()


def test_a_message_cut_in_the_middle_is_an_end():
    ours, theirs = socket.socketpair()
    ours.sendall(b"\x00\x00\x00\x09half")
    ours.close()
    with pytest.raises(Closed):
        Channel(theirs).receive()


def test_a_non_blocking_descriptor_of_a_patched_parent_becomes_blocking():
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    there = inherited_channel(str(theirs.detach()))
    late = threading.Timer(0.05, Channel(ours).send, args=("late",))
    late.start()
    assert there.receive() == ("late", {})
    late.join()
