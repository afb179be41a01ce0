"""The patterns of a probe, as SQLIO's: 8 KiB and 64 KiB at random, 1 to 32 outstanding, and large blocks in order."""

from collections.abc import Sequence

from stallmark.errors import StallmarkError
from stallmark.record.probe import Asked, Pattern

_KIB = 1024
_SIZES = {"8k": 8 * _KIB, "64k": 64 * _KIB, "256k": 256 * _KIB, "1m": 1024 * _KIB}

PATTERNS: dict[str, Pattern] = {
    name: Pattern(name, operation, order, _SIZES[size])
    for order, sizes in (("random", ("8k", "64k")), ("sequential", ("256k", "1m")))
    for operation in ("read", "write")
    for size in sizes
    for name in (f"{size}-{order}-{operation}",)
}
OUTSTANDING = (1, 2, 4, 8, 16, 32)
IN_ORDER = (1, 8)
"""Outstanding I/Os of sequential patterns, each in a stream of its own: a single one, and several between which a
disk's arm moves. With more, the I/O that reaches the device is hardly in order any more."""
MOST_OUTSTANDING = 256

SHORT_STEPS = (
    Asked(PATTERNS["8k-random-read"], 1),
    Asked(PATTERNS["8k-random-read"], 8),
    Asked(PATTERNS["8k-random-read"], 32),
    Asked(PATTERNS["256k-sequential-read"], 1),
    Asked(PATTERNS["8k-random-write"], 8),
)
"""The steps that show a change of storage within seconds: reads come before the writes that change them. 32 outstanding
are about as many as thirty users have, so the two can be compared."""


def find_patterns(names: Sequence[str]) -> list[Pattern]:
    """Return the patterns of these names; all of them for no name. Raise StallmarkError for an unknown one."""
    for name in names:
        if name not in PATTERNS:
            raise StallmarkError(f"{name!r} is no pattern of a probe: there are {', '.join(PATTERNS)}.")
    return [PATTERNS[name] for name in names] or list(PATTERNS.values())


def steps_of(patterns: Sequence[Pattern], outstanding: Sequence[int]) -> tuple[Asked, ...]:
    """Return the steps: reads before the writes that change them; random patterns at each of `outstanding`."""
    ordered = sorted(patterns, key=lambda pattern: not pattern.reads)
    return tuple(
        Asked(pattern, depth)
        for pattern in ordered
        for depth in (outstanding if pattern.random else [d for d in outstanding if d in IN_ORDER] or outstanding[:1])
    )
