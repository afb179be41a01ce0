"""The load machines of a run: those it waits for, what they must agree on, and which of them this one is."""

from dataclasses import dataclass, field

import msgspec

MASTER_PORT = 5557  # Locust's own

TOLD_AFTER_S = 0.4
"""The time after a second's end when a load machine tells of it: its executors report four times a second."""

USERS_TOLD_AFTER_S = 0.02
"""The time after which a change of the number of users is told: many start at once, on many machines."""

MASTER_SILENT_S = 8
"""The silence after which a load machine ends the run. Locust would go on for a minute, and the load with it."""


class MachinesMissing(Exception):
    """The load machines are not all there, or not all ready; the sentence says so."""


Measures = dict[str, int | float | str | bool | None]


class RunFacts(msgspec.Struct, frozen=True):
    """The facts that all machines of a run must agree on. What another version of Stallmark adds is ignored, and what
    it lacks is None: its version is a difference in any case."""

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
