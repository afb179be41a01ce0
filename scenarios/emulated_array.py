"""The `emulated_array:` of a scenario: sizes of flash may be shares of the data, which only the database tells.

emulated_array:
  data: {spindles: 12, rpm: 10000, seek_ms: 4, sync_ms: 1, mb_per_s: 150, cache: {size: 25 %}}

What each key means, and its default, is with the model (src/stallmark/storage/emulator).
"""

from typing import Any, Self

from pydantic import model_validator

from stallmark.errors import StallmarkError
from stallmark.quantities import Pool, Seconds
from stallmark.scenarios.section import Section
from stallmark.storage.emulator import ArrayModel, FlashCache, FlashTier

_ANY_DATA = 1024**3
"""Bytes of a database that is not known yet: what does not depend on it is checked all the same."""


class _Choice(Section):
    def _said(self) -> dict[str, Any]:
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
        return FlashCache(**(self._said() | {"size": self.size.resolve(data_bytes)}))


class TierChoice(_FlashChoice):
    """A flash tier; `move`: how much moves up in one cycle at most, in bytes or as a share of the data, as `size`."""

    cycle: Seconds | None = None
    """The time between two migrations, 5 s by default."""
    move: Pool | None = None
    """The most that a migration moves up, as a size or a share of the data; by default a sixteenth of the tier."""

    def resolve(self, data_bytes: int) -> FlashTier:
        said = self._said() | {"size": self.size.resolve(data_bytes)}
        if cycle := said.pop("cycle", None):
            said["cycle_s"] = cycle
        if self.move:
            said["move"] = self.move.resolve(data_bytes)
        return FlashTier(**said)


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

        Raises StallmarkError for a share that is no size its flash can have.
        """
        try:
            return self._resolve(data_bytes or _ANY_DATA)
        except ValueError as error:
            raise StallmarkError(f"The emulated array is not possible with this database: {error}") from None

    def _resolve(self, data_bytes: int) -> ArrayModel:
        flash = {"cache": self.cache, "tier": self.tier}
        said = self._said() | {name: one.resolve(data_bytes) for name, one in flash.items() if one}
        return ArrayModel(**said)


class EmulatedArrays(_Choice):
    """Under the embedded server; what is not named stays on the real one."""

    data: EmulatedArray | None = None
    """The array beneath the data files."""
    wal: EmulatedArray | None = None
    """The array beneath the log."""

    def resolve(self, data_bytes: int | None) -> dict[str, ArrayModel]:
        named = {"data": self.data, "wal": self.wal}
        return {name: one.resolve(data_bytes) for name, one in named.items() if one}
