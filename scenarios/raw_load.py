"""A raw load of a scenario: reads or writes of a kind on a file of its own, beside the database.

scan: {raw: scan}                              # large blocks in order, as fast as the storage lets it
scan: {raw: scan, streams: 2, rate: 100 MB/s}
web:  {raw: web, outstanding: 16}              # random reads of mixed sizes
web:  {raw: web, rate: 200/s}                  # they arrive at a rate, whatever the storage does
logs: {raw: 256k-sequential-write, folder: /mnt/other, size: 4GiB}
"""

from collections.abc import Iterator
from typing import Annotated

from pydantic import AfterValidator, Field, WithJsonSchema

from stallmark.quantities import IoRate, Rate
from stallmark.record.manifest.loads import RawPlan
from stallmark.scenarios.probing import FileSize
from stallmark.scenarios.section import Section
from stallmark.scenarios.service_level import ServiceLevelChoice
from stallmark.storage.probe.patterns import MOST_OUTSTANDING
from stallmark.storage.raw_load.arrivals import MOST_PER_S
from stallmark.storage.raw_load.patterns import NAMES, RawPattern, find_pattern

MOST_AT_ONCE = 64
"""The most I/Os of a rate that are under way at once, unless `outstanding` says another number."""

_PATTERN = WithJsonSchema({"type": "string", "enum": list(NAMES)})


class RawLoad(Section):
    """Reads or writes beside the database, on a file of their own: `{raw: web, outstanding: 16}`."""

    raw: Annotated[str, AfterValidator(lambda name: find_pattern(name) and name), _PATTERN]
    """The kind of I/O: `scan` (256 KiB in order), `web` (random reads of mixed sizes), or a pattern of a probe, such as
    `8k-random-read`."""
    outstanding: Annotated[int, Field(ge=1, le=MOST_OUTSTANDING, strict=True)] | None = None
    """I/Os under way at once, 1 by default; of a `rate` per second the most of them, 64 by default."""
    streams: Annotated[int, Field(ge=1, le=MOST_OUTSTANDING, strict=True)] | None = None
    """The same for I/O in order: each stream has a part of the file and one I/O under way."""
    rate: Rate | None = None
    """`200/s`: I/Os arrive at random at this rate, whatever the storage does; at most 5,000/s. `100 MB/s`: no more than
    that. By default as fast as the storage lets it. Both are of one cell."""
    size: FileSize = 2**30
    """The size of its file, of each cell."""
    folder: Annotated[str, Field(min_length=1)] | None = None
    """Where the file lies; by default where the data of an embedded server lie."""
    slo: ServiceLevelChoice | None = None
    """The limit that its own reads are held against."""

    def mistakes(self) -> Iterator[str]:
        if self.streams is not None and self.pattern.random:
            yield f"streams are of I/O in order, and {self.raw} is at random: write outstanding"
        if self.streams is not None and self.outstanding is not None:
            yield "streams and outstanding are one number here: write one of them"
        if self.rate and self.rate.ios_per_s and not self.pattern.random:
            [block] = self.pattern.blocks
            same = IoRate(bytes_per_s=round(self.rate.ios_per_s * block))
            yield f"a rate of I/Os is of random ones, and {self.raw} is in order: write rate: {same}"
        if self.rate and self.rate.ios_per_s and self.rate.ios_per_s > MOST_PER_S:
            yield f"one load makes at most {MOST_PER_S}/s on time: write several that make it together"

    @property
    def pattern(self) -> RawPattern:
        return find_pattern(self.raw)

    def plan(self) -> RawPlan:
        """Return the load for the manifest, as it is asked for."""
        rate = self.rate or IoRate()
        return RawPlan(
            pattern=self.pattern.name,
            operation=self.pattern.operation,
            order=self.pattern.order,
            blocks=dict(self.pattern.blocks),
            outstanding=self.outstanding or self.streams or (MOST_AT_ONCE if rate.ios_per_s else 1),
            rate_iops=rate.ios_per_s,
            rate_bytes=rate.bytes_per_s,
            size_bytes=self.size,
            folder=self.folder,
        )
