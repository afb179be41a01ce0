"""How deep into storage a probe reaches: a file that an array can keep in its memory is answered from there."""

from stallmark.format import size
from stallmark.record.probe import ProbeResult
from stallmark.stats.thresholds import PROBE_SMALL_BYTES


def hidden(probe: ProbeResult, dram_bytes: int | None) -> str | None:
    """Why the probe may have seen the array's memory (`dram_bytes`) alone, as a clause; None where it is not known to.

    Emulated devices have none.
    """
    if probe.emulated or not dram_bytes or probe.file_bytes > dram_bytes:
        return None
    return (
        f"the probe's file of {size(probe.file_bytes)} fits into the array's DRAM ({size(dram_bytes)}), which may have "
        "answered for its disks and flash; a larger one (probe: {size: …}) would tell"
    )


def small(file_bytes: int, remedy: str) -> str | None:
    """What to say of a file on real storage of which nobody said how much memory it has; `remedy`: how to have a larger
    one. None where no array has as much."""
    if file_bytes >= PROBE_SMALL_BYTES:
        return None
    return (
        f"The file that was read and written has {size(file_bytes)}: an array with as much memory or flash answers "
        f"from there, and its disks are hardly seen; {remedy} shows them."
    )
