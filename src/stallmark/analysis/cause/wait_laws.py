"""Little's law of waits, where the server itself counts what tasks waited for (SQL Server's sys.dm_os_wait_stats)."""

from collections.abc import Mapping, Sequence

from stallmark.analysis.cause.summary import PARTS, Law
from stallmark.analysis.read.server_summary import ServerWait
from stallmark.analysis.read.wait_parts import part_of
from stallmark.format import number
from stallmark.stats.thresholds import LAW_FLOOR_USERS, LITTLE_READS

_COUNTED = ("read", "log", "lock")


def wait_laws(counted: Sequence[ServerWait], seen: Mapping[str, float]) -> list[Law]:
    """Of reads, log and locks: time waited per second, by the server's counters, beside the sessions seen waiting.

    Counters hold waits of the server's own tasks too, so they may be more; sessions seen waiting must be in them.
    """
    return [law for part in _COUNTED if (law := _of(part, counted, seen.get(part, 0.0)))] if seen else []


def _of(part: str, counted: Sequence[ServerWait], seen: float) -> Law | None:
    waits = [one for one in counted if part_of(one.wait_class, one.wait_type) == part]
    waited = sum(one.resource_ms / one.seconds / 1000 for one in waits)
    if not waits or max(waited, seen) < LAW_FLOOR_USERS:
        return None
    gap = seen / waited - 1 if waited else float("inf")
    closed = True if abs(gap) <= LITTLE_READS else (None if gap < 0 else False)
    both = f"{number(waited)} by the counters, {number(seen)} seen"
    sentence = {
        True: "The server counted as much waiting as sessions were seen in.",
        None: f"The server counted more waiting than users’ sessions were seen in ({both}): its own tasks wait too.",
        False: f"Does not close: sessions were seen waiting for longer than the server counted ({both}).",
    }[closed]
    names = ", ".join(sorted(one.wait_type for one in waits))
    return Law(
        f"Little’s law of waiting for {PARTS[part]}",
        f"time waited per second, by the server’s counters ({names})",
        "sessions seen waiting for it",
        "sessions",
        waited,
        seen,
        LITTLE_READS,
        closed,
        sentence,
    )
