"""The loads of a run: what the users of each are to do, how many there are in every step, and the processes for it."""

import math
import os
from collections import Counter
from collections.abc import Sequence

import msgspec

from stallmark.driver.pacing import Arrivals
from stallmark.driver.retry import MOST_RECONNECTS

USERS_PER_EXECUTOR = 16  # threads of one interpreter share its lock; two processes gave 1.1 × one at 30 users


class LoadSpec(msgspec.Struct, array_like=True, forbid_unknown_fields=True, frozen=True):
    """The work of the users of one load, wherever they are.

    `users` are there in each step of the timeline; with 0 the load rests. The `rate` of open arrivals counts all of
    them together, whatever the step. A load of several cells is as many specs of one name, each with a part of the data
    of its own.
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
    """The users that a search may ask for in a later step."""

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
    """The part of a load that one executor has. `place` is the load's among all of the run.

    Parts of all loads and machines are counted, as if each had a process of its own: this is `number` of `processes`.
    `is_first`: of its load.
    """

    load: LoadSpec
    background_sessions: int
    place: int = 0
    of_several: bool = False
    is_first: bool = True
    number: int = 0
    processes: int = 1


def shared_out(loads: Sequence[LoadSpec], machines: int = 1) -> list[list[int]]:
    """Return the places of the loads in each executor on this one of `machines`: few users in each, and no more
    executors than cores. A load shares none where there are cores enough: when one dies, other loads go on."""
    users = [math.ceil(load.most_users / machines) for load in loads]
    wanted = [max(1, math.ceil(each / USERS_PER_EXECUTOR)) for each in users]
    if sum(wanted) <= (count := os.cpu_count() or 1):
        return [[place] for place, parts in enumerate(wanted) for _ in range(parts)]
    places: list[list[int]] = [[] for _ in range(count)]
    given = [0.0] * count
    for place in sorted(range(len(loads)), key=lambda place: -users[place]):
        parts = min(count, wanted[place])
        for executor in sorted(range(count), key=lambda executor: given[executor])[:parts]:
            places[executor].append(place)
            given[executor] += users[place] / parts
    return [each for each in places if each]


def executors(loads: Sequence[LoadSpec], machines: int = 1) -> list[int]:
    """Return the number of executors that have users of each load on this one of `machines`."""
    found = Counter(place for places in shared_out(loads, machines) for place in places)
    return [found[place] for place in range(len(loads))]


def background_sessions(loads: Sequence[LoadSpec], machines: Sequence[Sequence[int]]) -> dict[str, int]:
    """Return the background sessions of each load, by name and over all its cells and all machines, where each machine
    has so many executors of every one."""
    found = dict.fromkeys((load.name for load in loads), 0)
    for each in machines:
        for load, here in zip(loads, each, strict=True):
            found[load.name] += here * load.background_sessions(here * len(machines))
    return found
