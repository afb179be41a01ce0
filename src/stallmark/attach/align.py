"""The times of a file's samples in UTC, from its time zone, its order of day and month, and its clock's offset."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import tzinfo

import numpy as np

from stallmark.errors import StallmarkError
from stallmark.record.formats.dates import Instants, Reading, find_zone, instants, is_local, read_times, write_utc
from stallmark.record.formats.sample import Recorded

STEP_BACK_S = 60.0
"""Seconds: a clock that is corrected goes back by less; one that is set, or leaves summer time, by more."""

MARGIN_S = 60.0
"""Seconds before and after a run whose samples are kept with it, to find out how far two clocks lie apart."""


@dataclass(frozen=True)
class Span:
    """A span of time, in seconds since 1970-01-01 UTC."""

    begin: float
    end: float

    def overlaps(self, other: "Span") -> bool:
        return self.begin <= other.end and other.begin <= self.end

    def moved(self, seconds: float) -> "Span":
        return Span(self.begin + seconds, self.end + seconds)

    def __str__(self) -> str:
        return f"{write_utc(self.begin)} to {write_utc(self.end)} UTC"


@dataclass(frozen=True)
class ClockSetting:
    """The time zone and offset by which a file's times were understood; both are shown wherever its figures are."""

    zone: str  # "Europe/Berlin, as given"
    offset_s: float  # added to its times


@dataclass(frozen=True)
class Aligned:
    """A file's samples in time. `utc` holds their instants, NaN for those left out; `interval_s` is the time
    between two."""

    clock: ClockSetting
    utc: np.ndarray
    interval_s: float
    span: Span


def align(stamps: Sequence[str], file: Recorded, zone: str | None, offset_s: float, runs: Sequence[Span]) -> Aligned:
    """Find out when the samples were taken; at least one of the `runs` must lie in their span.

    Raise StallmarkError for times that cannot be understood or do not fit.
    """
    readings = read_times(stamps)
    found, refused = [], []
    for reading in readings:
        try:
            found.append(_understand(reading, file, zone, offset_s, runs))
        except StallmarkError as error:
            refused.append(error)
    fitting = [one for one in found if any(one.span.overlaps(run) for run in runs)]
    if len(fitting) > 1:
        orders = " and as ".join(reading.order for reading in readings)
        raise StallmarkError(
            f"The dates of {file.path} can be read as {orders}, and both overlap the run: write them as 2025-11-21."
        )
    if not fitting and refused:
        raise refused[0]
    if not fitting:
        raise StallmarkError(_no_overlap(found[0].span, file, runs))
    return fitting[0]


def _understand(reading: Reading, file: Recorded, zone: str | None, offset_s: float, runs: Sequence[Span]) -> Aligned:
    chosen, words = _zone(reading, file, zone)
    when = instants(reading.moments, chosen)
    _refuse_ambiguous(when, file, words, offset_s, runs)
    utc = np.where(when.ambiguous, np.nan, when.early + offset_s)
    known = utc[np.isfinite(utc)]
    if len(known) < 2:
        raise StallmarkError(f"{file.path} holds fewer than two samples: there is no interval.")
    steps = np.diff(known)
    if np.median(steps) < 0:  # newest first
        steps = -steps
    if steps.min() < -STEP_BACK_S:
        place = int(steps.argmin()) + 1
        raise StallmarkError(
            f"The times of {file.path} go back by {-steps.min():.0f} s at {write_utc(known[place])} UTC: its clock "
            "was set there, or summer time ended; cut the file there, or say with --timezone whose time it is."
        )
    forward = steps[steps > 0]
    if not len(forward):
        raise StallmarkError(f"All samples of {file.path} are of one time.")
    return Aligned(
        ClockSetting(words, offset_s), utc, float(np.median(forward)), Span(float(known.min()), float(known.max()))
    )


def _zone(reading: Reading, file: Recorded, asked: str | None) -> tuple[tzinfo | None, str]:
    """Return the zone of local times, and how it is known; raise StallmarkError where it is not."""
    own = not is_local(reading) or file.zone_words == "UTC"
    if own and asked:
        raise StallmarkError(f"The times of {file.path} say their own offset: leave --timezone out.")
    if not is_local(reading):
        return None, "its times carry their offset"
    if asked:
        return find_zone(asked), f"{asked}, as given"
    if file.zone:
        said = f" ({file.zone_words})" if file.zone_words != "UTC" else ""
        return file.zone, f"{file.zone}, as the file says{said}"
    but = f", only “{file.zone_words}”" if file.zone_words else ""
    raise StallmarkError(
        f"{file.path} does not say in which time zone its times are{but}: give it with --timezone, as "
        "Europe/Berlin or UTC."
    )


def _refuse_ambiguous(when: Instants, file: Recorded, zone: str, offset_s: float, runs: Sequence[Span]) -> None:
    """Raise StallmarkError for an ambiguous local time that may fall into a run; elsewhere it does no harm."""
    for run in runs:
        begin, end = run.begin - offset_s - MARGIN_S, run.end - offset_s + MARGIN_S
        inside = when.ambiguous & (when.early <= end) & (when.late >= begin)
        if inside.any():
            place = int(inside.argmax())
            raise StallmarkError(
                f"A time of {file.path} was twice in its zone ({zone}), at {write_utc(when.early[place])} and at "
                f"{write_utc(when.late[place])} UTC, because summer time ended: write it with UTC times."
            )


def _no_overlap(span: Span, file: Recorded, runs: Sequence[Span]) -> str:
    whole = Span(min(run.begin for run in runs), max(run.end for run in runs))
    said = "the run" if len(runs) == 1 else "the runs"
    sentence = f"{file.path} does not overlap {said}: it spans {span}, {said} {whole}"
    for hours in sorted(range(-14, 15), key=abs):
        if hours and any(span.moved(hours * 3600).overlaps(run) for run in runs):
            way = "later" if hours > 0 else "earlier"
            return f"{sentence}; {abs(hours)} h {way} it would: say with --timezone whose time it is."
    return f"{sentence}."
