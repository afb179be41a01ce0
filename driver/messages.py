"""Messages between our processes: tagged structs as MessagePack.

Every kind is a struct of its own; what arrives is checked against it, and anything else raises Malformed. Processes of
one machine send them over a channel (channel.py), load machines over Locust's connection (stallmark/machines/).
"""

from functools import reduce
from operator import or_
from typing import Any, TypeVar

import msgspec

from stallmark.driver.load import ExpectedMachines, LoadPart, LoadSpec, LocustPage, RunFacts, Timeline
from stallmark.driver.rows import Rows


class Message(msgspec.Struct, array_like=True, tag=True, forbid_unknown_fields=True):
    """A message; its class is its kind."""


# ---- Orders: what a process is to do -----------------------------------------------------------------------


class ConductorOrder(Message):
    """The order from the controller to the conductor. `engine` is the URL of the server, which may hold a password; it
    is None with `expected`, where the executors are on other machines."""

    timeline: Timeline
    engine: str | None
    loads: list[LoadSpec]
    expected: ExpectedMachines | None = None
    page: LocustPage | None = None


class ExecutorOrder(Message):
    """The order from a machine's executors to one of them: its parts of loads, and its place among all executors.

    `index` counts the executors of one machine, `number` those of all machines. `machine` counts from 1; it is 0 for a
    single machine.
    """

    engine: str
    parts: list[LoadPart]
    index: int = 0
    number: int = 0
    machine: int = 0
    machines: int = 1


class WorkerOrder(Message):
    """The order from `stallmark worker`: the master to join, and the URL by which this machine reaches the server."""

    host: str
    port: int
    engine: str


class LoadOrder(Message):
    """The order from the master to load machine `number` of `machines`."""

    loads: list[LoadSpec]
    number: int
    machines: int


class LocustUsers(msgspec.Struct, array_like=True, forbid_unknown_fields=True, frozen=True):
    """A class of our users in a locustfile, whose attributes these are. `sql` is a path from the folder `beside`."""

    name: str
    sql: str
    beside: str
    shared: bool
    most_users: int
    think_time_s: float
    call_timeout_s: float


class PrepareLoads(Message):
    """The order to make the loads of classes of users in a locustfile, on one server. `opens`: this process executes
    the opening transaction of a workload of ours."""

    server: str
    users: list[LocustUsers]
    opens: bool


class PreparedLoads(Message):
    """The answer: a load for each class. Otherwise it is CannotStart."""

    loads: list[LoadSpec]


class Go(Message):
    """The start of the run, on the receiver's monotonic clock."""

    start_ns: int


class NewTimeline(Message):
    """A timeline in place of the one before. Its last step is new if there are `users`, those of each load in it. They
    start and stop at the `spawn_rate`, per second, or during the step's ramp."""

    timeline: Timeline
    users: list[int] = []
    spawn_rate: float | None = None


class EndLoad(Message):
    """The order to end a load, by its name, that has lost a part of itself. Other loads continue."""

    load: str


class StartUser(Message):
    """A new user of a load, by its place in the order."""

    load: int
    user: int


class StopUser(Message):
    load: int
    user: int


class RateShare(Message):
    """The executor's share of a load's open arrivals."""

    load: int
    share: float


class Rate(Message):
    """The whole rate of a load's open arrivals from now on, by its place in the order. Waiting arrivals are dropped."""

    load: int
    per_s: float


class UsersElsewhere(Message):
    """The number of users that a load, by its place in the order, has on the other load machines."""

    load: int
    users: int


class Finish(Message):
    """The order from the master to stop the users and report what is left."""


class Resting(Message):
    """A load, by its place in the order, has no users, here or elsewhere, or has some again: timers wait meanwhile."""

    load: int
    rests: bool


class Quit(Message):
    pass


# ---- Reports: what happens in an executor. `load`: its name; `machine`: as in ExecutorOrder ---------------------


class ExecutorReady(Message):
    pass


class CannotStart(Message):
    """The last message of an executor that could not begin, for instance because the server refused it."""

    reason: str


class Report(Message):
    """Measurements: encoded `Rows` of an executor, or of all those of a load machine, which merges them."""

    encoded: msgspec.Raw

    @classmethod
    def from_rows(cls, rows: Rows) -> "Report":
        return cls(msgspec.Raw(_ENCODER.encode(rows)))

    def rows(self) -> Rows:
        """Decode the rows. Raise Malformed."""
        return checked(_ROWS_DECODER, self.encoded)


class SessionLost(Message):
    """A virtual user, or a background session (`user` None), has lost the server for good."""

    load: str
    user: int | None
    message: str
    machine: int = 0


class FinalReport(Message):
    """An executor's last message on a load: transactions that did not end, arrivals that no user took, and deferred
    tasks left.
    """

    load: str
    unfinished: int
    unserved: int
    pending: int
    machine: int = 0


class ExecutorDied(Message):
    """An executor ended early, with the users of its loads: `code` as `subprocess` has it, `reason` as the executor
    reported it.
    """

    loads: list[str]
    pid: int
    code: int | None
    machine: int = 0
    reason: str = ""


