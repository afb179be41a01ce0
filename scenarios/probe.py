"""The I/O on storage itself: a scenario that probes it, and probes around the runs of others."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from stallmark.quantities import Pool, PoolSize, Seconds, Size
from stallmark.record.manifest.storage import Asked
from stallmark.scenarios.array import EmulatedArray
from stallmark.scenarios.section import MOST_VARIANTS, NamedApart, Rising, Section, Titled
from stallmark.scenarios.variant import VariantName
from stallmark.storage.patterns import MOST_OUTSTANDING, OUTSTANDING, PATTERNS, SHORT_STEPS, find_patterns, steps_of
from stallmark.storage.probe_file import LEAST_BYTES

# The `probe:` and `precondition:` of a scenario: what is done to the storage itself around the runs.
#
# probe: before and after                          # raw reads and writes on a file of their own, around every run
# probe: {size: 64GiB}                             # more than the array's memory, or that answers for its disks
# probe: {folder: /mnt/array, seconds: 10s}        # of a server that is not ours: where its array is mounted here
# precondition: {size: 100GiB}                     # write whenever another variant comes, until writes are steady

Depth = Annotated[int, Field(ge=1, le=MOST_OUTSTANDING, strict=True)]
FileSize = Annotated[Size, Field(ge=LEAST_BYTES)]
"""The minimum is a size that takes a while to read completely."""
PatternName = Literal[tuple(PATTERNS)]  # type: ignore[valid-type]
Patterns = list[PatternName]  # type: ignore[valid-type]

BEFORE_AND_AFTER = "before and after"
_WORD = Literal["before and after"]


class ProbeChoice(Section):
    """A probe of raw storage before and after the runs, on a file that is written before every probe."""

    size: Pool = PoolSize(size_bytes=256 * 2**20)
    """The size of the file that is read and written, or a share of the data; more than the array's memory, or its
    memory answers."""
    folder: Annotated[str, Field(min_length=1)] | None = None
    """The folder of the file; by default that of the embedded server's data."""
    seconds: Annotated[Seconds, Field(ge=1)] = 5.0
    """The time of each step."""
    patterns: Patterns = []
    """The kinds of I/O, such as `1m-sequential-read`; by default the few that show a change soonest."""
    outstanding: list[Depth] = list(OUTSTANDING)
    """The numbers of I/Os outstanding, of `patterns`."""

    def steps(self) -> tuple[Asked, ...]:
        return steps_of(find_patterns(self.patterns), self.outstanding) if self.patterns else SHORT_STEPS


class PreconditionChoice(Section):
    """The preparation of storage before the runs: a file is filled, then overwritten at random in rounds, until the
    write latency is steady or all rounds are over."""

    size: Pool
    """The size of the file that is filled, or a share of the data."""
    folder: Annotated[str, Field(min_length=1)] | None = None
    """The folder of the file."""
    round: Annotated[Seconds, Field(ge=1)] = 60.0
    """The time of a round of random writes."""
    rounds: Annotated[int, Field(ge=1, le=1000, strict=True)] = 25
    """The maximum number of rounds, after which the write latency counts as never steady."""


def _probed(given: Any) -> Any:
    if isinstance(given, str) and given != BEFORE_AND_AFTER:
        raise ValueError(f"write {BEFORE_AND_AFTER}, or {{size: …, folder: …, seconds: …}}, not {given!r}")
    return ProbeChoice() if given == BEFORE_AND_AFTER else given


Probed = Annotated[ProbeChoice | None, BeforeValidator(_probed, json_schema_input_type=_WORD | ProbeChoice | None)]


# A scenario that probes storage: no database, no users, only I/O of a kind on a file, from few outstanding to many.
#
# probe:
#   size: 1GiB                                 # of the file
#   patterns: [8k-random-read, 64k-random-read]
#   outstanding: [1, 2, 4, 8, 16, 32]
#   seconds: 5s                                # each
# variants:
#   - {name: hard disks, emulated_array: {spindles: 8, …}}    # emulated; or
#   - {name: array, folder: /mnt/array}               # a real one


class ProbeSteps(Section):
    """The steps of a probe. Without `patterns`: all of them."""

    size: Size
    """The size of the file."""
    patterns: Patterns = []
    """The kinds of I/O, such as `8k-random-read`; by default all."""
    outstanding: Annotated[list[Depth], Field(min_length=1), Rising] = list(OUTSTANDING)
    """The numbers of I/Os outstanding, rising."""
    seconds: Annotated[Seconds, Field(ge=1)] = 10.0
    """The time of each step."""

    @property
    def size_bytes(self) -> int:
        return PoolSize(self.size).resolve(0)

    def steps(self) -> tuple[Asked, ...]:
        return steps_of(find_patterns(self.patterns), self.outstanding)


class ProbeVariant(Section):
    """One storage: an `emulated_array`, or a `folder` on a real one."""

    name: VariantName
    """The variant's name in reports."""
    emulated_array: EmulatedArray | None = None
    """An emulated array."""
    folder: Path | None = None
    """A folder on a real one."""

    def mistakes(self) -> Iterator[str]:
        if (self.emulated_array is None) == (self.folder is None):
            yield f"variant {self.name!r} must have either an emulated_array or a folder on a real one"


class ProbeScenario(Titled):
    """Storage itself is asked."""

    heading = "Storage alone"
    probe: ProbeSteps
    """Reads and writes to measure."""
    variants: Annotated[list[ProbeVariant], Field(min_length=1, max_length=MOST_VARIANTS), NamedApart]
    """The storage that is probed."""

    @model_validator(mode="before")
    @classmethod
    def _refuse_database(cls, data: Any) -> Any:
        if isinstance(data, dict) and (unwanted := [key for key in ("users", "queries", "database") if key in data]):
            raise ValueError(
                f"{unwanted[0]} belongs to a database, and `probe` without `workload` asks storage alone: add "
                f"`workload`, or remove {unwanted[0]}"
            )
        return data

    def mistakes(self) -> Iterator[str]:
        if 0 < sum(variant.emulated_array is not None for variant in self.variants) < len(self.variants):
            yield (
                "some variants are emulated and others real, and what the one shows says nothing of the other: make a "
                "scenario of each"
            )
