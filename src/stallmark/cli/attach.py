"""`stallmark attach`: measurements from elsewhere for a run, and a sentence on how its times were understood."""

import math
from collections.abc import Sequence
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from stallmark.errors import StallmarkError
from stallmark.quantities import Seconds, write_duration
from stallmark.record.attach.attach import Attached, Request, attach
from stallmark.record.attach.measurements import Wanted
from stallmark.record.manifest import External
from stallmark.record.reader import find_records

_SECONDS: TypeAdapter[float] = TypeAdapter(Seconds)


def attach_file(runs: Sequence[Path], wanted: Wanted, request: Request) -> list[Attached]:
    """Attach to those of the runs, or of the runs in the folders, that the file overlaps."""
    return attach(find_records(runs), wanted, request)


def offset(text: str) -> float:
    """Seconds to add to the file's times: 2.5s, -300ms, +1h."""
    sign, rest = (text[0], text[1:]) if text[:1] in ("+", "-") else ("+", text)
    if rest[:1] in ("+", "-"):
        raise StallmarkError(f"{text} is no offset: write it as 2.5s or -300ms.")
    try:
        return math.copysign(_SECONDS.validate_python(rest), -1.0 if sign == "-" else 1.0)
    except ValidationError as error:
        raise StallmarkError(error.errors()[0]["msg"].removeprefix("Value error, ") + ".") from None


def sentences(attached: Attached) -> list[str]:
    """What was attached, and by which clock."""
    entry = attached.entry
    begin, end = (moment[:19].replace("T", " ") for moment in entry.span)
    counters = f"{entry.counters} counter{'s' * (entry.counters != 1)}"
    lines = [
        f"{attached.run}: “{entry.name}” attached ({entry.format}), {counters}, {entry.samples} samples "
        f"every {write_duration(round(entry.interval_s, 3))}, {begin} to {end} UTC.",
        f"Its clock: {entry.time_zone}; {_offset(entry)}.",
    ]
    return lines + [f"Left out: {note}." for note in entry.notes]


def _offset(entry: External) -> str:
    seconds = entry.offset_s
    return f"{seconds:+g} s added to its times" if seconds else "no offset applied"
