r"""CSV of Windows' Performance Monitor, as it is recorded, or made by `relog -f csv` and `typeperf` (PDH-CSV 4.0).

    "(PDH-CSV 4.0) (W. Europe Standard Time)(-60)","\\SQL01\LogicalDisk(D:)\Disk Reads/sec",…
    "03/02/2026 11:00:15.166","812.312",…

The last parentheses hold the minutes that UTC is ahead of the local times, for the whole file: nothing in it says when
summer time began or ended. `typeperf` names no zone. Dates have the month first in every language of Windows. A time
stands at the end of what a rate covers, from the row before; a value that could not be taken is a blank.
"""

import csv
import re
from collections.abc import Iterator
from datetime import timedelta, timezone
from pathlib import Path

from stallmark.errors import StallmarkError
from stallmark.record.attach.perfmon import HEAD as HEAD
from stallmark.record.attach.perfmon import delimiter_of
from stallmark.record.attach.times import MONTH_FIRST, is_time
from stallmark.record.imports.clock import Clock
from stallmark.record.imports.perfmon_plan import Plan
from stallmark.record.imports.recording import Recording, Steps, Wanted, finite_or_none
from stallmark.record.text_stream import lines_in, opened

_ZONE = re.compile(r"\(PDH-... [\d.]+\)\s*\((?P<name>.*)\)\s*\((?P<bias>-?\d+)\)")


def read(path: Path, recording: Recording, wanted: Wanted) -> None:
    """Read a file; raise StallmarkError where it has no counter that is known here, or more than one server's."""
    steps = Steps(path, recording)
    plan: Plan | None = None
    clock: Clock | None = None
    cut = commas = 0
    for row in _rows(path):
        if HEAD.match(row[0]):
            plan = Plan(path, row, recording, wanted)
            clock = Clock(path, recording, wanted, MONTH_FIRST, _zone(row[0]))
            steps.begin_anew()
            continue
        if plan is None or clock is None:
            raise StallmarkError(f"{path} does not begin with the header of Perfmon's CSV: it is cut.")
        if not is_time(row[0]):
            continue  # typeperf ends with "The command completed successfully."
        span = steps.span_to(clock.instant(row[0]))
        if len(row) < plan.width:
            cut += 1
            continue
        if span is None:
            continue
        try:
            values = {place: finite_or_none(row[place]) for place in plan.places}
        except ValueError:
            bad = next(row[place] for place in plan.places if not _is_number(row[place]))
            raise StallmarkError(
                f"{bad[:40]!r} in {path}, of {row[0]}, is no number: a program for tables may have written the file "
                "anew. Import what Perfmon wrote."
            ) from None
        commas += any("," in row[place] for place in plan.places)
        recording.add_rates(*span, plan.rates(values))
    if cut:
        recording.note(f"{path.name}: {cut} row{'s' * (cut > 1)} with too few values left out.")
    if commas:
        recording.note(f"{path.name}: decimal commas are read as points.")
    steps.tell()


def _rows(path: Path) -> Iterator[list[str]]:
    with opened(path) as text:
        first = ""
        lines = lines_in(path, text)
        for first in lines:
            if first.strip():
                break
        delimiter = delimiter_of(first)
        try:
            yield from (row for row in csv.reader([first], delimiter=delimiter) if row)
            yield from (row for row in csv.reader(lines, delimiter=delimiter) if row)
        except csv.Error as error:
            raise StallmarkError(f"{path} cannot be read as Perfmon's CSV ({error}).") from None


def _zone(header: str) -> timezone | None:
    found = _ZONE.match(header)
    if found is None or abs(int(found["bias"])) >= 24 * 60:
        return None
    return timezone(timedelta(minutes=-int(found["bias"])))


def _is_number(text: str) -> bool:
    try:
        finite_or_none(text)
    except ValueError:
        return False
    return True
