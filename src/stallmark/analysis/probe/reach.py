"""How deep into storage a probe reaches: a file that an array can keep in its memory is answered from there."""

from stallmark.analysis.finding import Finding, caution
from stallmark.analysis.probe.kinds import ProbeKind
from stallmark.record.probe import ProbeResult


def hidden(probe: ProbeResult, dram_bytes: int | None) -> Finding | None:
    """Return why the probe may have seen the array's memory (`dram_bytes`) alone; None where it is not known to.

    Emulated devices have none.
    """
    if probe.emulated or not dram_bytes or probe.file_bytes > dram_bytes:
        return None
    return caution(ProbeKind.FITS_DRAM, file_bytes=probe.file_bytes, dram_bytes=dram_bytes)