class ExecutorSilent(Message):
    """An executor was killed because its last message did not come."""

    machine: int = 0


class UsersHere(Message):
    """The users that a load, by its place in the order, has on this machine: sent when their number changes, and
    arrivals have a rate or there are other machines."""

    load: int
    running: int
    machine: int = 0


# ---- From the conductor to the controller ------------------------------------------------------------------


class MachineFacts(msgspec.Struct, frozen=True):
    """The facts about a load machine, as Machine of record/manifest/course.py has them."""

    system: str | None = None
    distribution: str | None = None
    cpu: str | None = None
    cores: int | None = None
    memory_bytes: int | None = None
    python: str | None = None


class LoadMachine(Message):
    """A machine that executes a share of every load. `parts`: how many of its executors have users of each load."""

    number: int
    name: str
    executors: int
    parts: list[int]
    clock_within_ms: float
    facts: MachineFacts


class Ready(Message):
    """A message that all executors are ready; without machines they are on this one."""

    machines: list[LoadMachine] = []


class Waiting(Message):
    """A message while load machines are waited for: `arrived` of `wanted` are here."""

    arrived: int
    wanted: int


class Refused(Message):
    """A load machine was refused because of a difference."""

    name: str
    reason: str


class LateMachine(Message):
    """A load machine came when all were there."""

    name: str


class Incomplete(Message):
    """A message that the load machines are not all there, or not all ready."""

    reason: str


class MachineLost(Message):
    machine: int


class MessagesLost(Message):
    """A message that messages of a load machine were lost."""

    machine: int


class ClocksCompared(Message):
    """The uncertainty of a load machine's clock at the end of the run, against the start."""

    machine: int
    within_ms: float


class ChangedByHand(Message):
    """Somebody asked for these users of each load on Locust's page, started and stopped at a rate per second, so that
    they are there after `ramp_s`."""

    users: list[int]
    spawn_rate: float
    ramp_s: float


class StoppedByHand(Message):
    """Somebody ended the load on Locust's page."""


class NotUnderstood(Message):
    """A message from `sender` was not understood and was ignored. Without a name, the sender is the other end of a
    channel. `machine`: as in ExecutorOrder.
    """

    sender: str = ""
    machine: int = 0


class Stopped(Message):
    """A message that Locust has stopped the users, as it does at the timeline's end."""


class Finished(Message):
    """The last message of a process."""


# ---- Between the master and load machines, and from these to `stallmark worker` -----------------------------


class Join(Message):
    """A machine asks to take part. `agreed` must be the run's own facts, `facts` describe the machine."""

    name: str
    agreed: RunFacts
    facts: MachineFacts


class ExecutorsReady(Message):
    """All executors of a machine are ready. `parts`: how many of them have users of each load."""

    executors: int
    parts: list[int]


class Ping(Message):
    sent_ns: int


class Pong(Message):
    sent_ns: int
    seen_ns: int


class Done(Message):
    """A message that all executors of a load machine have ended."""


class Connected(Message):
    pass


class Joined(Message):
    number: int
    machines: int


class Begun(Message):
    pass


class MasterLost(Message):
    pass


# ---- As bytes -----------------------------------------------------------------------------------------------


class Malformed(RuntimeError):
    """An error: the message that arrived is unknown to this process."""


_ENCODER = msgspec.msgpack.Encoder()
_ROWS_DECODER = msgspec.msgpack.Decoder(Rows)


def _decoder_of(*kinds: type[Message]) -> msgspec.msgpack.Decoder[Message]:
    return msgspec.msgpack.Decoder(reduce(or_, kinds))  # type: ignore[arg-type]


_DECODER = _decoder_of(*Message.__subclasses__())
_OF_MACHINES = _decoder_of(
    FinalReport,
    Done,
    ExecutorDied,
    ExecutorSilent,
    ExecutorsReady,
    Join,
    NotUnderstood,
    Pong,
    Report,
    SessionLost,
    UsersHere,
)
_OF_MASTERS = _decoder_of(EndLoad, Finish, Go, LoadOrder, Ping, Rate, Refused, UsersElsewhere)


def encode(message: Message) -> bytes:
    return _ENCODER.encode(message)


def decode(body: bytes) -> Message:
    """Return the message in `body`. Raise Malformed."""
    return checked(_DECODER, body)


def decode_of_machine(body: bytes) -> Message:
    """Return the message in `body`, of a kind that a load machine sends. Raise Malformed."""
    return checked(_OF_MACHINES, body)


def decode_of_master(body: bytes) -> Message:
    """Return the message in `body`, of a kind that a master sends. Raise Malformed."""
    return checked(_OF_MASTERS, body)


Decoded = TypeVar("Decoded")


def checked(decoder: msgspec.msgpack.Decoder[Decoded], body: Any) -> Decoded:
    """Return the decoded message. Raise Malformed."""
    try:
        return decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        size = memoryview(body).nbytes
        raise Malformed(f"{size} bytes from another process are not a known message: {error}") from error
