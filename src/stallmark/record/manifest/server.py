"""The database server in the manifest of a run: what it is, its memory, and the size of the database."""

from typing import Literal

from stallmark.record.manifest.part import ManifestPart

POSTGRESQL = "PostgreSQL"
"""The `product` of such a server."""


class Server(ManifestPart):
    """The database server. `settings`: its configuration, in its own names; `placement`: where data lie and how large
    files are; `momentary`: what describes the moment of reading; `unreadable`: parts that it did not tell, each with
    its words. `at_own_address`: it was reached at an address of the driver's machine, which a tunnel has as well; None
    where that is not known. `shared`: it was driven although others may have tables and sessions in its database."""

    product: str = ""
    version: str = ""
    settings: dict[str, str] = {}
    placement: dict[str, str] = {}
    momentary: dict[str, str] = {}
    unreadable: dict[str, str] = {}
    at_own_address: bool | None = None
    shared: bool = False


class ChosenSize(ManifestPart):
    """The size of a buffer pool as a curve's first run of it was given, and the reason: an end of the curve, the middle
    between both, a bend, a smaller size that may be enough, or half or twice the smallest that is. `error`: the
    share of its largest value by which the curve might have been off between the sizes beside it. `last`: no further
    size was needed."""

    bytes: int
    why: Literal["end", "middle", "bend", "enough", "half", "double"]
    between_bytes: tuple[int, int] | None = None
    error: float | None = None
    last: bool = False


class Memory(ManifestPart):
    """The buffer pool: as configured for the run, as the server reported it then, and as it was before. `chosen`: the
    reason for its size, in the first run of each size of a curve."""

    configured_bytes: int | None = None
    reached_bytes: int | None = None
    original_bytes: int | None = None
    chosen: ChosenSize | None = None


class Database(ManifestPart):
    """The size of the database in bytes. `compressibility`: ratio by LZ4 on sampled pages; 2.0 means 2 to 1."""

    bytes_before: int | None = None
    bytes_after: int | None = None
    compressibility: float | None = None
