"""The format of a file, told by its first characters, and its reader."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from stallmark.errors import StallmarkError
from stallmark.record.formats import perfmon, sysstat
from stallmark.record.formats.dates import is_time
from stallmark.record.formats.perfmon import Perfmon
from stallmark.record.formats.sample import Recorded, head_of
from stallmark.record.formats.sysstat import IostatJson, IostatText, Sadf

Format = Literal["perfmon", "iostat", "sar", "prometheus", "csv"]
_SADF = "`sadf -j /var/log/sysstat/sa02 -- -d -p -u -b > sa02.json`"
_SAR = re.compile(
    r"^\d{1,2}[:时]\d{2}[:分]\d{2}秒?(?: [AaPp]\.?[Mm]\.?)?[ \t]+(CPU\s|tps\s|DEV\s|LINUX[ -]RESTART|.*[ \t]DEV\s*$)",
    re.M,
)
_SADF_ROWS = re.compile(r"\s*(# hostname;interval;timestamp;|[^;\n]+;-?\d+;\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[^;\n]*;)")


def detect_format(path: Path) -> Format:
    """Return the format of a file. Raise StallmarkError for one of another kind, OSError for what cannot be opened."""
    head = head_of(path).lstrip("\ufeff\r\n ")
    if perfmon.HEAD.match(head):
        return "perfmon"
    if sysstat.JSON.match(head):
        return "sar" if sysstat.SADF.search(head) else "iostat"
    if head.startswith("{") and '"status"' in head[:4096] and ("result" in head or "error" in head):
        return "prometheus"
    if _SAR.search(head) or _SADF_ROWS.match(head):
        raise StallmarkError(f"{path} is text of sar, which is not read: write its recording as JSON, as in {_SADF}.")
    if head.startswith(("{", "[", "<")):
        raise StallmarkError(
            f"{path} is in no format known here: it takes Perfmon's CSV, iostat with -t, sadf -j, a range query of "
            "Prometheus as JSON, and CSV with a column of times."
        )
    if sysstat.HEAD.match(head) or (is_time(head.partition("\n")[0]) and sysstat.REPORT.search(head)):
        return "iostat"
    return "csv"


def _iostat(path: Path) -> Recorded:
    return IostatJson(path) if head_of(path).lstrip().startswith("{") else IostatText(path)


READERS: dict[str, Callable[[Path], Recorded]] = {"perfmon": Perfmon, "iostat": _iostat, "sar": Sadf}
"""The readers of what has a fixed form; `table.Table` reads any other CSV."""
