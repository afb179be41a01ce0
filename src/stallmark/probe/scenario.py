"""A scenario that probes storage: no database, no users, only I/O of a kind on a file, from few outstanding to many.

probe:
  size: 1GiB                                 # of the file
  patterns: [8k-random-read, 64k-random-read]
  outstanding: [1, 2, 4, 8, 16, 32]
  seconds: 5s                                # each
variants:
  - {name: hard disks, emulated_array: {spindles: 8, …}}    # emulated; or
  - {name: array, folder: /mnt/array}               # a real one
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import Field, model_validator

from stallmark.experiment.estimate import STEP_S, WRITE_BYTES_PER_S, Estimate
from stallmark.quantities import PoolSize, Seconds
from stallmark.record.manifest.storage import Asked
from stallmark.scenarios import MOST_VARIANTS, NamedApart, Rising, Section, Titled, VariantName
from stallmark.scenarios.storage import Depth, EmulatedArray, FileSize, Patterns
from stallmark.storage.fio import LONGEST_STEP_S, OUTSTANDING, find_patterns, steps_of


class ProbeSteps(Section):
    """The steps of a probe. Without `patterns`: all of them."""

    size: FileSize
    """The size of the file."""
    patterns: Patterns = []
    """The kinds of I/O, such as `8k-random-read`; by default all."""
    outstanding: Annotated[list[Depth], Field(min_length=1), Rising] = list(OUTSTANDING)
    """The numbers of I/Os outstanding, rising."""
    seconds: Annotated[Seconds, Field(ge=1, le=LONGEST_STEP_S)] = 10.0
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
    folder: Annotated[str, Field(min_length=1)] | None = None
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

    @classmethod
    def is_meant(cls, document: Mapping[str, Any]) -> bool:
        """Return True for a `probe` without a workload; with one it is made around every run."""
        return document.keys().isdisjoint(("workload", "loads")) and not document.keys().isdisjoint(("probe", "raw"))

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


def estimate_probes(scenario: Titled, dialect: str = "postgresql", *, pace: float = 1.0, **_: Any) -> Estimate | None:
    """Estimate the probes of a scenario. Return None for other scenarios."""
    if not isinstance(scenario, ProbeScenario):
        return None
    asked = scenario.probe
    load_s = len(asked.steps()) * asked.seconds
    beside_s = asked.size_bytes / WRITE_BYTES_PER_S + len(asked.steps()) * STEP_S
    return Estimate(0.0, (load_s + pace * beside_s,) * len(scenario.variants), load_s)
