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


class CacheChoice(_Choice):
    """A flash read cache."""

    size: Pool
    read_ms: float | None = None
    write_ms: float | None = None
    mb_per_s: float | None = None
    channels: int | None = None

    def resolve(self, data_bytes: int) -> FlashCache:
        return FlashCache(**(self._said() | {"size": self.size.resolve(data_bytes)}))


class TierChoice(_Choice):
    """A flash tier; `move`: how much moves up in one cycle at most, in bytes or as a share of the data, as `size`."""

    size: Pool
    read_ms: float | None = None
    write_ms: float | None = None
    mb_per_s: float | None = None
    channels: int | None = None
    cycle: Seconds | None = None
    move: Pool | None = None

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
    read_ms: float | None = None
    write_ms: float | None = None
    sync_ms: float
    mb_per_s: float
    rpm: float | None = None
    seek_ms: float | None = None
    cache: CacheChoice | None = None
    tier: TierChoice | None = None

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
    wal: EmulatedArray | None = None

    def resolve(self, data_bytes: int | None) -> dict[str, ArrayModel]:
        named = {"data": self.data, "wal": self.wal}
        return {name: one.resolve(data_bytes) for name, one in named.items() if one}
