"""The loads of a run: users and steps of each, their timeline, and the machines that drive them."""

import math
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from stallmark.driver.pacing import Arrivals
from stallmark.driver.retry import MOST_RECONNECTS

# The timeline of one run: steps on a fixed timeline, known to every process before the first user starts.

# Servers hand in their statistics up to a second late (PGSTAT_MIN_INTERVAL): the load goes on meanwhile.
COOL_DOWN_S = 2.0
BETWEEN_LEVELS_S = 3.0
"""Between two levels of a search: the time in which all executors and the server report the one that has ended."""


@dataclass(frozen=True)
class Step:
    """A step of a timeline; its times are seconds from the run's start.

    Users ramp up from `begin_s` for `ramp_s`, the warm-up lasts until `measure_s`, and the measured interval is
    `measure_s` to `end_s`. `users` counts the users of all loads together.
    """

    name: str
    users: int
    begin_s: float
    ramp_s: float
    measure_s: float
    end_s: float


@dataclass(frozen=True)
class WarmUpLimits:
    """The shortest and the longest time after its ramp, in seconds, that a step waits for a steady state before it
    is measured."""

    at_least_s: float
    at_most_s: float


@dataclass(frozen=True)
class Timeline:
    """The timeline of one run, which all of its loads follow."""

    steps: tuple[Step, ...]
    warm_up_limits: WarmUpLimits | None = None
    """Limits where steps wait for a steady state. Such steps are planned as if it came at the last moment."""
    reserve_s: float = 0.0
    """The longest time that a search may need for further steps; 0 where all steps are known."""

    def measuring_from(self, index: int, second: float) -> "Timeline":
        """Return a timeline whose step number `index` is measured from `second` on, for the planned time.

        Later steps move by the same time.
        """
        earlier_s = self.steps[index].measure_s - second
        current = self.steps[index]
        moved = replace(current, measure_s=second, end_s=current.end_s - earlier_s)
        later = (
            replace(
                step,
                begin_s=step.begin_s - earlier_s,
                measure_s=step.measure_s - earlier_s,
                end_s=step.end_s - earlier_s,
            )
            for step in self.steps[index + 1 :]
        )
        return replace(self, steps=(*self.steps[:index], moved, *later))

    def ending(self, second: float, measured_from: float | None = None) -> "Timeline":
        """Return a timeline whose last step ends then, later or earlier than planned."""
        last = self.steps[-1]
        measure_s = last.measure_s if measured_from is None else measured_from
        return self._ending_with(replace(last, measure_s=measure_s, end_s=second), self.steps[:-1])

    def followed_by(self, step: Step) -> "Timeline":
        """Return a timeline with one more step, out of the time that was reserved for it."""
        return self._ending_with(step, self.steps)

    def changed_at(self, second: float, users: int, ramp_s: float) -> "Timeline":
        """Return a timeline whose present step ends then. One with these users follows until the planned end, in place
        of all later steps; it is measured once its ramp is over."""
        end_s = self.steps[-1].end_s
        measure_s = min(second + ramp_s, end_s)
        stopped = self.stopped_at(second)
        name = _numbered(f"{users} users", sum(step.users == users for step in stopped.steps))
        step = Step(name, users, second, ramp_s, measure_s, end_s)
        return replace(stopped, steps=(*stopped.steps, step))

    def stopped_at(self, second: float) -> "Timeline":
        """Return a timeline that ends then, with its present step. No step waits for a steady state any more."""
        *before, last = self.steps[: self.index_at(second) + 1]
        cut = replace(last, measure_s=min(last.measure_s, second), end_s=second)
        return Timeline((*before, cut))

    def without_reserve(self) -> "Timeline":
        """Return a timeline to which no step is added any more."""
        return replace(self, reserve_s=0.0)

    def _ending_with(self, last: Step, before: tuple[Step, ...]) -> "Timeline":
        left_s = self.end_s - COOL_DOWN_S - last.end_s
        return replace(self, steps=(*before, last), reserve_s=max(2 * BETWEEN_LEVELS_S, left_s))

    @property
    def end_s(self) -> float:
        """Return the latest second at which users stop: COOL_DOWN_S after the last step, so that stopping does not
        disturb its end.
        """
        return self.steps[-1].end_s + self.reserve_s + COOL_DOWN_S

    def index_at(self, second: float) -> int:
        """Return the place of the step in force; of the last one after the end."""
        return next((place for place, step in enumerate(self.steps) if second < step.end_s), len(self.steps) - 1)

    def step_at(self, second: float) -> Step:
        """Return the step in force; the last one after the end."""
        return self.steps[self.index_at(second)]


