"""The master of a load from several machines: Locust's master, which collects and runs no users itself.

Load machines (worker.py) join and are refused or taken. Their clocks are compared with ours, and executors there do the
work. A machine that comes when the run has enough, or has begun, gets no answer and asks again: it waits for the next
run. No message holds a URL or a password, because Locust's connection is not encrypted.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import monotonic_ns
from typing import NoReturn

import gevent
import msgspec
from gevent.event import Event
from gevent.queue import Queue
from locust.env import Environment
from locust.rpc import Message
from locust.runners import FALLBACK_INTERVAL, STATE_MISSING, MasterRunner
from zmq import Frame, ZMQError

from stallmark.driver.executor_pool import LAST_WORD_S
from stallmark.driver.load import USERS_TOLD_AFTER_S, ExpectedMachines, LoadSpec, MachinesMissing
from stallmark.driver.messages import (
    ClocksCompared,
    Done,
    EndLoad,
    ExecutorDied,
    ExecutorsReady,
    FinalReport,
    Finish,
    Go,
    Join,
    LateMachine,
    LoadMachine,
    LoadOrder,
    MachineLost,
    Malformed,
    MessagesLost,
    NotUnderstood,
    Ping,
    Pong,
    Rate,
    Refused,
    Report,
    SessionLost,
    UsersElsewhere,
    UsersHere,
    Waiting,
    decode_of_machine,
    encode,
)
from stallmark.driver.messages import Message as OurMessage
from stallmark.machines.messages import STALLMARK, ClockOffset, from_machine, refusal

READY_WITHIN_S = 50  # below `controller.READY_LIMIT_S`
# Messages to each machine to compare clocks: the quickest decides, so several are needed.
EXCHANGES = 10
ANSWER_WITHIN_S = 2
# Limits the wait for messages to a machine that has left.
LINGER_MS = 500


@dataclass
class TakenMachine:
    """A load machine that was taken. `number` counts from 1 when all are there."""

    id: str
    join: Join
    number: int = 0
    executors: int = 0
    parts: list[int] = field(default_factory=list)
    running: dict[int, int] = field(default_factory=dict)
    received: int = 0
    lost: bool = False
    clock: ClockOffset = field(default_factory=lambda: ClockOffset(0, 0))
    ready: Event = field(default_factory=Event)
    done: Event = field(default_factory=Event)
    pongs: Queue = field(default_factory=Queue)


class Master(MasterRunner):
    """The master of one run, which delivers the reports of the executors of all machines.

    It adds Refused and Waiting until all machines have come, LateMachine for one too many, MachineLost and MessagesLost
    when a machine or its messages are lost, and ClocksCompared at the end. It adds NotUnderstood once for each sender
    of an unknown message.
    """

    def __init__(
        self,
        environment: Environment,
        expected: ExpectedMachines,
        loads: Sequence[LoadSpec],
        deliver: Callable[[OurMessage], None],
    ):
        self._expected = expected
        self._loads = list(loads)
        self._deliver = deliver
        self._machines: dict[str, TakenMachine] = {}
        self._all_there = Event()
        self._over = False
        self._not_understood: set[str] = set()
        self._late: set[str] = set()  # names of machines
        # Loads whose new numbers were not sent to the machines yet.
        self._users_changed: set[int] = set()
        super().__init__(environment, expected.host, expected.port)
        environment.runner = self
        if environment.shape_class:
            environment.shape_class.runner = self

    def client_listener(self) -> NoReturn:
        """Take what is sent to the port, by anyone; Locust's own loop ends with the first message that is not one of
        its kind.
        """
        while True:
            try:
                frames: list[Frame] = self.server.socket.recv_multipart(copy=False)
            except ZMQError:
                self.connection_broken = True
                gevent.sleep(FALLBACK_INTERVAL)
                continue
            self.handle([frame.bytes for frame in frames], str(frames[0].get("Peer-Address")))

    def handle(self, frames: Sequence[bytes], address: str) -> None:
        """Handle a message from an address, or ignore it and report that once."""
        try:
            message = Message(*from_machine(frames))
            self.handle_message(message.node_id, message)
        except Malformed:
            machine = self._machines.get(frames[0].decode(errors="replace"))
            sender = f"load machine {machine.number}" if machine and machine.number else address
            if sender not in self._not_understood:
                self._not_understood.add(sender)
                self._deliver(NotUnderstood(sender))

    def handle_message(self, client_id: str, msg: Message) -> None:
        is_known = client_id in self.clients
        match msg.type:
            case "client_ready":
                if client_id in self._machines or not self._all_there.is_set():
                    super().handle_message(client_id, msg)
                else:
                    # Locust's ids are the host's name, “_” and a random part.
                    self._report_late(client_id.rpartition("_")[0] or client_id)
            case kind if kind == STALLMARK:
                self._receive(client_id, msg.data["body"], msg.data["count"])
            case "stats" if is_known:
                self.clients[client_id].user_classes_count = msg.data["user_classes_count"]
                self.check_stopped()
            case _ if is_known:
                if self.clients[client_id].state == STATE_MISSING:
                    # A machine that comes back still counts as lost: its users were given up.
                    self._report_lost()
                super().handle_message(client_id, msg)

    def wait_until_ready(self) -> list[LoadMachine]:
        """Wait until all machines are there and their executors are ready. Raises MachinesMissing."""
        self._wait_for_all()
        for number, machine in enumerate(sorted(self._machines.values(), key=lambda m: m.id), start=1):
            machine.number = number
            self._send(machine, LoadOrder(self._loads, number, self._expected.count))
        self.greenlet.spawn(self._watch)
        machines = sorted(self._machines.values(), key=lambda m: m.number)
        gevent.wait([machine.ready for machine in machines], timeout=READY_WITHIN_S)
        if late := [str(machine.number) for machine in machines if not machine.ready.is_set()]:
            raise MachinesMissing(f"load machine {', '.join(late)} was not ready within {READY_WITHIN_S} s")
        for machine in machines:
            if (clock := self._compare_clocks(machine)) is None:
                raise MachinesMissing(f"load machine {machine.number} does not answer")
            machine.clock = clock
        return [self._describe_machine(machine) for machine in machines]

    def go(self, start_ns: int) -> None:
        for machine in self._machines.values():
            self._send(machine, Go(start_ns + machine.clock.offset_ns))

    def end_load(self, load: str) -> None:
        for machine in self._machines.values():
            self._send(machine, EndLoad(load))

    def set_rate(self, rate: Rate) -> None:
        for machine in self._machines.values():
            self._send(machine, rate)

    def stop(self, send_stop_to_client: bool = True) -> None:
        # Reported before Locust's stop, of which a lost machine may be the cause.
        self._report_lost()
        self._over = True
        super().stop(send_stop_to_client)

    def quit(self) -> None:
        """Stop all users, take the last message of every machine, and release them."""
        self.stop(send_stop_to_client=False)
        self._over = True
        machines = [machine for machine in self._machines.values() if not machine.lost]
        self._report_clocks([machine for machine in machines if machine.ready.is_set()])
        for machine in machines:
            self._send(machine, Finish())
        gevent.wait([machine.done for machine in machines], timeout=LAST_WORD_S + 3)
        super().quit()
        self.server.close(linger=LINGER_MS)

    def _wait_for_all(self) -> None:
        """Wait until enough machines have been taken and are still there. Raise MachinesMissing."""
        began_ns, wanted, last_count = monotonic_ns(), self._expected.count, -1
        while len(here := self._still_here()) < wanted:
            waited_s = (monotonic_ns() - began_ns) / 1e9
            if waited_s > self._expected.within_s:
                raise MachinesMissing(
                    f"{len(here)} of {wanted} load machines came within {self._expected.within_s:g} s; start "
                    f"`stallmark worker --master-host … --master-port {self._expected.port} --server URL` on each"
                )
            if waited_s > ANSWER_WITHIN_S and last_count != len(here):
                last_count = len(here)
                self._deliver(Waiting(last_count, wanted))
            gevent.sleep(0.05)
        self._all_there.set()
        # Locust also stops when all machines have left before the load began.
        self._over = False
        for stranger in set(self.clients) - set(self._machines):
            del self.clients[stranger]  # Locust would give it users

    def _still_here(self) -> dict[str, TakenMachine]:
        """Forget machines that have left, so that others may come instead; return those still here."""
        self._machines = {id: machine for id, machine in self._machines.items() if not self._is_lost(machine)}
        return self._machines

    def _watch(self) -> None:
        while True:
            gevent.sleep(0.5)
            self._report_lost()

    def _report_lost(self) -> None:
        """Report lost machines while the load lasts: after its end Locust forgets machines for a moment."""
        if self._over or not self._all_there.is_set():
            return
        for machine in self._machines.values():
            if not machine.lost and self._is_lost(machine):
                machine.lost = True
                self._deliver(MachineLost(machine.number))

    def _is_lost(self, machine: TakenMachine) -> bool:
        """Return True if a machine has left, or has been silent for several seconds."""
        node = self.clients.get(machine.id)
        return node is None or node.state == STATE_MISSING

    def _receive(self, id: str, body: bytes, count: int) -> None:
        """Take a message of ours. Raise Malformed."""
        message = decode_of_machine(body)
        if machine := self._machines.get(id):
            self._refuse_foreign(machine, message)
            machine.received += 1
            if count != machine.received:
                self._deliver(MessagesLost(machine.number))
            self._hear(machine, message)
        elif isinstance(message, Join):
            self._judge(id, message)

    def _refuse_foreign(self, machine: TakenMachine, message: OurMessage) -> None:
        """Raise Malformed for a message on a load that this run has not, or in the name of another machine."""
        names = {load.name for load in self._loads}
        match message:
            case UsersHere(load):
                fits = 0 <= load < len(self._loads)
            case SessionLost(load) | FinalReport(load):
                fits = load in names
            case ExecutorDied(loads):
                fits = names.issuperset(loads)
            case ExecutorsReady(_, parts):
                fits = len(parts) == len(self._loads)
            case Report():
                rows = message.rows()
                fits = names.issuperset(rows.loads()) and {machine.number}.issuperset(rows.machines())
            case Join():
                fits = False
            case _:
                fits = True
        if not fits:
            raise Malformed(f"{type(message).__name__} of another run")

    def _judge(self, id: str, join: Join) -> None:
        if self._all_there.is_set() or len(self._machines) == self._expected.count:
            self._report_late(join.name)
        elif reason := refusal(self._expected.facts, join.agreed):
            refused = Refused(join.name, reason)
            self._deliver(refused)
            self.send_message(STALLMARK, {"body": encode(refused)}, client_id=id)
            self.clients.pop(id, None)
        else:
            self._machines[id] = TakenMachine(id, join, received=1)

    def _report_late(self, name: str) -> None:
        """Report once that a machine connected after all expected ones."""
        if name not in self._late:
            self._late.add(name)
            self._deliver(LateMachine(name))

    def _hear(self, machine: TakenMachine, message: OurMessage) -> None:
        match message:
            case ExecutorsReady(executors, parts):
                machine.executors, machine.parts = executors, parts
                machine.ready.set()
            case Pong(sent_ns, seen_ns):
                machine.pongs.put((sent_ns, seen_ns, monotonic_ns()))
            case UsersHere(load, running):
                machine.running[load] = running
                if not self._users_changed:
                    self.greenlet.spawn(self._send_users)
                self._users_changed.add(load)
            case Done():
                machine.done.set()
            case Report():
                # Its sender needs no mention: the rows have the machine's name.
                self._deliver(message)
            case _:
                self._deliver(msgspec.structs.replace(message, machine=machine.number))

    def _send_users(self) -> None:
        """Send every machine the number of users on the others, for the loads whose number has changed."""
        gevent.sleep(USERS_TOLD_AFTER_S)
        changed, self._users_changed = self._users_changed, set()
        for load in changed:
            everywhere = sum(machine.running.get(load, 0) for machine in self._machines.values())
            for other in self._machines.values():
                self._send(other, UsersElsewhere(load, everywhere - other.running.get(load, 0)))

    def _compare_clocks(self, machine: TakenMachine) -> ClockOffset | None:
        """Compare the clock of a machine with ours; return None when it does not answer."""
        exchanges = []
        with gevent.Timeout(ANSWER_WITHIN_S, False):
            for _ in range(EXCHANGES):
                self._send(machine, Ping(monotonic_ns()))
                exchanges.append(machine.pongs.get())
        return ClockOffset.compare(exchanges) if exchanges else None

    def _report_clocks(self, machines: list[TakenMachine]) -> None:
        """Report how far the clocks may have drifted apart since the start."""
        asked = [(machine, gevent.spawn(self._compare_clocks, machine)) for machine in machines]
        gevent.joinall([greenlet for _, greenlet in asked])
        for machine, greenlet in asked:
            if now := greenlet.value:
                within_ns = abs(now.offset_ns - machine.clock.offset_ns) + now.within_ns
                within_ns = max(within_ns, machine.clock.within_ns)
                self._deliver(ClocksCompared(machine.number, round(within_ns / 1e6, 3)))

    def _describe_machine(self, machine: TakenMachine) -> LoadMachine:
        within_ms = round(machine.clock.within_ns / 1e6, 3)
        join = machine.join
        return LoadMachine(machine.number, join.name, machine.executors, machine.parts, within_ms, join.facts)

    def _send(self, machine: TakenMachine, message: OurMessage) -> None:
        self.send_message(STALLMARK, {"body": encode(message)}, client_id=machine.id)
