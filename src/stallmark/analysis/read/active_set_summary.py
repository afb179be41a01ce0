"""What the analysis says of active data and of flash: plain values, as the report and `--json` show them."""

from dataclasses import dataclass

from stallmark.analysis.finding import Finding


@dataclass(frozen=True)
class ActiveSet:
    """Bytes; None: not known. Of the time from the beginning of the run to the end of a step's measured interval."""

    counted_bytes: int | None  # different extents that were read or written
    minute_bytes: int | None  # the same, in a minute: the median over the measured interval's full minutes
    extent_bytes: int | None
    at_most_bytes: int | None  # where nobody counted: what was moved, or the database
    dram_bytes: int | None
    flash_bytes: int | None
    database_bytes: int | None
    warnings: list[Finding]

    @property
    def known_bytes(self) -> int | None:
        """At most so much, certainly."""
        return self.at_most_bytes if self.counted_bytes is None else self.counted_bytes


@dataclass(frozen=True)
class FlashUse:
    """What a device's flash did in a step's measured interval."""

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
