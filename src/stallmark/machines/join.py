"""The agreement on a load from several machines before it begins: which machines may join, and how their clocks differ.

Nothing here depends on Locust or gevent.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from stallmark.driver.load import RunFacts

STALLMARK = "stallmark"
"""The type of our messages among Locust's: a body, as between our own processes, and the worker's message count."""

_IN_WORDS = {"stallmark": "Stallmark", "bytes_as_loaded": "size as loaded"}


def refusal(facts: RunFacts, offered: RunFacts) -> str | None:
    """Return the reason why a machine may not join, as the end of a sentence: the first difference. None when it
    may."""
    for name in RunFacts.__struct_fields__:
        if (ours := getattr(facts, name)) != (theirs := getattr(offered, name)):
            return f"its {_IN_WORDS.get(name, name)} is {_text_of(theirs)}, this run's is {_text_of(ours)}"
    return None


def _text_of(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {value[key]}" for key in sorted(value)) or "none"
    return "none" if value is None else str(value)


@dataclass(frozen=True)
class ClockOffset:
    """The difference between two monotonic clocks: another machine's is `offset_ns` ahead of ours, within
    ± `within_ns`."""

    offset_ns: int
    within_ns: int

    @classmethod
    def compare(cls, exchanges: Iterable[tuple[int, int, int]]) -> "ClockOffset":
        """Estimate the offset from messages there and back, each with three times in ns: sent (our clock), seen (the
        other's), back (ours).

        The quickest exchange is the most accurate: the other machine saw it at some time between sending and return, so
        the middle is wrong by at most half the duration (Cristian's algorithm, Distributed Computing 3 (1989) 146). An
        exchange sent at 0 ms and back at 4 ms that the other clock saw at 1,002 ms gives an offset of 1,000 ± 2 ms.
        """
        sent, seen, back = min(exchanges, key=lambda exchange: exchange[2] - exchange[0])
        return cls(seen - (sent + back) // 2, (back - sent + 1) // 2)
