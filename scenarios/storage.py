"""The storage of a scenario: facts of a real array, the sizes of an emulated one, and probes of raw I/O, alone or
around runs."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, ConfigDict, Field, model_validator

from stallmark.errors import StallmarkError
from stallmark.quantities import Pool, PoolSize, Seconds, Size
from stallmark.record.manifest.storage import Asked
from stallmark.redact import names_secret
from stallmark.scenarios import Section
from stallmark.storage.emulator import ArrayModel, FlashCache, FlashTier
from stallmark.storage.fio import (
    LONGEST_STEP_S,
    MOST_OUTSTANDING,
    OUTSTANDING,
    PATTERNS,
    SHORT_STEPS,
    find_patterns,
    steps_of,
)
from stallmark.storage.probe_file import LEAST_BYTES

# The `array:` section: facts of the storage array that cannot be queried, written down by the operator.
#
# array: {raid: RAID 10, drives: 24 × 600 GB 10K, dram: 8GiB, flash_cache: 800GB, write_cache: on, reduction: off}
#
# Other keys are kept and shown as well. The sizes decide whether the active set fits into DRAM or
# flash (analysis/read/active_set.py).

SIZES = ("dram", "flash_cache", "flash_tier")
_WORDS = {True: "on", False: "off"}


def _words(given: Any) -> Any:
    """Return the words given: `true` is what people write for on; a firmware of 2.10 is a name, and no number."""
    if isinstance(given, bool):
        return _WORDS[given]
    if isinstance(given, float):
        raise ValueError(f'it is read as the number {given:g}: put it in quotes ("2.10"), or its zeros are lost')
    return str(given) if isinstance(given, int) else given


Words = Annotated[str, BeforeValidator(_words), Field(min_length=1, max_length=200)]


class Array(Section):
    """The facts of a real storage array, for the report."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Words]

    raid: Words | None = None
    """RAID level and layout."""
    drives: Words | None = None
    """Number and kind of the drives."""
    dram: Size | None = None
    """The memory of all controllers together."""
    flash_cache: Size | None = None
    """The flash read cache that this volume may use."""
    flash_tier: Size | None = None
    """The flash tier that this volume may use."""
    firmware: Words | None = None
    """The firmware; in quotes if it is like a number."""
    write_cache: Words | None = None
    """Its write cache: on, off, or more in words of your own."""
    reduction: Words | None = None
    """Its compression and deduplication: on, off, or more in words of your own."""

    def mistakes(self) -> Iterator[str]:
        if secrets := [name for name in self.__pydantic_extra__ if names_secret(name)]:
            yield f"{secrets[0]} would be in every record and report: remove it"

    def completed_by(self, common: "Array | None") -> "Array":
        """Return this section, completed by the one `common` to all variants."""
        if common is None:
            return self
        return Array.model_validate(common.model_dump(exclude_none=True) | self.model_dump(exclude_none=True))

    def in_bytes(self) -> dict[str, Any]:
        """Return the section for the manifest: sizes in bytes, with names that end in `_bytes`."""
        words = self.model_dump(exclude_none=True, exclude=set(SIZES))
        return words | {f"{name}_bytes": size for name in SIZES if (size := getattr(self, name)) is not None}


# The `emulated_array:` of a scenario: sizes of flash may be shares of the data, which only the database tells.
#
# emulated_array:
#   data: {spindles: 12, rpm: 10000, seek_ms: 4, sync_ms: 1, mb_per_s: 150, cache: {size: 25 %}}
#
# What each key means, and its default, is with the model (src/stallmark/storage/emulator).

_ANY_DATA = 1024**3
"""Bytes of a database that is not known yet: what does not depend on it is checked all the same."""


class _Choice(Section):
    def _given_keys(self) -> dict[str, Any]:
        """Return the keys that were given; the others keep the model's defaults."""
        return {name: value for name in self.model_fields_set if (value := getattr(self, name)) is not None}


