"""Load machines as a master sees them: many in one process, which speak the real protocol and drive no users.

    python tests/support/simulated_machines.py '{"machines": 8, "port": 5557, "folder": "RECORD"}'

Each joins, answers pings, takes orders, starts users, reports, and says goodbye, with 16 executors of 30 users each.
Their reports are made once, from drawn latencies and with the own code of executors and load machines, and sent again
with new times.
"""

import math
import sys
import threading
import time
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import zmq

from stallmark.driver.client import COMMITTED
from stallmark.driver.load import TOLD_AFTER_S, RunFacts, ThisMachine
from stallmark.driver.messages import (
    Done,
    ExecutorsReady,
    FinalReport,
    Finish,
    Go,
    Join,
    LoadOrder,
    MachineFacts,
    Message,
    Ping,
    Pong,
    Report,
    UsersHere,
    decode_of_master,
    encode,
)
from stallmark.driver.rows import DeferredRow, Row, RowMerger, Rows
from stallmark.driver.tally import SAMPLE, SECOND_NS, transaction_rows, user_rows
from stallmark.machines.messages import STALLMARK
from stallmark.record.reader import GrowingStream
from stallmark.transactions import find_workload

EXECUTORS, USERS, PER_S = 16, 30, 200
"""The executors of a machine, and the users and transactions per second of each."""
WORKLOAD = find_workload("brokerage")
NAMES = [kind.name for kind in WORKLOAD.transactions]
LOCUST = version("locust")  # whose import would patch this process
THINK_NS = 40_000_000
VARIANTS = 8
"""Different seconds that are made."""
LOOK_EVERY_S = 0.02
HEARTBEAT_S, STATS_S = 1.0, 3.0  # Locust's own


class Order(msgspec.Struct):
    """The order for this process. `folder` is of the record that the master's command writes."""

    machines: int
    port: int
    folder: str


class Told(msgspec.Struct):
    """The account of what all machines here sent while the load lasted, when the last user started, how late reports
    were sent at most, and how long after its end each second was in the record."""

    committed: dict[str, int] = {}
    """Transactions by name."""
    users_s: float = 0.0
    reports: int = 0
    bytes: int = 0
    late_ms: float = 0.0
    seconds: float = 0.0
    delays_s: list[float] = []


