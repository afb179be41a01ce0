"""Messages between processes arrive whole or not at all, and are checked against their kinds."""

import socket
import threading

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stallmark.driver.messages import (
    Bye,
    Channel,
    Closed,
    Finished,
    Incomplete,
    Join,
    Malformed,
    Message,
    Refused,
    Report,
    StartUser,
    decode,
    encode,
    inherited_channel,
)

MESSAGES = st.one_of(
    st.builds(Refused, st.text(), st.text()),
    st.builds(StartUser, st.integers(0, 2**63 - 1)),
    st.builds(
        Join, st.text(), st.dictionaries(st.text(), st.none() | st.floats(allow_nan=False)), st.just({"cores": 2})
    ),
    st.builds(Bye, *[st.integers(0, 9)] * 4),
    st.just(Finished()),
)


@pytest.fixture
def pair():
    ours, theirs = map(Channel, socket.socketpair())
    yield ours, theirs
    ours.close()
    theirs.close()


@given(messages=st.lists(MESSAGES, max_size=5))
@settings(max_examples=40)
def test_what_was_sent_is_received_in_order(messages):
    here, there = map(Channel, socket.socketpair())
    for message in messages:
        here.send(message)
    assert [there.receive() for _ in messages] == messages
    here.close()
    there.close()


@pytest.mark.parametrize("kind", [kind for kind in Message.__subclasses__() if msgspec.structs.fields(kind)])
def test_every_kind_has_fields_that_are_checked(kind):
    wrong = [msgspec.msgpack.Ext(1, b"")] * len(msgspec.structs.fields(kind))
    with pytest.raises(Malformed, match="Expected"):
        decode(encode(kind(*wrong)))


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xc1",
        encode(Finished())[:-1],
        msgspec.msgpack.encode(["NoSuchKind", 1]),
        msgspec.msgpack.encode(["StartUser", "seven"]),
        msgspec.msgpack.encode(["StartUser"]),
        msgspec.msgpack.encode(["StartUser", 7, 8]),
        msgspec.msgpack.encode(["Report", [], [[0, 0]], [], [], []]),
        msgspec.msgpack.encode({"type": "StartUser", "user": 7}),
    ],
)
def test_what_is_no_message_is_refused_at_the_seam(body, pair):
    with pytest.raises(Malformed):
        decode(body)


def test_a_message_larger_than_any_buffer(pair):
    here, there = pair
    message = Incomplete("x" * 10_000_000)
    sender = threading.Thread(target=here.send, args=(message,))
    sender.start()
    assert there.receive() == message
    sender.join()


def test_messages_of_several_threads_do_not_mix(pair):
    here, there = pair
    messages = [Incomplete(str(number) * 300_000) for number in range(8)]
    threads = [threading.Thread(target=here.send, args=(message,)) for message in messages]
    for thread in threads:
        thread.start()
    assert sorted(there.receive().why for _ in messages) == [message.why for message in messages]
    for thread in threads:
        thread.join()


def test_a_closed_peer_is_noticed_when_receiving_and_when_sending(pair):
    here, there = pair
    here.send(StartUser(1))
    there.send(Finished())
    there.close()
    assert here.receive() == Finished()  # what was sent before the end
    with pytest.raises(Closed):
        here.receive()
    with pytest.raises(Closed):
        here.send(Finished())


def test_a_message_cut_in_the_middle_is_an_end():
    ours, theirs = socket.socketpair()
    ours.sendall(b"\x00\x00\x00\x09half")
    ours.close()
    with theirs, pytest.raises(Closed):
        Channel(theirs).receive()


def test_a_non_blocking_descriptor_of_a_patched_parent_becomes_blocking():
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    there = inherited_channel(str(theirs.detach()))
    late = threading.Timer(0.05, Channel(ours).send, args=(Report([], [], [], [], []),))
    late.start()
    assert there.receive() == Report([], [], [], [], [])
    late.join()
    there.close()
