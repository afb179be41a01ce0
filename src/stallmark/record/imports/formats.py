"""The formats of an import, told by their first characters."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from stallmark.errors import StallmarkError
from stallmark.record.imports import iostat, iostat_json, perfmon, prometheus, prometheus_csv, sadf, sadf_json, sar
from stallmark.record.imports.recording import Recording, Wanted
from stallmark.record.profile.manifest import Source
from stallmark.record.text_stream import head_of


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
    elif iostat.HEAD.match(head):
        return Format("sar", sar.read) if sar.LOOKS.search(head) else Format("iostat", iostat.read)
    elif sadf.HEAD.match(head):
        return Format("sar", sadf.read)
    elif prometheus_csv.looks(head):
        return Format("prometheus", prometheus_csv.read)
    raise StallmarkError(
        f"{path} is in no format known here: it takes Perfmon's CSV, iostat with -t, sar, sadf -d or -j, and a range "
        "query of Prometheus as JSON or CSV."
    )
