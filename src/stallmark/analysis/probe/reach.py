"""How deep into storage a probe reaches: a file that an array can keep in its memory is answered from there."""

from stallmark.analysis.finding import Finding, caution
from stallmark.analysis.probe.kinds import ProbeKind, Remedy
from stallmark.record.probe import ProbeResult
from stallmark.stats.thresholds import PROBE_SMALL_BYTES


def hidden(probe: ProbeResult, dram_bytes: int | None) -> Finding | None:
    """Return why the probe may have seen the array's memory (`dram_bytes`) alone; None where it is not known to.

    Emulated devices have none.
    """
    if probe.emulated or not dram_bytes or probe.file_bytes > dram_bytes:
        return None
    return caution(ProbeKind.FITS_DRAM, file_bytes=probe.file_bytes, dram_bytes=dram_bytes)


def small(file_bytes: int, remedy: Remedy) -> Finding | None:
    """Return what to say of a file on real storage of which nobody said how much memory it has. None where no array
    has as much."""
    return (
        None if file_bytes >= PROBE_SMALL_BYTES else caution(ProbeKind.SMALL_FILE, file_bytes=file_bytes, remedy=remedy)
    )
