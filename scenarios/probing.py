"""The `probe:` and `precondition:` of a scenario: what is done to the storage itself around the runs.

probe: before and after                          # raw reads and writes on a file of their own, around every run
probe: {size: 64GiB}                             # more than the array's memory, or that answers for its disks
probe: {folder: /mnt/array, seconds: 10s}        # of a server that is not ours: where its array is mounted here
precondition: {size: 100GiB}                     # write whenever another variant comes, until writes are steady
"""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from stallmark.quantities import Pool, PoolSize, Seconds, Size
from stallmark.record.probe import Asked
from stallmark.scenarios.section import Section
from stallmark.storage.probe import LEAST_BYTES, OUTSTANDING, find_patterns, steps_of
from stallmark.storage.probe.patterns import MOST_OUTSTANDING, PATTERNS, SHORT_STEPS

Depth = Annotated[int, Field(ge=1, le=MOST_OUTSTANDING, strict=True)]
FileSize = Annotated[Size, Field(ge=LEAST_BYTES)]
"""Of less it would be gone over in a moment."""
PatternName = Literal[tuple(PATTERNS)]  # type: ignore[valid-type]
Patterns = list[PatternName]  # type: ignore[valid-type]

BEFORE_AND_AFTER = "before and after"
_WORD = Literal["before and after"]


class ProbeChoice(Section):
    """`seconds` of each step, on a file of `size` (or of a share of the data as loaded), which is written before every
    probe; without a `folder`, where the data of an embedded server lie."""

    size: Pool = PoolSize(size_bytes=256 * 2**20)
    """The size of the file that is read and written, or a share of the data; more than the array's memory, or its
    memory answers."""
    folder: Annotated[str, Field(min_length=1)] | None = None
    """Where the file lies; by default where the data of an embedded server lie."""
    seconds: Annotated[Seconds, Field(ge=1)] = 5.0
    """The time of each step."""
    patterns: Patterns = []
    """The kinds of I/O, such as `1m-sequential-read`; by default the few that show a change soonest."""
    outstanding: list[Depth] = list(OUTSTANDING)
    """The numbers of I/Os outstanding, of `patterns`."""

    def steps(self) -> tuple[Asked, ...]:
        return steps_of(find_patterns(self.patterns), self.outstanding) if self.patterns else SHORT_STEPS


class PreconditionChoice(Section):
    """A file of `size` (or of a share of the data) is filled, then overwritten at random in rounds, until the write
    latency is steady or `rounds` are over."""

    size: Pool
    """The size of the file that is filled, or a share of the data."""
    folder: Annotated[str, Field(min_length=1)] | None = None
    """Where the file lies."""
    round: Annotated[Seconds, Field(ge=1)] = 60.0
    """The time of a round of random writes."""
    rounds: Annotated[int, Field(ge=1, le=1000, strict=True)] = 25
    """The most rounds; after them it is said that writes were never steady."""


def _probed(given: Any) -> Any:
    if isinstance(given, str) and given != BEFORE_AND_AFTER:
        raise ValueError(f"write {BEFORE_AND_AFTER}, or {{size: …, folder: …, seconds: …}}, not {given!r}")
    return ProbeChoice() if given == BEFORE_AND_AFTER else given


Probed = Annotated[ProbeChoice | None, BeforeValidator(_probed, json_schema_input_type=_WORD | ProbeChoice | None)]
