"""Messages between processes arrive whole or not at all, and are checked against their kinds."""

import io
import socket
import subprocess
import threading
from types import SimpleNamespace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import malformed

from stallmark.driver.channel import Channel, Closed, inherited_channel, start_child
from stallmark.driver.load import RunFacts
from stallmark.driver.messages import (
    FinalReport,
    Finished,
    Incomplete,
    Join,
    MachineFacts,
    Malformed,
    Message,
    NotUnderstood,
    Refused,
    Report,
    StartUser,
    decode,
    encode,
)

RUN_FACTS = st.builds(RunFacts, workload=st.text(), seed=st.none() | st.integers(0, 2**63 - 1))
FACTS = st.builds(MachineFacts, cpu=st.none() | st.text(), cores=st.integers(1, 512))
MESSAGES = st.one_of(
    st.builds(Refused, st.text(), st.text()),
    st.builds(StartUser, st.integers(0, 9), st.integers(0, 2**63 - 1)),
    st.builds(Join, st.text(), RUN_FACTS, FACTS),
    st.builds(FinalReport, st.text(), *[st.integers(0, 9)] * 4),
    st.just(Finished()),
)


@pytest.fixture
def pair():
    ours, theirs = map(Channel, socket.socketpair())
    yield ours, theirs
    ours.close()
    theirs.close()


@given(messages=st.lists(MESSAGES, max_size=5))
def test_what_was_sent_is_received_in_order(messages):
    here, there = map(Channel, socket.socketpair())
    for message in messages:
        here.send(message)
    assert [there.receive() for _ in messages] == messages
    here.close()
    there.close()


@pytest.mark.parametrize(
    "kind", [kind for kind in Message.__subclasses__() if msgspec.structs.fields(kind) and kind is not Report]
)
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
        msgspec.msgpack.encode(["StartUser", 0, "seven"]),
        msgspec.msgpack.encode(["StartUser"]),
        msgspec.msgpack.encode(["StartUser", 7, 8, 9]),
        msgspec.msgpack.encode({"type": "StartUser", "load": 0, "user": 7}),
    ],
)
def test_what_is_no_message_is_refused_at_the_seam(body, pair):
    with pytest.raises(Malformed):
        decode(body)


def test_the_rows_of_a_report_are_checked_when_they_are_read():
    report = decode(encode(Report(msgspec.Raw(msgspec.msgpack.encode([[], [[0, 0]], [], [], []])))))
    with pytest.raises(Malformed):
        report.rows()


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
    assert sorted(there.receive().reason for _ in messages) == [message.reason for message in messages]
    for thread in threads:
        thread.join()


def test_a_closed_peer_is_noticed_when_receiving_and_when_sending(pair):
    here, there = pair
    here.send(StartUser(0, 1))
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


def test_what_is_no_message_is_left_out_and_the_next_ones_come():
    ours, theirs = socket.socketpair()
    there = Channel(theirs)
    for body in malformed.bodies(seed=1, count=300, like=encode(StartUser(0, 7))):
        ours.sendall(malformed.framed(body) + malformed.framed(encode(Finished())))
        assert [there.receive(), there.receive()] == [NotUnderstood(), Finished()]
    ours.sendall(malformed.framed(b"\xc1") + malformed.framed(encode(Finished())))
    assert there.expect(Finished) == Finished()
    ours.sendall(b"\xff\xff\xff\xff")
    with pytest.raises(Closed):
        there.receive()
    ours.close()


def test_a_non_blocking_descriptor_of_a_patched_parent_becomes_blocking():
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    there = inherited_channel(str(theirs.detach()))
    late = threading.Timer(0.05, Channel(ours).send, args=(Finished(),))
    late.start()
    assert there.receive() == Finished()
    late.join()
    there.close()


class Input(io.BytesIO):
    """The child's side of a channel; `kept` outlives its end."""

    kept = b""

    def close(self):
        self.kept = self.getvalue()
        super().close()


class Theirs:
    """A socket of Windows, which is described for a process by its number (socket.share)."""

    closed = False

    def share(self, pid: int) -> bytes:
        assert not self.closed
        return b"channel for %d" % pid

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.closed = True


def test_on_windows_a_child_finds_its_end_of_the_channel_in_its_input(monkeypatch):
    here, there = socket.socketpair()
    child, started = Input(), []

    def start(*arguments, **options):
        started.append((*arguments, options["stdin"]))
        return SimpleNamespace(pid=77, stdin=child)

    monkeypatch.setattr("stallmark.driver.channel.start_module", start)
    monkeypatch.setattr("stallmark.driver.channel.sys", SimpleNamespace(platform="win32", stdin=None))
    monkeypatch.setattr(socket, "socketpair", lambda: (here, Theirs()))
    _, ours = start_child("stallmark.driver.executor")
    assert started == [("stallmark.driver.executor", "shared", subprocess.PIPE)] and child.kept == b"channel for 77"

    monkeypatch.setattr(socket, "fromshare", {b"channel for 77": there}.__getitem__, raising=False)
    reads = SimpleNamespace(buffer=io.BytesIO(child.kept))
    monkeypatch.setattr("stallmark.driver.channel.sys", SimpleNamespace(platform="win32", stdin=reads))
    theirs = inherited_channel("shared")
    theirs.send(Finished())
    assert isinstance(ours.receive(), Finished)
    ours.close()
    theirs.close()
