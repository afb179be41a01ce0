"""The formats of external measurements, recognised by their first characters."""

import codecs
import re
from collections.abc import Callable
from pathlib import Path

from stallmark.errors import StallmarkError
from stallmark.record.attach import iostat, perfmon, sar, sysstat, table
from stallmark.record.attach.measurements import Measurements, Wanted

FORMATS: dict[str, Callable[[str, Wanted], Measurements]] = {
    "perfmon": perfmon.read,
    "iostat": iostat.read,
    "sar": sar.read,
    "csv": table.read,
}
_SAR = re.compile(r'"timestamp"\s*:\s*\{|"sysdata-version"|"file-date"')


def read(wanted: Wanted, format: str | None = None) -> tuple[str, Measurements]:
    """Return the file's format, guessed by content where none is given, and its measurements.

    Raise StallmarkError for a file that cannot be read, OSError for one that cannot be opened.
    """
    text = _text(wanted.file)
    if not text.strip():
        raise StallmarkError(f"{wanted.file} is empty.")
    format = format or guess(text, wanted.file)
    return format, FORMATS[format](text, wanted)


def guess(text: str, file: Path) -> str:
    start = text[:8192].lstrip()
    if perfmon.HEAD.match(start):
        return "perfmon"
    if sysstat.HEAD.match(start):
        return "sar" if _SAR.search(start) else "iostat"
    if start[0] in "{[<":
        raise StallmarkError(
            f"{file} is in no format known here: it takes Perfmon's CSV, the JSON of iostat and sadf, and CSV."
        )
    return "csv"


def _text(file: Path) -> str:
    """Return the file as text: PowerShell redirects as UTF-16, other Windows tools write their own code page."""
    content = file.read_bytes()
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        encoding = "utf-16"
    elif b"\0" in content[:4096]:
        raise StallmarkError(f"{file} is no text: convert a binary log with `relog {file.name} -f csv -o out.csv`.")
    else:
        encoding = "utf-8-sig"
    try:
        return content.decode(encoding)
    except UnicodeDecodeError:
        return content.decode("cp1252", errors="replace")