class _FlashChoice(_Choice):
    size: Pool
    """The size of the flash, or a share of the data."""
    read_ms: float | None = None
    """Milliseconds of a read from flash, 0.5 by default."""
    write_ms: float | None = None
    """Milliseconds of a write to flash, 0.5 by default."""
    mb_per_s: float | None = None
    """Megabytes per second of a channel, 400 by default."""
    channels: int | None = None
    """I/Os that the flash serves at once, 8 by default."""


class CacheChoice(_FlashChoice):
    """A flash read cache."""

    def resolve(self, data_bytes: int) -> FlashCache:
        return FlashCache(**(self._given_keys() | {"size": self.size.resolve(data_bytes)}))


class TierChoice(_FlashChoice):
    """A flash tier; `move`: how much moves up in one cycle at most, in bytes or as a share of the data, as `size`."""

    cycle: Seconds | None = None
    """The time between two migrations, 5 s by default."""
    move: Pool | None = None
    """The most that a migration moves up, as a size or a share of the data; by default a sixteenth of the tier."""

    def resolve(self, data_bytes: int) -> FlashTier:
        text = self._given_keys() | {"size": self.size.resolve(data_bytes)}
        if cycle := text.pop("cycle", None):
            text["cycle_s"] = cycle
        if self.move:
            text["move"] = self.move.resolve(data_bytes)
        return FlashTier(**text)


class EmulatedArray(_Choice):
    """Spindles, with fixed times or mechanical ones, and perhaps flash before them."""

    spindles: int
    """The number of disks; data are striped over them by 1 MiB."""
    read_ms: float | None = None
    """Milliseconds of a read, fixed; in place of `rpm` and `seek_ms`."""
    write_ms: float | None = None
    """Milliseconds of a write, fixed."""
    sync_ms: float
    """Milliseconds of a flush."""
    mb_per_s: float
    """Megabytes per second of one spindle."""
    rpm: float | None = None
    """Turns per minute of a mechanical disk."""
    seek_ms: float | None = None
    """Mean milliseconds of a seek of a mechanical disk."""
    cache: CacheChoice | None = None
    """Flash as a read cache before the spindles."""
    tier: TierChoice | None = None
    """Flash as a tier beside the spindles."""

    @model_validator(mode="after")
    def _possible(self) -> Self:
        self._resolve(_ANY_DATA)
        return self

    def resolve(self, data_bytes: int | None) -> ArrayModel:
        """Return the model for a database of `data_bytes`; with None, sizes that depend on it are placeholders.

        Raises StallmarkError for a share that is not a size its flash can have.
        """
        try:
            return self._resolve(data_bytes or _ANY_DATA)
        except ValueError as error:
            raise StallmarkError(f"The emulated array is not possible with this database: {error}") from None

    def _resolve(self, data_bytes: int) -> ArrayModel:
        flash = {"cache": self.cache, "tier": self.tier}
        text = self._given_keys() | {name: size.resolve(data_bytes) for name, size in flash.items() if size}
        return ArrayModel(**text)


class EmulatedArrays(_Choice):
    """Emulated arrays under the embedded server; files that are not named stay on the real storage."""

    data: EmulatedArray | None = None
    """The array under the data files."""
    wal: EmulatedArray | None = None
    """The array under the log."""

    def resolve(self, data_bytes: int | None) -> dict[str, ArrayModel]:
        named = {"data": self.data, "wal": self.wal}
        return {name: size.resolve(data_bytes) for name, size in named.items() if size}


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
    seconds: Annotated[Seconds, Field(ge=1, le=LONGEST_STEP_S)] = 5.0
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
    round: Annotated[Seconds, Field(ge=1, le=LONGEST_STEP_S)] = 60.0
    """The time of a round of random writes."""
    rounds: Annotated[int, Field(ge=1, le=1000, strict=True)] = 25
    """The maximum number of rounds, after which the write latency counts as never steady."""


def _probed(given: Any) -> Any:
    if isinstance(given, str) and given != BEFORE_AND_AFTER:
        raise ValueError(f"write {BEFORE_AND_AFTER}, or {{size: …, folder: …, seconds: …}}, not {given!r}")
    return ProbeChoice() if given == BEFORE_AND_AFTER else given


Probed = Annotated[ProbeChoice | None, BeforeValidator(_probed, json_schema_input_type=_WORD | ProbeChoice | None)]
