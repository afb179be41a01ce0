"""The patterns of raw loads: those of a probe, and random reads of mixed sizes as a web server makes them."""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from stallmark.storage.probe.patterns import PATTERNS as PROBED

_KIB = 1024


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

PATTERNS: dict[str, RawPattern] = {
    **{
        name: RawPattern(
            name, "read" if one.reads else "write", "random" if one.random else "sequential", {one.block_bytes: 1.0}
        )
        for name, one in PROBED.items()
    },
    WEB.name: WEB,
}
ALIASES = {"scan": "256k-sequential-read"}
NAMES = (*ALIASES, WEB.name, *PROBED)


def find_pattern(name: str) -> RawPattern:
    """Return a pattern by its name or alias. Raise ValueError, with a name that is near, for an unknown one."""
    if found := PATTERNS.get(ALIASES.get(name, name)):
        return found
    near = difflib.get_close_matches(name, NAMES, 1)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(NAMES)}"
    raise ValueError(f"there is no pattern {name!r}: {hint}")


def with_least_block(blocks: Mapping[int, float], least_bytes: int) -> dict[int, float]:
    """Return the shares where no I/O is smaller than `least_bytes`: smaller ones are rounded up to it."""
    rounded: dict[int, float] = {}
    for size, share in blocks.items():
        rounded[max(size, least_bytes)] = rounded.get(max(size, least_bytes), 0.0) + share
    return rounded
