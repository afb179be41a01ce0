"""The kinds of files that people have: those with a reader, and those that are refused with the command that helps."""

import re
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, Literal

from ruamel.yaml import YAML

from stallmark.errors import StallmarkError
from stallmark.record.formats.dates import Schedule
from stallmark.record.formats.perfmon import Perfmon
from stallmark.record.formats.sample import Recorded, head_bytes, head_of
from stallmark.record.formats.sysstat import AS_SADF, AS_TEXT, REPORT, IostatJson, IostatText, Sadf

Format = Literal["perfmon", "iostat", "sar", "prometheus", "csv"]
_READ = (
    "use Perfmon's CSV, iostat as in {iostat}, sar as in {sadf}, a range query of Prometheus as JSON, and CSV with a "
    "column of times"
)


@cache
def _kinds() -> dict[str, list[dict[str, Any]]]:
    return YAML(typ="safe", pure=True).load(resources.files(__package__) / "kinds.yaml")


def detect_format(path: Path, *, of_profile: bool = False) -> Format:
    """Return the format of a file.

    Raise StallmarkError for one of another kind, or of a kind that makes no profile; OSError if it cannot be opened.
    """
    start, name = head_bytes(path), path.name.lower().removesuffix(".gz")
    for kind in _kinds()["binary"] if b"\0" in start else ():
        if start.startswith(kind.get("start", "").encode("latin-1")) and name.endswith(kind.get("end", "")):
            raise _refusal(path, kind)
    head = head_of(path).lstrip("\ufeff\r\n ")
    for kind in _kinds()["text"]:
        if re.search(kind["pattern"].replace("{report}", REPORT), head, re.M):
            if "format" in kind and not (of_profile and "name" in kind):
                return kind["format"]
            raise _refusal(path, kind)
    return "csv"


def _refusal(path: Path, kind: dict[str, Any]) -> StallmarkError:
    return StallmarkError(
        f"{path} is {kind['name']}: {kind.get('remedy', _READ).format(iostat=AS_TEXT, sadf=AS_SADF)}."
    )


def open_recording(path: Path, format: Format, schedule: Schedule | None = None) -> Recorded | None:
    """Return the reader of a file of Perfmon, iostat or sar; None for another format.

    Raise StallmarkError for a schedule of a file whose times are always known.
    """
    if format == "iostat":
        iostat = IostatJson(path) if head_of(path).lstrip().startswith("{") else IostatText(path)
        iostat.schedule = schedule
        return iostat
    if schedule:
        raise StallmarkError(f"{path} has its own times: --start and --interval are for iostat alone. Leave them out.")
    return Perfmon(path) if format == "perfmon" else Sadf(path) if format == "sar" else None
