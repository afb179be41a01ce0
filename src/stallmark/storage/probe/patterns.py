"""Which I/O a probe issues: SQLIO's way, 8 KiB and 64 KiB at random, 1 to 32 outstanding, and large blocks in order."""

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
"""Outstanding I/Os of sequential patterns, each in a stream of its own: a single one, and several between which the arm
of a disk goes to and fro. Of more, what reaches the device is hardly in order any more."""
MOST_OUTSTANDING = 256

SHORT_STEPS = (
    Asked(PATTERNS["8k-random-read"], 1),
    Asked(PATTERNS["8k-random-read"], 8),
    Asked(PATTERNS["8k-random-read"], 32),
    Asked(PATTERNS["256k-sequential-read"], 1),
    Asked(PATTERNS["8k-random-write"], 8),
)
"""What tells within seconds whether storage is as it was: reads before the writes that change what they read. 32
outstanding are about as many as thirty users have, so that what they achieve can be set beside it."""


def find_patterns(names: Sequence[str]) -> list[Pattern]:
    """By name; all of them for none. Raises StallmarkError."""
    for name in names:
        if name not in PATTERNS:
            raise StallmarkError(f"{name!r} is no pattern of a probe: there are {', '.join(PATTERNS)}.")
    return [PATTERNS[name] for name in names] or list(PATTERNS.values())


def steps_of(patterns: Sequence[Pattern], outstanding: Sequence[int]) -> tuple[Asked, ...]:
    """Every pattern, reads before the writes that change what they read; random ones at each of `outstanding`."""
    ordered = sorted(patterns, key=lambda pattern: not pattern.reads)
    return tuple(
        Asked(pattern, depth)
        for pattern in ordered
        for depth in (outstanding if pattern.random else [d for d in outstanding if d in IN_ORDER] or outstanding[:1])
    )
