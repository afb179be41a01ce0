"""The wording of cautions on storage that the page cache may have answered for."""

from stallmark.analysis.page_cache import PageCacheKind
from stallmark.format import listed
from stallmark.report.text import says


@says(PageCacheKind.IN_CACHE)
def _(places: list[str], file_system: str | None) -> str:
    return (
        f"Direct I/O in {listed(places)} went through this system’s page cache{_type(file_system)}: reads may have "
        "come from memory, and show no storage."
    )


SENTENCES: Mapping[Kind, str] = {
    PageCacheKind.ON_LOOP: (
        "Files in {places:listed} were on the loop device {loop}, whose own file is read through this system’s page "
        "cache: reads may have come from memory. `losetup --direct-io=on /dev/{loop}` makes it go past the cache."
    ),
}


@says(PageCacheKind.NOT_SEEN)
def _(places: list[str], file_system: str | None) -> str:
    return (
        f"Whether direct I/O in {listed(places)} went past the system’s page cache could not be "
        f"seen{_type(file_system)}: reads may have come from memory."
    )


def _type(file_system: str | None) -> str:
    return f" ({file_system})" if file_system else ""
