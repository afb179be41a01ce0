"""Messages that are none, sent to every process that listens: none ends, the run goes on, and one sentence is said.

    python -m benchmarks.malformed_messages [--seed 1] [--count 1000]

They are drawn from the seed (tests/support/malformed.py), and go to the master of a run on two load machines, to a load
machine, to an executor with a user, and to the live page of an experiment. The seed of a failure repeats it.
"""

import argparse
import os
import socket
import sys
import tempfile
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from urllib.request import urlopen

import zmq

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from benchmarks.cached_bank import cached_bank
from support import malformed
from support.driving import dismiss, executor_order, load_machine, load_spec, timeline, total
from support.manifests import a_manifest
from support.remote import free_port
from support.synthetic import Truth, make_run

from stallmark.driver.channel import Channel, start_child
from stallmark.driver.cluster.join import STALLMARK
from stallmark.driver.controller import Drive
from stallmark.driver.machines import ExpectedMachines
from stallmark.driver.messages import (
    Bye,
    Connected,
    ExecutorReady,
    Finished,
    Go,
    NotUnderstood,
    Ping,
    Pong,
    Quit,
    Report,
    StartUser,
    WorkerOrder,
    decode,
    encode,
)
from stallmark.engines.postgres.embedded.engine import EmbeddedEngine
from stallmark.live.access import PageAddress
from stallmark.live.server import LivePage
from stallmark.live.view import View
from stallmark.processes import kill
from stallmark.record.reader import Record
from stallmark.record.writer import RecordWriter
from stallmark.scenarios.read import read_scenario

RUN_S, ANSWER_S = 8.0, 30.0


def to_a_master(bank: EmbeddedEngine, folder: Path, seed: int, count: int) -> str:
    """Send them to the master while it drives a load on two machines; return what was said."""
    writer, port, said = RecordWriter(folder, a_manifest()), free_port(), list[str]()
    load = load_spec(2)
    with ExitStack() as ends:
        stranger = ends.enter_context(zmq.Context()).socket(zmq.DEALER)
        ends.enter_context(stranger)
        drive = Drive(timeline([load], RUN_S), bank.spec(), [load], writer, ExpectedMachines(2, "127.0.0.1", port))
        machines = [load_machine(ends, bank, port) for _ in range(2)]

        def send() -> None:
            stranger.connect(f"tcp://127.0.0.1:{port}")
            for frames in malformed.frames(seed, count):
                stranger.send_multipart(frames)

        sender = threading.Thread(target=send)
        try:
            drive.start(said.append)
            sender.start()
            drive.follow(lambda progress: None, lambda: None)
            sender.join()
        finally:
            drive.finish()
            writer.close()
        dismiss(machines)
    record = Record(folder)
    [sentence] = record.manifest.notes
    assert record.incomplete_because is None and said.count(sentence) == 1
    assert total(record, "transactions", "committed") > 0
    return sentence


def to_a_load_machine(seed: int, count: int) -> str:
    """Send them to a load machine as from its master, which is this process."""
    port = free_port()
    process, channel = start_child("stallmark.driver.cluster.worker")
    try:
        with zmq.Context() as context, context.socket(zmq.ROUTER) as master:
            master.bind(f"tcp://127.0.0.1:{port}")
            channel.send(WorkerOrder("127.0.0.1", port, "postgresql://nobody@nowhere/none"))
            machine, _ = master.recv_multipart()
            tell = _Master(master, machine)
            tell("ack", {"index": 0})
            channel.expect(Connected)
            for frames in malformed.frames(seed, count):
                master.send_multipart([machine, *frames])
            assert channel.receive() == NotUnderstood("the master")
            tell(STALLMARK, {"body": encode(Ping(7))})
            assert tell.answer(7)
        channel.send(Quit())
        assert channel.receive() == Finished()
    finally:
        kill(process)
        channel.close()
    return "said once, and it answers"


