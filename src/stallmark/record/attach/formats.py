"""The formats of external measurements, recognised by their first characters."""

import re
from collections.abc import Callable
from pathlib import Path

from stallmark.errors import StallmarkError
from stallmark.record.attach import iostat, perfmon, sar, sysstat, table
from stallmark.record.attach.measurements import Kept, Measurements, Wanted
from stallmark.record.text_stream import head_of

FORMATS: dict[str, Callable[[Wanted, Kept], Measurements]] = {
    "perfmon": perfmon.read,
    "iostat": iostat.read,
    "sar": sar.read,
    "csv": table.read,
}
_SAR = re.compile(r'"timestamp"\s*:\s*\{|"sysdata-version"|"file-date"')


def read(wanted: Wanted, format: str | None = None, kept: Kept = Kept()) -> tuple[str, Measurements]:  # noqa: B008
    """Return the file's format, guessed by content where none is given, and its measurements.

    Raise StallmarkError for a file that cannot be read, OSError for one that cannot be opened.
    """
    format = format or guess(wanted.file)
    return format, FORMATS[format](wanted, kept)


def guess(file: Path) -> str:
    """Return the format of a file by its content. Raise StallmarkError for one of none, OSError for what cannot be
    opened."""
    start = head_of(file, 8192).lstrip()
    if perfmon.HEAD.match(start):
        return "perfmon"
    if sysstat.HEAD.match(start):
        return "sar" if _SAR.search(start) else "iostat"
    if start[0] in "{[<":
        raise StallmarkError(
            f"{file} is in no format known here: it takes Perfmon's CSV, the JSON of iostat and sadf, and CSV."
        )
    return "csv"
