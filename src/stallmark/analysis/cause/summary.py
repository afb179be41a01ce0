"""What the analysis says of causes: plain values, as the report, the terminal and `--json` show them.

A `StepCause` is of one step: where its transactions' time went, what moved with throughput, which laws hold, and what
faster reads would have given. A `Cause` is of two sides of a comparison: why B differs from A.
"""

from dataclasses import dataclass, field
from typing import Literal

Storage = Literal["is the cause", "is not the cause", "one of several", "not known"]

PARTS = {
    "read": "reads of data files",
    "log": "writing the log",
    "other I/O": "writes and other I/O of files",
    "lock": "locks",
    "cpu": "CPU",
    "client": "driver and network",
    "queue": "waiting for a free user",
    "rest": "everything else",
}
"""Parts of a transaction's response time, in the order in which they are shown, and what they are called."""

STORAGE = ("read", "log", "other I/O")
"""Of the parts, those that a faster device shortens."""


@dataclass(frozen=True)
class Budget:
    """Where one transaction's response time went, on average over a step's measured interval.

    `parts_ms` has every key of PARTS and sums to `response_ms`. Of I/O it holds what the device accounts for; what
    a session waited beyond that, for a CPU after its I/O was done, is in "cpu".
    """

    response_ms: float  # scheduled to ended, mean of all types
    transactions: int  # committed or rolled back
    parts_ms: dict[str, float]
    looks: int  # sessions looked at, one by one
    device_known: bool  # whether the device's own counters divide I/O from waiting for a CPU after it

    @property
    def storage_ms(self) -> float:
        return sum(self.parts_ms[name] for name in STORAGE)

    @property
    def storage_share(self) -> float:
        return self.storage_ms / self.response_ms

    def share(self, part: str) -> float:
        return self.parts_ms[part] / self.response_ms


@dataclass(frozen=True)
class Law:
    """An identity of operational analysis, both of its sides measured in different ways. `closed` is None where the
    two sides need not agree more closely than they do for a reason that `sentence` gives."""

    name: str
    left: str  # what it is, in words
    right: str
    unit: str
    left_value: float
    right_value: float
    tolerance: float  # of right ÷ left from 1
    closed: bool | None
    sentence: str

    @property
    def gap(self) -> float:
        """right ÷ left, less 1."""
        return self.right_value / self.left_value - 1 if self.left_value else 0.0


@dataclass(frozen=True)
class Association:
    """What moved with throughput within a step: on changes from one stretch of time to the next.

    `lag_s` is positive where throughput follows. The elasticity is d ln TPS / d ln of the series, of `elasticity_n`
    changes from one stretch of ASSOCIATION_BIN_S to the next; scatter in the measured series draws it towards 0.
    Intervals are of 95 %; fields are None where they cannot be computed.
    """

    name: str
    unit: str
    n: int  # pairs of changes
    bin_s: int  # length of a stretch
    r: float
    low: float
    high: float
    lag_s: float | None = None
    lag_low_s: float | None = None
    lag_high_s: float | None = None
    elasticity_n: int = 0
    elasticity: float | None = None
    elasticity_low: float | None = None
    elasticity_high: float | None = None
    expected: float | None = None  # elasticity that the share of the response time promises

    @property
    def shown(self) -> bool:
        """Whether it moved with throughput at all."""
        return self.low > 0 or self.high < 0


@dataclass(frozen=True)
class Demands:
    """What the closed model of a step is made of. Times are ms per transaction of the users'."""

    users: float
    think_ms: float  # with the driver's own overhead: what of a user's cycle is outside the response time
    rate: float  # transactions of the users' per second, committed or rolled back
    tps: float  # the step's result; taken to keep its ratio to `rate`
    read_ms: float  # of a single read
    read_source: str  # who timed it: "device" or "server"
    read_part_ms: float
    read_volume_ms: float  # the same by the counters: reads per transaction × read_ms
    lock_ms: float
    cpu_part_ms: float  # running or waiting for a CPU
    cpu_ms: float | None  # CPU time used; None where the host's CPU or the number of its cores is not known
    cpu_seen_ms: float | None  # of it, what sessions were seen in and the driver used; the rest may be anybody's
    cores: int | None
    fixed_ms: float  # writes, log, client and the rest: taken not to change
    spread: float  # standard error of the step's TPS, relative, from means of batches within the run

    @property
    def reads_per_transaction(self) -> float:
        return self.read_volume_ms / self.read_ms

    @property
    def response_ms(self) -> float:
        return self.read_part_ms + self.lock_ms + self.cpu_part_ms + self.fixed_ms


@dataclass(frozen=True)
class Prediction:
    """Committed transactions per second if a read took `read_ms` on average, queueing included."""

    read_ms: float
    tps: float
    low: float
    high: float
    response_ms: float
    limit: str  # "reads", "CPU", "locks", "think time" or "the rest": where most of a user's time would go


@dataclass(frozen=True)
class StepCause:
    """Everything that one step tells of causes. What is None says why in `notes`."""

    budget: Budget | None
    laws: list[Law] = field(default_factory=list)
    associations: list[Association] = field(default_factory=list)  # strongest first
    demands: Demands | None = None
    predictions: list[Prediction] = field(default_factory=list)  # slowest reads first
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Evidence:
    """One figure for A and for B: means over runs. The interval (95 %) is of B − A, over runs; None with fewer than
    two runs on a side."""

    name: str
    unit: str
    a: float
    b: float
    low: float | None
    high: float | None
    runs_a: int
    runs_b: int
    method: str
    share: float | None = None  # of the change in response time

    @property
    def change(self) -> float:
        return self.b - self.a


@dataclass(frozen=True)
class Cause:
    """Why B differs from A. `because` goes on with a sentence, "because read stalls fell from 4.1 to 1.9 ms"; None
    where there is nothing to say. `sentence` stands by itself."""

    storage: Storage
    sentence: str
    because: str | None = None
    parts: list[Evidence] = field(default_factory=list)  # of the response time, ms per transaction
    evidence: list[Evidence] = field(default_factory=list)  # I/O, CPU and what was checked besides
    predictions: list["Tested"] = field(default_factory=list)
    cautions: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Tested:
    """What one side's model said of the other, put beside what that other really did: TPS, means over runs."""

    model_of: str  # variant
    variant: str
    read_ms: float  # of the other, as measured
    predicted: float
    low: float
    high: float
    measured: float
    runs: int  # of the other

    @property
    def error(self) -> float:
        """predicted ÷ measured, less 1."""
        return self.predicted / self.measured - 1

    @property
    def held(self) -> bool:
        return self.low <= self.measured <= self.high
