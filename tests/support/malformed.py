"""Messages that are none, drawn from a seed: for load machines, executors and the live page."""

import random
import socket
import struct
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

import msgspec

LOCUSTS = ("ack", "client_ready", "client_stopped", "exception", "heartbeat", "locustfile", "logs", "quit", "reconnect",
           "spawn", "spawning", "spawning_complete", "stallmark", "stats", "stop", "update_user_class")  # fmt: skip
OURS = ("StartUser", "StopUser", "Rate", "RateShare", "Resting", "UsersHere", "Bye", "Report", "Join", "SessionLost",
        "ExecutorDied", "ExecutorsReady", "Pong", "NoSuchKind")  # fmt: skip


def values(draw: random.Random, depth: int = 0) -> Any:
    """Return any value that MessagePack has."""
    plain: list[Any] = [
        None,
        True,
        -1,
        2**63,
        -(2**63),
        1e308,
        float("nan"),
        "",
        "x" * draw.randrange(300),
        b"\x00\xff",
    ]
    kind = draw.randrange(len(plain) + (2 if depth < 3 else 0))
    if kind < len(plain):
        return plain[kind]
    inner = [values(draw, depth + 1) for _ in range(draw.randrange(4))]
    return inner if kind == len(plain) else {f"key {number}": one for number, one in enumerate(inner)}


def bodies(seed: int, count: int, like: bytes = b"\x91\xa4Quit") -> Iterator[bytes]:
    """Yield bodies of messages of ours that are none: noise, wrong fields, depth, counts, and `like` damaged."""
    draw = random.Random(f"bodies {seed}")
    for _ in range(count):
        match draw.randrange(6):
            case 0:
                yield draw.randbytes(draw.randrange(64))
            case 1:
                fields = [values(draw) for _ in range(draw.randrange(1, 14))]
                yield msgspec.msgpack.encode([draw.choice(OURS), *fields, *[None] * 14])
            case 2:
                yield b"\x91" * draw.randrange(2, 5000)
            case 3:  # a count of four thousand millions, and nothing that is counted
                yield draw.choice([b"\xdd", b"\xdf", b"\xdb", b"\xc6", b"\xc9"]) + b"\xff\xff\xff\xff" + b"\x01" * 9
            case 4:
                yield like[: draw.randrange(len(like))]
            case _:
                yield msgspec.msgpack.encode(values(draw)) + b"\xc1"


def frames(seed: int, count: int) -> Iterator[list[bytes]]:
    """Yield the parts of a ZeroMQ message that is none of Locust's, as a stranger would send it."""
    draw = random.Random(f"frames {seed}")
    like = msgspec.msgpack.encode(["heartbeat", {"state": "running", "current_cpu_usage": 1.0}, "me"])
    for body in bodies(seed, count, like):
        match draw.randrange(4):
            case 0:
                yield [body]
            case 1:
                yield [msgspec.msgpack.encode([draw.choice(LOCUSTS), {"odd": values(draw)}, values(draw), 1])]
            case 2:
                yield [msgspec.msgpack.encode([draw.choice(LOCUSTS), values(draw), "another"])]
            case _:
                yield [b"", body, b"more"]


def framed(body: bytes) -> bytes:
    """Return a body as a channel between two processes of one machine carries it."""
    return struct.pack("!I", len(body)) + body


def ask(port: int, requests: Iterable[bytes]) -> None:
    """Send requests to a server on this machine, each over a connection of its own, and read what it answers."""
    for request in requests:
        with socket.create_connection(("127.0.0.1", port)) as visitor, suppress(OSError):  # it may close first
            visitor.sendall(request)
            visitor.shutdown(socket.SHUT_WR)
            while visitor.recv(1 << 16):
                pass


def requests(seed: int, count: int, host: str) -> Iterator[bytes]:
    """Yield what a visitor of the live page may send who wants it to end, or to stop the run."""
    draw = random.Random(f"requests {seed}")
    for _ in range(count):
        path = draw.choice(
            ["/", "/stop", "/state", "/lines/1", "/metrics", "/" + "a" * draw.randrange(4000), "/%00%ff"]
        )
        path += draw.choice(["", "?token=x", "?token=" + "%F0" * 40, "?" + "&" * 500])
        names = draw.choice([host, "evil.example", "[::", "", "127.0.0.1:99999999", "\xff"])
        head = f"{draw.choice(['GET', 'POST', 'PUT', 'X'])} {path} HTTP/1.1\r\nHost: {names}\r\n"
        head += draw.choice(["", "Origin: http://evil.example\r\n", "Origin: null\r\n", "X-Stallmark-Token: guess\r\n"])
        head += draw.choice(["", "Content-Length: -1\r\n", "Content-Length: 9999999999\r\n", "Cookie: a=\xff\x00\r\n"])
        head += draw.choice(["", "X: " + "y" * 70_000 + "\r\n", "X: 1\r\n" * 200, "Transfer-Encoding: chunked\r\n"])
        request = (head + "\r\n").encode("latin-1")
        match draw.randrange(3):
            case 0:
                yield draw.randbytes(draw.randrange(1, 300))
            case 1:
                yield request[: draw.randrange(1, len(request))]
            case _:
                yield request
