"""The formats of an import, told by their first characters."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from stallmark.errors import StallmarkError
from stallmark.record.imports import iostat, iostat_json, perfmon, prometheus, prometheus_csv, sadf_json
from stallmark.record.imports.recording import Recording, Wanted
from stallmark.record.profile.manifest import Source
from stallmark.record.text_stream import head_of

AS_JSON = "`sadf -j /var/log/sysstat/sa02 -- -d -p -u -b > sa02.json`"
_SAR = re.compile(
    r"^\d{1,2}[:时]\d{2}[:分]\d{2}秒?(?: [AaPp]\.?[Mm]\.?)?[ \t]+(CPU\s|tps\s|DEV\s|LINUX[ -]RESTART|.*[ \t]DEV\s*$)", re.M
)
_SADF_ROWS = re.compile(r"\s*(# hostname;interval;timestamp;|[^;\n]+;-?\d+;\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[^;\n]*;)")


@dataclass(frozen=True)
class Format:
    source: Source
    read: Callable[[Path, Recording, Wanted], None]


def format_of(path: Path) -> Format:
    """Return the format of a file. Raise StallmarkError for one of another kind, OSError for what cannot be opened."""
    head = head_of(path).lstrip("\ufeff\r\n ")
    if perfmon.HEAD.match(head):
        return Format("perfmon", perfmon.read)
    if head.startswith("{"):
        if '"sysstat"' in head[:200]:
            return Format("sar", sadf_json.read) if sadf_json.LOOKS.search(head) else Format("iostat", iostat_json.read)
        if '"status"' in head[:4096] and ("result" in head or "error" in head):
            return Format("prometheus", prometheus.read)
    elif _SAR.search(head) or _SADF_ROWS.match(head):
        raise StallmarkError(f"{path} is text of sar, which is not read: write its recording as JSON, as in {AS_JSON}.")
    elif iostat.HEAD.match(head):
        return Format("iostat", iostat.read)
    elif prometheus_csv.looks(head):
        return Format("prometheus", prometheus_csv.read)
    raise StallmarkError(
        f"{path} is in no format known here: it takes Perfmon's CSV, iostat with -t, sadf -j, and a range query of "
        "Prometheus as JSON or CSV."
    )
