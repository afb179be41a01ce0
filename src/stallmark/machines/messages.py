"""The messages between load machines: which are valid, which machines may join, and how their clocks differ.

Nothing here depends on Locust or gevent.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import msgspec

from stallmark.driver.load import RunFacts
from stallmark.driver.messages import Malformed, checked

# The agreement on a load from several machines before it begins.

STALLMARK = "stallmark"
"""The type of our messages among Locust's: a body, as between our own processes, and the worker's message count."""

_IN_WORDS = {"stallmark": "Stallmark", "bytes_as_loaded": "size as loaded"}


def refusal(facts: RunFacts, offered: RunFacts) -> str | None:
    """Return the reason why a machine may not join, as the end of a sentence: the first difference. None when it
    may."""
    for name in RunFacts.__struct_fields__:
        if (ours := getattr(facts, name)) != (theirs := getattr(offered, name)):
            return f"its {_IN_WORDS.get(name, name)} is {_text_of(theirs)}, this run's is {_text_of(ours)}"
    return None


def _text_of(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {value[key]}" for key in sorted(value)) or "none"
    return "none" if value is None else str(value)


@dataclass(frozen=True)
class ClockOffset:
    """The difference between two monotonic clocks: another machine's is `offset_ns` ahead of ours, within
    ± `within_ns`."""

    offset_ns: int
    within_ns: int

    @classmethod
    def compare(cls, exchanges: Iterable[tuple[int, int, int]]) -> "ClockOffset":
        """Estimate the offset from messages there and back, each with three times in ns: sent (our clock), seen (the
        other's), back (ours).

        The quickest exchange is the most accurate: the other machine saw it at some time between sending and return, so
        the middle is wrong by at most half the duration (Cristian's algorithm, Distributed Computing 3 (1989) 146). An
        exchange sent at 0 ms and back at 4 ms that the other clock saw at 1,002 ms gives an offset of 1,000 ± 2 ms.
        """
        sent, seen, back = min(exchanges, key=lambda exchange: exchange[2] - exchange[0])
        return cls(seen - (sent + back) // 2, (back - sent + 1) // 2)


# The check of incoming messages on Locust's connection.
#
# Anyone who reaches the port can send. Locust expects only its own messages: any other ends the greenlet that listens.

STATES = Literal["ready", "spawning", "running", "cleanup", "stopped", "stopping"]


class Incoming(NamedTuple):
    """A message as Locust has it: its type, its data, and the name of its sender or of its receiver."""

    type: str
    data: Any
    node_id: str | None


class _Users(msgspec.Struct):
    """The users of each class. Locust's own statistics in the same message are not read."""

    user_classes_count: dict[str, int]


class _Alive(msgspec.Struct):
    state: STATES
    current_cpu_usage: float
    current_memory_usage: int


class _Failure(msgspec.Struct):
    msg: str
    traceback: str


class _Body(msgspec.Struct):
    """A message of ours (driver/messages.py), and from a machine its count."""

    body: bytes
    count: int = 0


class _Place(msgspec.Struct):
    index: int


class _Spawn(msgspec.Struct):
    timestamp: float
    user_classes_count: dict[str, int]
    host: str | None
    stop_timeout: float | None
    parsed_options: dict[str, Any]


class _Spawned(msgspec.Struct):
    user_count: int


_OF_MACHINES: Mapping[str, Any] = {
    "client_ready": str,
    "client_stopped": None,
    "exception": _Failure,
    "heartbeat": _Alive,
    "quit": None,
    "spawning": None,
    "spawning_complete": _Users,
    "stats": _Users,
    STALLMARK: _Body,
}
_OF_MASTERS: Mapping[str, Any] = {
    "ack": _Place,
    "heartbeat": None,
    "quit": None,
    "reconnect": None,
    "spawn": _Spawn,
    "spawning_complete": _Spawned,
    "stop": None,
    STALLMARK: _Body,
}


def _decoders(kinds: Mapping[str, Any]) -> Mapping[str, msgspec.msgpack.Decoder]:
    return {name: msgspec.msgpack.Decoder(kind) for name, kind in kinds.items()}


_FROM_MACHINE, _FROM_MASTER = _decoders(_OF_MACHINES), _decoders(_OF_MASTERS)
_ENVELOPE = msgspec.msgpack.Decoder(tuple[str, msgspec.Raw, str | None])


def from_machine(frames: Sequence[bytes]) -> Incoming:
    """Return a message of a load machine, with the identity by which the connection knows it. Raise Malformed."""
    if len(frames) != 2:
        raise Malformed(f"{len(frames)} parts came where a machine and its message were to come")
    message = _message(frames[1], _FROM_MACHINE)
    if message.node_id is None or message.node_id.encode() != frames[0]:
        raise Malformed("a machine gave the name of another")
    return message


def from_master(frames: Sequence[bytes], me: str) -> Incoming:
    """Return a message of a master to the machine that it knows as `me`. Raise Malformed."""
    if len(frames) != 1:
        raise Malformed(f"{len(frames)} parts came where one message was to come")
    message = _message(frames[0], _FROM_MASTER)
    if message.node_id != me:
        raise Malformed("the message is for another machine")
    return message


def _message(frame: bytes, kinds: Mapping[str, msgspec.msgpack.Decoder]) -> Incoming:
    kind, raw, name = checked(_ENVELOPE, frame)
    if kind not in kinds:
        raise Malformed(f"{kind[:40]!r} is not a kind of message here")
    data = checked(kinds[kind], raw)
    return Incoming(kind, msgspec.to_builtins(data, builtin_types=(bytes,)), name)
