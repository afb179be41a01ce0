"""The values that the analysis returns on the active set and on flash, as the report and `--json` show them."""

from dataclasses import dataclass

from stallmark.analysis.finding import Finding


@dataclass(frozen=True)
class ActiveSet:
    """The active set in bytes, from the beginning of the run to the end of a step's measured interval. None:
    not known."""

    counted_bytes: int | None  # different extents that were read or written
    minute_bytes: int | None  # the same, in a minute: the median over the measured interval's full minutes
    extent_bytes: int | None
    at_most_bytes: int | None  # where not counted: the bytes moved, or the database
    dram_bytes: int | None
    flash_bytes: int | None
    database_bytes: int | None
    warnings: list[Finding]

    @property
    def known_bytes(self) -> int | None:
        """Return the bytes counted, or else the bound; None where neither is known."""
        return self.at_most_bytes if self.counted_bytes is None else self.counted_bytes

    @property
    def fits_dram(self) -> bool:
        """Tell whether the array's DRAM holds all that was active."""
        return self._fits(self.dram_bytes)

    @property
    def fits_flash(self) -> bool:
        return self._fits(self.flash_bytes)

    def _fits(self, room: int | None) -> bool:
        return bool(room and self.known_bytes and self.known_bytes <= room)


@dataclass(frozen=True)
class FlashUse:
    """The use of a device's flash in the measured interval of a step."""

    kind: str  # "cache" or "tier"
    size_bytes: int
    share: float | None  # of the reads: answered by flash
    read_ms: float | None  # of those, mean
    spindle_read_ms: float | None  # of the others
    evictions_per_s: float | None  # blocks, of a cache
    up_bytes: int | None  # migrated to flash, of a tier
    down_bytes: int | None
    used_bytes: int | None  # at the end
    first_half: float | None = None  # `share` in each half of the interval
    second_half: float | None = None
    warming: bool = False  # whether it rose from the one to the other by more than chance, and more than little