def consecutive_steps(
    planned: Iterable[tuple[str, int]], *, ramp_s: float, warm_up_s: float, measure_s: float
) -> tuple[Step, ...]:
    """Return steps of equal length, one after the other. Each ramps from the users of its predecessor."""
    steps: list[Step] = []
    seen: Counter[str] = Counter()
    for name, users in planned:
        begin = steps[-1].end_s if steps else 0.0
        measure = begin + ramp_s + warm_up_s
        steps.append(Step(_numbered(name, seen[name]), users, begin, ramp_s, measure, measure + measure_s))
        seen[name] += 1
    return tuple(steps)


def _numbered(name: str, before: int) -> str:
    """Return the name of a step after others of that name: its history differs from theirs."""
    return f"{name} ({before + 1})" if before else name


# The load machines of a run: those it waits for, what they must agree on, and which of them this one is.

MASTER_PORT = 5557  # Locust's own

TOLD_AFTER_S = 0.4
"""The time after a second's end when a load machine reports that second: its executors report four times a second."""

USERS_TOLD_AFTER_S = 0.02
"""The time after which a change of the number of users is reported: many start at once, on many machines."""

MASTER_SILENT_S = 8
"""The silence after which a load machine ends the run. Locust alone would continue for a minute, and the load with it.
"""


class MachinesMissing(Exception):
    """An error: load machines are missing or not ready. The message names them."""


Measures = dict[str, int | float | str | bool | None]


class RunFacts(msgspec.Struct, frozen=True):
    """The facts that all machines of a run must agree on.

    Fields that another version of Stallmark adds are ignored, and fields that it lacks are None: its version differs in
    any case.
    """

    stallmark: str | None = None
    server: str | None = None
    workload: str | None = None
    scale: Measures | None = None
    options: Measures | None = None
    seed: int | None = None
    bytes_as_loaded: int | None = None


@dataclass(frozen=True)
class ExpectedMachines:
    """The load machines that a run waits for, on `host` ("*": all addresses of this machine) and `port`.

    A machine must agree with `facts`.
    """

    count: int
    host: str
    port: int
    facts: RunFacts = field(default_factory=RunFacts)
    within_s: float = 300


@dataclass(frozen=True)
class ThisMachine:
    """The place of this machine among the load machines, counted from 1; 0 where the load comes from one machine alone.

    Executors and users are numbered in turn over the machines, so that no number is given twice.
    """

    machine: int = 0
    machines: int = 1

    def number(self, index: int) -> int:
        return index * self.machines + max(0, self.machine - 1)


ALONE = ThisMachine()


class LocustPage(msgspec.Struct, array_like=True, forbid_unknown_fields=True, frozen=True):
    """The address of Locust's page on the conductor. Who changes the load there needs the `token`."""

    host: str
    port: int
    token: str


# The loads of a run: what the users of each are to do, how many there are in every step, and the processes for it.

# Threads of one interpreter share its lock, and an executor keeps to one core. With 8 users who do not think, on 2
# cores, two executors made 1.4 to 1.7 × the transactions of one (docs/performance.md).
USERS_PER_EXECUTOR = 4


