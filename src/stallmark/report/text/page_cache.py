"""The wording of cautions on storage that the page cache may have answered for."""

from collections.abc import Mapping

from stallmark.analysis.finding import Kind
from stallmark.analysis.probe.saturation import PageCacheKind

SENTENCES: Mapping[Kind, str] = {
    PageCacheKind.IN_CACHE: (
        "Direct I/O in {places:listed} went through this system’s page cache{file_system:in_brackets}: reads may have "
        "come from memory, and show no storage."
    ),
    PageCacheKind.ON_LOOP: (
        "Files in {places:listed} were on the loop device {loop}, whose own file is read through this system’s page "
        "cache: reads may have come from memory. `losetup --direct-io=on /dev/{loop}` makes it go past the cache."
    ),
    PageCacheKind.NOT_SEEN: (
        "Whether direct I/O in {places:listed} went past the system’s page cache could not be "
        "seen{file_system:in_brackets}: reads may have come from memory."
    ),
}
