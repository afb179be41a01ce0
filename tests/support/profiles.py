"""A profile whose intervals are made by hand, as one that was imported."""

from collections.abc import Callable, Collection
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

from stallmark.record.profile import TABLES, ProfileManifest, Session, write_imported

AT = datetime(2026, 3, 2, tzinfo=UTC)
LENGTH = 15
GIB = 2.0**30
DATA = {"reads": 150.0, "read_bytes": 150 * 8192.0, "read_stall_ms": 900.0}
DATA |= {"writes": 50.0, "write_bytes": 50 * 8192.0, "write_stall_ms": 100.0, "size_bytes": 100 * GIB}
LOG = {"reads": 0.0, "read_bytes": 0.0, "writes": 600.0, "write_bytes": 600 * 4096.0}
LOG |= {"write_stall_ms": 300.0, "size_bytes": 4 * GIB}
Row = dict[str, Any]


def write_made_profile(
    folder: Path,
    count: int = 240,
    *,
    length: int = LENGTH,
    left_out: Collection[int] = (),
    file_io: Callable[[int], dict[str, Row]] = lambda n: {"data": DATA, "log": LOG},
    server: Callable[[int], Row] = lambda n: {},
    **manifest: Any,
) -> Path:
    """Write a profile of so many intervals of `length` seconds. `file_io` and `server` take the number of an interval,
    `left_out` are those in which nothing was seen."""
    found: dict[str, list[Row]] = {"file_io": [], "server": []}
    for number in (one for one in range(count) if one not in left_out):
        begin = AT + timedelta(seconds=length * number)
        times = {"start": begin, "end": begin + timedelta(seconds=length)}
        found["file_io"] += [times | {"file_class": name} | values for name, values in file_io(number).items()]
        found["server"].append(times | server(number))
    tables = {name: pa.Table.from_pylist(found[name], TABLES[name]) for name in TABLES}
    about = {"source": "perfmon", "started": AT.isoformat(), "interval_s": length}
    about |= {"sessions": (Session(started=AT.isoformat(), end="imported"),)}
    write_imported(folder, ProfileManifest(**(about | manifest)), tables)
    return folder