class LoadSpec(msgspec.Struct, array_like=True, forbid_unknown_fields=True, frozen=True):
    """The work of the users of one load, on whatever machine they are.

    `users` holds the number of users in each step of the timeline; with 0 the load rests. The `rate` of open arrivals
    is the rate of all users together, in every step. A load of several cells is `cells` specs of one name, each with
    its own part of the data.
    """

    name: str
    workload: str
    scale: dict[str, int | float]
    deck: dict[str, int]
    users: tuple[int, ...]
    seed: int
    call_timeout_s: float
    arrivals: Arrivals = Arrivals()
    background_per_user: float = 0.0
    """Background sessions for each virtual user."""
    locality: float = 0.0
    repeat: int = 1
    cell: int = 1
    cells: int = 1
    most_reconnects: int = MOST_RECONNECTS
    database: str | None = None
    """The name of its database on the server; None for the one that the URL names."""
    application: str = "stallmark-user"
    """The name under which the server knows the sessions."""

    at_most: int = 0
    """The users that a search, or somebody on Locust's page, may ask for in a later step."""
    definition: dict[str, Any] | None = None
    """The definition of a user's workload; None for one of ours."""

    @property
    def most_users(self) -> int:
        return max(*self.users, self.at_most)

    def users_in(self, step: int) -> int:
        """Return its users in a step; in one that a search has added they differ from the first by its level alone."""
        return self.users[min(step, len(self.users) - 1)]

    def background_sessions(self, executors: int) -> int:
        """Return the background sessions in each executor, where there are `executors` of this load in all."""
        return math.ceil(self.most_users * self.background_per_user / executors)


class LoadPart(msgspec.Struct, array_like=True, forbid_unknown_fields=True, frozen=True):
    """The part of a load that one executor has.

    `place` is the load's index among the loads of the run. Parts of all loads and machines are numbered as if each had
    a process of its own: this part is `number` of `processes`. `is_first` marks the first part of a load. `share` is
    the part's share of transactions that are due at a rate.
    """

    load: LoadSpec
    background_sessions: int
    place: int = 0
    of_several: bool = False
    is_first: bool = True
    number: int = 0
    processes: int = 1
    share: float = 1.0


def pack_executors(loads: Sequence[LoadSpec], machines: int = 1) -> list[list[int]]:
    """Return the places of the loads in each executor on this one of `machines`: few users in each, and no more
    executors than cores.

    With enough cores no executor serves two loads: when it dies, other loads continue. An executor has up to
    USERS_PER_EXECUTOR users: on 8 cores, loads of 10 and 4 users get 3 and 1 executors, [[0], [0], [0], [1]]. On 2
    cores they want more executors than there are cores, so both share: [[0, 1], [0]].
    """
    users = [math.ceil(load.most_users / machines) for load in loads]
    wanted = [max(1, math.ceil(number / USERS_PER_EXECUTOR)) for number in users]
    # With enough cores no executor serves two loads.
    if sum(wanted) <= (count := os.cpu_count() or 1):
        return [[place] for place, parts in enumerate(wanted) for _ in range(parts)]
    places: list[list[int]] = [[] for _ in range(count)]
    given = [0.0] * count
    # Greedy bin packing: the largest load first, onto the executors with the fewest users.
    for place in sorted(range(len(loads)), key=lambda place: -users[place]):
        parts = min(count, wanted[place])
        for executor in sorted(range(count), key=lambda executor: given[executor])[:parts]:
            places[executor].append(place)
            given[executor] += users[place] / parts
    return [executor_places for executor_places in places if executor_places]


def executor_counts(loads: Sequence[LoadSpec], machines: int = 1) -> list[int]:
    """Return the number of executors that have users of each load on this one of `machines`."""
    counts = Counter(place for places in pack_executors(loads, machines) for place in places)
    return [counts[place] for place in range(len(loads))]


def background_sessions(loads: Sequence[LoadSpec], machines: Sequence[Sequence[int]]) -> dict[str, int]:
    """Return the background sessions of each load by name, over all its cells and all machines. `machines` holds, for
    each machine, the number of its executors for each load.
    """
    sessions = dict.fromkeys((load.name for load in loads), 0)
    for executors_of_loads in machines:
        for load, here in zip(loads, executors_of_loads, strict=True):
            sessions[load.name] += here * load.background_sessions(here * len(machines))
    return sessions
