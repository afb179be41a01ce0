"""Readers of files of other tools, one module for each format.

`detect_format` recognises the format of a file, by `kinds.yaml`. A reader yields samples: the values of counters at
the file's times. `attach/` puts samples next to a run. Three more modules make a profile of them:

    file → samples → Readings: a row for each time, a column for each counter
         → Part: each column with its meaning, by counters.csv, and its device, database or file
         → Amounts: counts over the spans between rows → sums by class of file → imported_profile: the folder

The module of each format chooses what counts. Files are read as streams: only the values that a profile uses are held
in memory. `units.yaml` has the units of counters, `sentences.yaml` the refusals and the notes on files.

`dates` converts the times to UTC. pandas, dateutil and DuckDB guess if a time is ambiguous: day before month, or an
hour that a clock change repeats or skips. Here each such time is refused, or the page reports the choice.
"""

import re
from pathlib import Path
from typing import Any, Literal

from stallmark.errors import StallmarkError
from stallmark.record.formats.dates import Schedule
from stallmark.record.formats.perfmon import Perfmon
from stallmark.record.formats.sample import Recorded, head_bytes, head_of, in_quotes, load_yaml, refusal
from stallmark.record.formats.sysstat import REPORT, Iostat, Sadf

Format = Literal["perfmon", "iostat", "sar", "prometheus", "csv"]


def detect_format(path: Path, *, of_profile: bool = False) -> Format:
    """Return the format of a file.

    Raise StallmarkError for one of another kind, or of a kind that makes no profile; OSError if it cannot be opened.
    """
    kinds, start, name = load_yaml("kinds"), head_bytes(path), path.name.lower().removesuffix(".gz")
    for kind in kinds["binary"] if b"\0" in start else ():
        if start.startswith(kind.get("start", "").encode("latin-1")) and name.endswith(kind.get("end", "")):
            raise _refusal(path, kind)
    head = head_of(path).lstrip("\ufeff\r\n ")
    for kind in kinds["text"]:
        if match := re.search(kind["pattern"].replace("{report}", REPORT), head, re.M):
            if "format" in kind and not (of_profile and "name" in kind):
                return kind["format"]
            raise _refusal(path, kind, **match.groupdict())
    return "csv"


def _refusal(path: Path, kind: dict[str, Any], **parts: str) -> StallmarkError:
    """Return the error of a kind; `parts` are texts of the file, for the pattern of a sed command."""
    patterns = {name: _sed_pattern(text) for name, text in parts.items()}
    remedy = kind["remedy"].format(**load_yaml("sentences")["commands"], **patterns)
    return refusal("of_kind", path, name=kind["name"], remedy=remedy)


def _sed_pattern(text: str) -> str:
    """Return a pattern of a text that begins each line.

    Its numbers may differ, and an empty line may lack the blanks behind it.
    """
    escaped = re.sub(r"[][.*^$/\\]", r"\\\g<0>", text.rstrip())
    blanks = len(text) - len(text.rstrip())
    return in_quotes(re.sub(r"\d+", "[0-9]*", escaped)) + (rf"[[:blank:]]\{{0,{blanks}\}}" if blanks else "")


def open_recording(path: Path, format: Format, schedule: Schedule | None = None) -> Recorded | None:
    """Return the reader of a file of Perfmon, iostat or sar; None for another format.

    Raise StallmarkError for a schedule of a file whose times are always known.
    """
    if format == "iostat":
        return Iostat(path, schedule)
    if schedule:
        raise refusal("own_times", path)
    return Perfmon(path) if format == "perfmon" else Sadf(path) if format == "sar" else None
