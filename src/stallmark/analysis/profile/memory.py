"""The effect of more memory, as far as counters tell: they bound it, and only an experiment measures it."""

from collections.abc import Iterator, Sequence

from stallmark.analysis.finding import Finding, info
from stallmark.analysis.profile.kinds import ProfileKind
from stallmark.analysis.profile.rates import Rates
from stallmark.analysis.profile.totals import ClassTotals, server_quotient
from stallmark.record.profile.intervals import FileClass, Intervals
from stallmark.record.profile.manifest import ProfileManifest

PAGE_BYTES = 8192
NO_READS_PER_S = 1.0
"""Fewer reads of data than this could not be felt if they were gone."""


def memory(
    manifest: ProfileManifest, intervals: Intervals, rates: Rates, classes: Sequence[ClassTotals]
) -> Iterator[Finding]:
    """Yield what can be known of more memory, and at last what cannot."""
    data = next((one for one in classes if one.file_class is FileClass.DATA), None)
    if data is None or data.reads_per_s is None:
        return
    pool = pool_bytes(manifest, intervals)
    fits = bool(pool and data.size_bytes and (paged := _paged_bytes(manifest, classes)) and paged <= pool)
    if fits:
        yield info(ProfileKind.FITS, data_bytes=data.size_bytes, pool_bytes=pool)
    if data.reads_per_s < NO_READS_PER_S:
        yield info(ProfileKind.NO_READS, reads_per_s=data.reads_per_s)
        return
    missed = server_quotient(intervals, "pages_read", "page_lookups")
    yield info(
        ProfileKind.READS_AT_MOST,
        reads_per_s=data.reads_per_s,
        share=data.read_share,
        waiting=data.reads_at_once,
        # Pages that were read ahead and never looked up may be more than the lookups.
        found_share=1 - missed if missed is not None and missed <= 1 else None,
    )
    if fits:
        return
    if pool and data.read_bytes_per_s:
        life = intervals.known("server.page_life_expectancy_s")
        yield info(
            ProfileKind.POOL_TURNOVER,
            pool_bytes=pool,
            turnover_s=pool / data.read_bytes_per_s,
            least_life_s=float(life.min()) if len(life) else None,
        )
    yield info(ProfileKind.MEMORY_NOT_KNOWN)


def pool_bytes(manifest: ProfileManifest, intervals: Intervals) -> float | None:
    """Return the size of the buffer pool: the pages it held last, or its size as the server is set."""
    held = intervals.known("server.database_pages_bytes")
    return float(held[-1]) if len(held) else manifest.server.pool_bytes


def _paged_bytes(manifest: ProfileManifest, classes: Sequence[ClassTotals]) -> float | None:
    """Return the size of all files whose pages share the buffer pool, or None if that of a class is not known."""
    paged = {FileClass.DATA, FileClass.OTHER}
    if manifest.server.engine != "postgresql":  # whose temporary files have buffers of their own
        paged.add(FileClass.TEMPDB)
    sizes = [one.size_bytes for one in classes if one.file_class in paged]
    return sum(size for size in sizes if size is not None) if None not in sizes else None