def executor_second(rng: np.random.Generator, executor: int) -> Rows:
    """Return what an executor measures in a second, with that second as 0."""
    deck = {kind.name: cards for kind, cards in WORKLOAD.users.deck.items()}
    weights = np.array([deck.get(name, 10) for name in NAMES], float)
    count = rng.poisson(PER_S)
    kinds = rng.choice(len(NAMES), count, p=weights / weights.sum())
    ended = np.sort(rng.integers(0, SECOND_NS, count))
    service = rng.lognormal(np.log(4e6 * (1 + kinds % 6)), 0.6).astype(np.int64)
    started = ended - service
    scheduled = started - rng.integers(20_000, 200_000, count)
    samples = np.zeros(count, SAMPLE)
    columns = {"transaction": kinds, "scheduled": scheduled, "started": started, "ended": ended}
    for name, values in (columns | {"free_since": scheduled - THINK_NS}).items():
        samples[name] = values
    samples["outcome"] = COMMITTED
    users = user_rows(samples, WORKLOAD.name, 0, executor=executor)[0]
    users.running, users.cpu_us = USERS, 240_000
    deferred = DeferredRow(0, WORKLOAD.name, 0, executor, taken=count // 10, late_us=count, waiting=1)
    return Rows(transaction_rows(samples, WORKLOAD.name, NAMES, 0), [users], deferred_queue=[deferred])


def machine_second(rng: np.random.Generator) -> Rows:
    """Return what a load machine reports of a second, with that second as 0."""
    merger = RowMerger()
    for executor in range(EXECUTORS):
        merger.add(executor_second(rng, executor))
    return merger.pop_before(math.inf)


def retimed(rows: Rows, second: int, here: ThisMachine) -> Rows:
    """Return rows as those of this second and machine."""

    def changed(row: Row) -> Row:
        changes = {"machine": here.machine, "executor": here.number(row.executor)} if hasattr(row, "executor") else {}
        return msgspec.structs.replace(row, second=second, **changes)

    return Rows(*([changed(row) for row in table] for table in msgspec.structs.astuple(rows)))


class Machine:
    """One load machine, from its joining to its end."""

    def __init__(self, context: zmq.Context, number: int, order: Order, told: Told):
        self.id = f"simulated{number}_{number:032x}"
        self.socket: zmq.Socket = context.socket(zmq.DEALER)
        self.socket.setsockopt(zmq.IDENTITY, self.id.encode())
        self.socket.connect(f"tcp://127.0.0.1:{order.port}")
        self.start_ns = self.users = self._count = 0
        self.over = False
        self._told = told
        self._next: dict[str, int] = {"heartbeat": time.monotonic_ns()}
        self._second = 0
        self._send("client_ready", LOCUST)

    def take(self) -> None:
        """Do as the master says, in all messages that have come."""
        while True:
            try:
                kind, data, _ = msgspec.msgpack.decode(self.socket.recv(zmq.NOBLOCK))
            except zmq.Again:
                return
            match kind:
                case "ack":
                    self._tell(Join(self.id.partition("_")[0], RunFacts(), MachineFacts(cores=EXECUTORS)))
                case "spawn":
                    self._spawn(data["user_classes_count"]["Load0"])
                case "stop":
                    self._stop()
                case "quit":
                    self._send("stats", self._statistics())
                    self.over = True
                case kind if kind == STALLMARK:
                    self._obey(decode_of_master(data["body"]))

    def _obey(self, message: Message) -> None:
        match message:
            case LoadOrder(_, number, machines):
                self._here = ThisMachine(number, machines)
                self._tell(ExecutorsReady(EXECUTORS, [EXECUTORS]))
            case Ping(sent_ns):
                self._tell(Pong(sent_ns, time.monotonic_ns()))
            case Go(start_ns):
                self.start_ns = start_ns
                self._next["report"] = start_ns + int((1 + TOLD_AFTER_S) * SECOND_NS)
            case Finish():
                self._next.pop("report", None)
                for _ in range(EXECUTORS):
                    self._tell(FinalReport(WORKLOAD.name, 0, 0, 0))
                self._tell(Done())

    def _spawn(self, users: int) -> None:
        self._send("spawning", None)
        self._have(users)
        self._told.users_s = (time.monotonic_ns() - self.start_ns) / SECOND_NS
        self._send("spawning_complete", self._statistics())

    def _stop(self) -> None:
        self._have(0)
        self._send("client_stopped", None)
        self._send("client_ready", LOCUST)

    def _have(self, users: int) -> None:
        self.users = users
        self._tell(UsersHere(0, users))

    def due(self, variants: Sequence[Rows]) -> int:
        """Send what is due by now. Return when something is due again."""
        now = time.monotonic_ns()
        for what, when in self._next.items():
            if when > now:
                continue
            match what:
                case "heartbeat":
                    state = "running" if self.users else "ready"
                    alive = {"state": state, "current_cpu_usage": 50.0, "current_memory_usage": 1 << 28}
                    self._send("heartbeat", alive)
                    self._next[what] += int(HEARTBEAT_S * SECOND_NS)
                    if (now // SECOND_NS) % STATS_S == 0:
                        self._send("stats", self._statistics())
                case "report":
                    self._told.late_ms = max(self._told.late_ms, (now - when) / 1e6)
                    self._report(variants)
                    self._next[what] += SECOND_NS
        return min(self._next.values())

    def _report(self, variants: Sequence[Rows]) -> None:
        rows = retimed(variants[(self._second + self._here.machine) % VARIANTS], self._second, self._here)
        self._second += 1
        for user in rows.users:
            user.running = self.users / EXECUTORS
        for row in rows.transactions:
            self._told.committed[row.transaction] = self._told.committed.get(row.transaction, 0) + row.committed
        self._told.reports += 1
        self._tell(Report.from_rows(rows))

    def _statistics(self) -> dict[str, Any]:
        return {"user_classes_count": {"Load0": self.users}, "user_count": self.users, "stats": [], "errors": {}}

    def _tell(self, message: Message) -> None:
        self._count += 1
        self._send(STALLMARK, {"body": encode(message), "count": self._count})

    def _send(self, kind: str, data: Any) -> None:
        frame = msgspec.msgpack.encode((kind, data, self.id))
        self._told.bytes += len(frame)
        self.socket.send(frame)


def watch(folder: Path, machines: Sequence[Machine], told: Told) -> None:
    """Note how long after its end each second is in the record of transactions."""
    stream, seen = GrowingStream(folder / "transactions.arrows"), set[int]()
    while not all(machine.over for machine in machines):
        time.sleep(LOOK_EVERY_S)
        for batch in stream.read():
            now = time.monotonic_ns()
            for second in set(batch.column("second").to_pylist()) - seen:
                seen.add(second)
                told.delays_s.append((now - machines[0].start_ns) / SECOND_NS - second - 1)


def simulate(order: Order) -> Told:
    """Be all these machines, from their joining to their end."""
    rng, told = np.random.default_rng(1), Told()
    variants = [machine_second(rng) for _ in range(VARIANTS)]
    with zmq.Context() as context:
        context.max_sockets = 2 * order.machines + 8
        machines = [Machine(context, number, order, told) for number in range(order.machines)]
        threading.Thread(target=watch, args=(Path(order.folder), machines, told), daemon=True).start()
        poller, of_socket = zmq.Poller(), {machine.socket: machine for machine in machines}
        for machine in machines:
            poller.register(machine.socket, zmq.POLLIN)
        while here := [machine for machine in machines if not machine.over]:
            next_ns = min(machine.due(variants) for machine in here)
            for socket, _ in poller.poll(max(0, (next_ns - time.monotonic_ns()) // 1_000_000)):
                of_socket[socket].take()
                if of_socket[socket].over:
                    poller.unregister(socket)
        told.seconds = (time.monotonic_ns() - machines[0].start_ns) / SECOND_NS
        for machine in machines:
            machine.socket.close(linger=500)
    return told


if __name__ == "__main__":
    print(msgspec.json.encode(simulate(msgspec.json.decode(sys.argv[1], type=Order))).decode())
