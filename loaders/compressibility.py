"""Measure how compressible a loaded database is: compressible data flatters storage that compresses inline."""

from collections.abc import Sequence

import pyarrow as pa

from stallmark.engines import sql_file
from stallmark.engines.base import Engine
from stallmark.errors import CallFailed

PAGES = 512  # sampled
SECTOR = 512  # bytes


def measured(engine: Engine, schemas: Sequence[str]) -> float | None:
    """Return the LZ4 compression ratio of a sample of 8 KiB pages of the schemas' tables and indexes.

    Each page is compressed by itself, to no less than a sector. None where the server shows no pages (SQL Server
    does not), or not to this user."""
    if engine.dialect != "postgresql":
        return None
    text = sql_file.read(__package__, "sampled_pages.postgresql")
    engine.checkpoint()
    try:
        pages = [bytes(page) for (page,) in engine.query(text, (list(schemas), PAGES)) if page]
    except CallFailed:
        return None
    return round(ratio(pages), 2) if pages else None


def ratio(pages: list[bytes]) -> float:
    return sum(map(len, pages)) / sum(map(_packed_bytes, pages))


def _packed_bytes(page: bytes) -> int:
    return max(SECTOR, min(len(page), len(pa.compress(page, codec="lz4_raw", asbytes=True))))
