"""The patterns of raw I/O: those of a probe as SQLIO's, and those of raw loads as a web server's."""

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from stallmark.errors import StallmarkError
from stallmark.record.manifest.storage import Asked, Pattern

# The patterns of a probe, as SQLIO's: 8 KiB and 64 KiB at random, 1 to 32 outstanding, and large blocks in order.

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
disk's arm moves. With more, the I/O that reaches the device is barely in order any more.
"""
MOST_OUTSTANDING = 256

SHORT_STEPS = (
    Asked(PATTERNS["8k-random-read"], 1),
    Asked(PATTERNS["8k-random-read"], 8),
    Asked(PATTERNS["8k-random-read"], 32),
    Asked(PATTERNS["256k-sequential-read"], 1),
    Asked(PATTERNS["8k-random-write"], 8),
)
"""The steps that show a change of storage within seconds: reads come before the writes that change them. 32 outstanding
I/Os are about those of thirty users, so the two can be compared.
"""


def find_patterns(names: Sequence[str]) -> list[Pattern]:
    """Return the patterns with the names given, or all without names. Raise StallmarkError for an unknown name."""
    for name in names:
        if name not in PATTERNS:
            raise StallmarkError(f"{name!r} is not a pattern of a probe: there are {', '.join(PATTERNS)}.")
    return [PATTERNS[name] for name in names] or list(PATTERNS.values())


def steps_of(patterns: Sequence[Pattern], outstanding: Sequence[int]) -> tuple[Asked, ...]:
    """Return the steps: reads before the writes that change them; random patterns at each of `outstanding`."""
    ordered = sorted(patterns, key=lambda pattern: not pattern.reads)
    return tuple(
        Asked(pattern, depth)
        for pattern in ordered
        for depth in (outstanding if pattern.random else [d for d in outstanding if d in IN_ORDER] or outstanding[:1])
    )


# The patterns of raw loads: those of a probe, and random reads of mixed sizes as a web server makes them.


@dataclass(frozen=True)
class RawPattern:
    """A kind of I/O. `blocks`: the share of the I/Os by their size in bytes."""

    name: str
    operation: Literal["read", "write"]
    order: Literal["random", "sequential"]
    blocks: Mapping[int, float]

    @property
    def random(self) -> bool:
        return self.order == "random"


WEB = RawPattern(
    "web",
    "read",
    "random",
    {
        512: 0.22,
        _KIB: 0.15,
        2 * _KIB: 0.08,
        4 * _KIB: 0.23,
        8 * _KIB: 0.15,
        16 * _KIB: 0.02,
        32 * _KIB: 0.06,
        64 * _KIB: 0.07,
        128 * _KIB: 0.01,
        512 * _KIB: 0.01,
    },
)
"""The access specification "Web Server" that Intel distributed with Iometer. Its sizes and shares are from memory: no
source was found that prints them all. Published reviews confirm random reads alone, from 512 bytes to 512 KiB, with 128
and 512 KiB beyond the sizes of its sister "File Server" (thessdreview.com, server profiles of the Micron 9100)."""

RAW_LOAD_PATTERNS: dict[str, RawPattern] = {
    **{
        name: RawPattern(
            name,
            "read" if pattern.reads else "write",
            "random" if pattern.random else "sequential",
            {pattern.block_bytes: 1.0},
        )
        for name, pattern in PATTERNS.items()
    },
    WEB.name: WEB,
}
ALIASES = {"scan": "256k-sequential-read"}
NAMES = (*ALIASES, WEB.name, *PATTERNS)


def find_pattern(name: str) -> RawPattern:
    """Return a pattern by its name or alias. Raise ValueError, with a name that is near, for an unknown one."""
    if pattern := RAW_LOAD_PATTERNS.get(ALIASES.get(name, name)):
        return pattern
    near = difflib.get_close_matches(name, NAMES, 1)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(NAMES)}"
    raise ValueError(f"unknown pattern {name!r}: {hint}")


def with_least_block(blocks: Mapping[int, float], least_bytes: int) -> dict[int, float]:
    """Return the shares of block sizes, with those below `least_bytes` rounded up to `least_bytes`."""
    rounded: dict[int, float] = {}
    for size, share in blocks.items():
        rounded[max(size, least_bytes)] = rounded.get(max(size, least_bytes), 0.0) + share
    return rounded
