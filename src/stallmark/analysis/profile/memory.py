"""The effect of more memory, as far as counters tell: they bound it, and only an experiment measures it."""

from collections.abc import Iterator, Sequence

from stallmark.analysis.finding import Finding, info
from stallmark.analysis.profile.kinds import ProfileKind
from stallmark.analysis.profile.rates import Rates
from stallmark.analysis.profile.totals import ClassTotals, known_states, server_total
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
    if data is None or data.reads is None or not data.seen_s:
        return
    pool = pool_bytes(manifest, intervals)
    fits = bool(pool and data.size_bytes and data.size_bytes <= pool)
    if fits:
        yield info(ProfileKind.FITS, data_bytes=data.size_bytes, pool_bytes=pool)
    if data.reads / data.seen_s < NO_READS_PER_S:
        yield info(ProfileKind.NO_READS, reads_per_s=data.reads / data.seen_s)
        return
    pages, lookups = server_total(intervals, "pages_read"), server_total(intervals, "page_lookups")
    yield info(
        ProfileKind.READS_AT_MOST,
        reads_per_s=data.reads / data.seen_s,
        share=data.read_share,
        waiting=data.read_stall_ms / 1000 / data.seen_s if data.read_stall_ms is not None else None,
        found_share=1 - pages / lookups if pages is not None and lookups else None,
    )
    if fits:
        return
    if pool and data.read_bytes:
        life = known_states(intervals, "page_life_expectancy_s")
        yield info(
            ProfileKind.POOL_TURNOVER,
            pool_bytes=pool,
            turnover_s=pool / (data.read_bytes / data.seen_s),
            least_life_s=float(life.min()) if len(life) else None,
        )
    yield info(ProfileKind.MEMORY_NOT_KNOWN)


def pool_bytes(manifest: ProfileManifest, intervals: Intervals) -> float | None:
    """Return the size of the buffer pool: the pages it held last, or its size as the server is set."""
    held = known_states(intervals, "database_pages_bytes")
    return float(held[-1]) if len(held) else manifest.server.pool_bytes
