"""The depth into storage that a probe reaches: a file that fits into the memory of an array is answered from there."""

from stallmark.analysis.finding import Finding, caution
from stallmark.analysis.probe.kinds import ProbeKind
from stallmark.record.probe import ProbeResult


def hidden(probe: ProbeResult, dram_bytes: int | None) -> Finding | None:
    """Return why the probe may have seen the array's memory (`dram_bytes`) alone; None where it is not known to.

    None for an emulated array too.
    """
    if probe.emulated or not dram_bytes or probe.file_bytes > dram_bytes:
        return None
    return caution(ProbeKind.FITS_DRAM, file_bytes=probe.file_bytes, dram_bytes=dram_bytes)