class _Master:
    """The master of one load machine, in Locust's words."""

    def __init__(self, router: zmq.Socket, machine: bytes):
        self._router, self._machine = router, machine

    def __call__(self, kind: str, data: object) -> None:
        import msgpack

        self._router.send_multipart([self._machine, msgpack.dumps((kind, data, self._machine.decode()))])

    def answer(self, sent_ns: int) -> bool:
        """Wait for the answer to a Ping, and say meanwhile that this master is there."""
        import msgpack

        deadline = time.monotonic() + ANSWER_S
        while time.monotonic() < deadline:
            kind, data, _ = msgpack.loads(self._router.recv_multipart()[1])
            if kind == "heartbeat":
                self("heartbeat", None)
            elif kind == STALLMARK:
                match decode(data["body"]):
                    case Pong(sent) if sent == sent_ns:
                        return True
        return False


def to_an_executor(bank: EmbeddedEngine, seed: int, count: int) -> str:
    """Send them to an executor between two orders; return how many transactions its user has committed then."""
    process, channel = start_child("stallmark.driver.executor")
    raw = socket.socket(fileno=os.dup(channel.fileno()))
    try:
        channel.send(executor_order(bank))
        channel.expect(ExecutorReady)
        channel.send(Go(time.monotonic_ns()))
        sender = threading.Thread(target=_send_bodies, args=(raw, seed, count))
        sender.start()
        left_out = committed = 0
        while left_out < count:
            left_out += isinstance(channel.receive(), NotUnderstood)
        sender.join()
        channel.send(StartUser(0, 0))
        while committed < 10:
            committed += _committed(channel)
        channel.send(Quit())
        while not isinstance(channel.receive(), Bye):
            pass
        assert process.wait(ANSWER_S) == 0
    finally:
        raw.close()
        kill(process)
        channel.close()
    return f"{left_out:,} left out, then {committed} transactions committed"


def _send_bodies(raw: socket.socket, seed: int, count: int) -> None:
    for body in malformed.bodies(seed, count, like=encode(StartUser(0, 7))):
        raw.sendall(malformed.framed(body))


def _committed(channel: Channel) -> int:
    message = channel.receive()
    return sum(row.committed for row in message.rows().transactions) if isinstance(message, Report) else 0


def to_a_live_page(folder: Path, seed: int, count: int) -> str:
    make_run(folder / "20260101-000000-buffer-pool" / "01", Truth(tps=400, variant="a", sequence=1), "buffer-pool")
    port, stops = free_port(), list[bool]()
    view = View(folder / "20260101-000000-buffer-pool", read_scenario("buffer-pool"))
    page = LivePage(view, PageAddress("127.0.0.1", port), stop=lambda: stops.append(True))
    page.start()
    malformed.ask(port, malformed.requests(seed, count, f"127.0.0.1:{port}"))
    with urlopen(f"http://127.0.0.1:{port}/state") as answer:
        assert answer.status == 200 and not stops
    page.close(True, "")
    return "it answers, and nothing was stopped"


def main() -> None:
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("--seed", type=int, default=1)
    given.add_argument("--count", type=int, default=1000)
    chosen = given.parse_args()
    seed, count = chosen.seed, chosen.count
    work = Path(os.environ.get("STALLMARK_BENCHMARK_DIR", tempfile.gettempdir())) / "stallmark-benchmark"
    print(f"seed {seed}, {count:,} messages to each")
    with tempfile.TemporaryDirectory() as folder, cached_bank(work / "malformed", branches=1) as bank:
        print(f"a master: {to_a_master(bank, Path(folder) / 'run', seed, count)}", flush=True)
        print(f"a load machine: {to_a_load_machine(seed, count)}", flush=True)
        print(f"an executor: {to_an_executor(bank, seed, count)}", flush=True)
        print(f"a live page: {to_a_live_page(Path(folder), seed, count)}", flush=True)


if __name__ == "__main__":
    main()
