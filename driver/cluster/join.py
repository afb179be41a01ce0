"""The agreement on a load from several machines before it begins: which machines belong to it, and how their clocks
differ.

Nothing here depends on Locust or gevent.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

STALLMARK = "stallmark"
"""The message type that ours have among Locust's: a body, as between our own processes, and a worker's count of them.
"""

MASTER_PORT = 5557  # Locust's own


@dataclass(frozen=True)
class ExpectedMachines:
    """The load machines that a run waits for, on `host` ("*": all addresses of this machine) and `port`.

    `facts` are what a machine must agree with, in words: its Stallmark, the server, what the database holds.
    """

    count: int
    host: str
    port: int
    facts: Mapping[str, Any] = field(default_factory=dict)
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


def refusal(facts: Mapping[str, Any], offered: Mapping[str, Any]) -> str | None:
    """Return why a machine may not join, as the end of a sentence: the first difference. None when it may."""
    for name in {**facts, **offered}:
        if (ours := facts.get(name)) != (theirs := offered.get(name)):
            return f"its {name} is {_said(theirs)}, this run's is {_said(ours)}"
    return None


def _said(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {value[key]}" for key in sorted(value)) or "none"
    return "none" if value is None else str(value)


@dataclass(frozen=True)
class ClockOffset:
    """The difference between two monotonic clocks: another machine's is `offset_ns` ahead of ours, within ±
    `within_ns`."""

    offset_ns: int
    within_ns: int

    @classmethod
    def compare(cls, exchanges: Iterable[tuple[int, int, int]]) -> "ClockOffset":
        """Estimate the offset from messages there and back, each with three times in ns: sent (our clock), seen (the
        other's), back (ours).

        The quickest exchange says most. The other machine saw it between its two ends, so their middle is wrong by half
        its duration at most (Cristian's algorithm, Distributed Computing 3 (1989) 146).
        """
        sent, seen, back = min(exchanges, key=lambda exchange: exchange[2] - exchange[0])
        return cls(seen - (sent + back) // 2, (back - sent + 1) // 2)
