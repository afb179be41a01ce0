"""Cautions on storage whose reads the page cache of this machine may have answered."""

from collections.abc import Iterable, Iterator

from stallmark.analysis.finding import Finding, Kind, caution
from stallmark.record.devices import is_data_emulated
from stallmark.record.manifest import Manifest
from stallmark.record.probe import DirectIo


class PageCacheKind(Kind):
    IN_CACHE = "io_in_page_cache"
    ON_LOOP = "file_of_loop_in_page_cache"
    NOT_SEEN = "io_perhaps_in_page_cache"


def page_cache(tried: Iterable[tuple[str, DirectIo | None]]) -> Iterator[Finding]:
    """Yield a caution for each way in which direct I/O may have ended in memory. `tried`: places, and what came of
    it there; None if it was not tried."""
    places: dict[DirectIo, list[str]] = {}
    for place, outcome in tried:
        if outcome is not None and outcome.goes != "past" and place not in places.setdefault(outcome, []):
            places[outcome].append(place)
    for outcome, where in places.items():
        if outcome.goes == "through":
            yield caution(PageCacheKind.IN_CACHE, places=where, file_system=outcome.file_system)
        elif outcome.loop is not None:
            yield caution(PageCacheKind.ON_LOOP, places=where, loop=outcome.loop)
        else:
            yield caution(PageCacheKind.NOT_SEEN, places=where, file_system=outcome.file_system)


def page_cache_under(manifests: Iterable[Manifest]) -> Iterator[Finding]:
    """Yield the cautions on the files of data, of raw loads and of probes of some runs."""
    return page_cache(pair for manifest in manifests for pair in _tried(manifest))


def _tried(manifest: Manifest) -> Iterator[tuple[str, DirectIo | None]]:
    data = manifest.devices.folders.get("data", "")
    if not is_data_emulated(manifest):
        yield data, manifest.devices.direct_io
    for load in manifest.loads:
        if load.raw:
            yield load.raw.folder or data, load.raw.direct_io
    for probe in (manifest.probes.before, manifest.probes.after):
        if probe:
            yield probe.place, probe.direct_io
