"""Times as files write them, and the instants they mean.

A local time means nothing without its zone, and in the hour that a clock runs through twice not even with it: nothing
here guesses.
"""

import difflib
import os
import re
import zoneinfo
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from pathlib import Path

import numpy as np

from stallmark.errors import StallmarkError

_STAMP = re.compile(
    r"(?P<first>\d{1,4})(?P<between>[-/.:])(?P<second>\d{1,2})(?P=between)(?P<third>\d{1,4})"
    r"(?:T|,?\s+)(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<whole>\d{2})(?:[.,](?P<part>\d{1,9}))?)?"
    r"\s*(?P<half>[AaPp]\.?[Mm]\.?)?\s*(?P<zone>Z|UTC|GMT|[+-]\d{2}(?::?\d{2})?)?"
)
_EPOCH = re.compile(r"\d{10}(\.\d+)?|\d{13}|\d{16}|\d{19}")
_OFFSET = re.compile(r"([+-])(\d{2}):?(\d{2})?")
_AMERICAN = re.compile(r"\d{4},?\s.*[AP]\.?M\.?$", re.I)  # other locales with AM and PM write two digits of the year

YEAR_FIRST, MONTH_FIRST, DAY_FIRST = "year/month/day", "month/day/year", "day.month.year"


@dataclass(frozen=True)
class Reading:
    """One way to read all times of a file; `moments` without a zone are local."""

    order: str
    moments: tuple[datetime, ...]


@dataclass(frozen=True)
class Instants:
    """Instants in seconds since 1970-01-01 UTC. They differ for a local time that occurred twice."""

    early: np.ndarray
    late: np.ndarray

    @property
    def ambiguous(self) -> np.ndarray:
        return self.early != self.late


def is_time(text: str) -> bool:
    """Return whether a cell is a date with a time; numbers that may count seconds do not qualify."""
    return _STAMP.fullmatch(text.strip()) is not None


def is_epoch(text: str) -> bool:
    """Return whether a cell may count seconds since 1970, or milli-, micro- or nanoseconds."""
    return _EPOCH.fullmatch(text.strip()) is not None


def read_times(stamps: Sequence[str]) -> list[Reading]:
    """Return every way to read the times that can read all of them; 04/03/2025 alone can be read in two.

    Raise StallmarkError, which names the first time that cannot be read.
    """
    readings: list[Reading] = []
    unread = stamps[0] if stamps else ""
    for order in (YEAR_FIRST, MONTH_FIRST, DAY_FIRST):
        moments: list[datetime] = []
        for stamp in stamps:
            if (moment := moment_of(stamp.strip(), order)) is None:
                unread = stamp if moments else unread
                break
            moments.append(moment)
        else:
            if all(moments != list(other.moments) for other in readings):
                readings.append(Reading(order, tuple(moments)))
    if not readings:
        raise StallmarkError(f"The time {unread!r} cannot be read: write it as 2025-11-21T10:00:00Z.")
    return readings


def moment_of(stamp: str, order: str) -> datetime | None:
    """Return the time of a stamp in an order of day and month, or None if the stamp does not fit that order."""
    if is_epoch(stamp):
        return _since_1970(stamp) if order == YEAR_FIRST else None
    match = _STAMP.fullmatch(stamp)
    if match is None:
        return None
    first, second, third = match["first"], match["second"], match["third"]
    # Four digits are a year, and only a year that comes first has them there.
    if (len(first) == 4) != (order == YEAR_FIRST) or len(first) == 3 or len(third) == 3:
        return None
    if order == MONTH_FIRST and match["between"] == ".":
        return None  # written with points, the day comes first
    year, month, day = {
        YEAR_FIRST: (first, second, third),
        MONTH_FIRST: (third, first, second),
        DAY_FIRST: (third, second, first),
    }[order]
    hour = int(match["hour"])
    if match["half"]:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + 12 * (match["half"][0] in "Pp")
    micro = int((match["part"] or "0").ljust(9, "0")) // 1000
    try:
        return datetime(
            int(year) + 2000 * (len(year) <= 2), int(month), int(day),
            hour, int(match["minute"]), int(match["whole"] or 0), micro,
            _fixed(match["zone"]) if match["zone"] else None,
        )  # fmt: skip
    except ValueError:
        return None


def _since_1970(stamp: str) -> datetime:
    whole, _, part = stamp.partition(".")
    micro = int((part + "000000")[:6]) + int(whole) * 10**6 // 10 ** (len(whole) - 10)
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micro)


def _fixed(text: str) -> tzinfo:
    if (match := _OFFSET.fullmatch(text)) is None:
        return UTC
    sign, hours, minutes = match.groups()
    return timezone((1 if sign == "+" else -1) * timedelta(hours=int(hours), minutes=int(minutes or 0)))


def find_zone(name: str) -> tzinfo:
    """Return the zone of that name: Europe/Berlin, UTC, +01:00. Raise StallmarkError for an unknown one."""
    if name.upper() in ("Z", "UTC", "GMT"):
        return UTC
    try:
        return _fixed(name) if _OFFSET.fullmatch(name) else zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        pass
    known = {zone.lower(): zone for zone in zoneinfo.available_timezones()}
    near = difflib.get_close_matches(name.lower(), known, n=1)
    meant = f" (did you mean {known[near[0]]}?)" if near else ""
    raise StallmarkError(f"{name} is not a time zone: write it as Europe/Berlin, UTC or +01:00{meant}.")


def local_zone_name() -> str:
    """Return the name of this machine's zone. Raise StallmarkError if there is none."""
    path = Path("/etc/localtime")
    name = os.environ.get("TZ", "").removeprefix(":") or str(path.resolve()).partition("zoneinfo/")[2]
    if not name:
        raise StallmarkError("This machine does not name its time zone: write it as Europe/Berlin, UTC or +01:00.")
    return name


def instants(moments: Sequence[datetime], zone: tzinfo | None) -> Instants:
    """Return the instants of the moments; those without an offset of their own are local times of `zone`.

    Raise StallmarkError for a local time that the zone's clocks never showed.
    """
    early, late = np.empty(len(moments)), np.empty(len(moments))
    for place, moment in enumerate(moments):
        if moment.tzinfo is None:
            if zone is None:
                raise ValueError("a local time without a zone")
            first, second = (moment.replace(tzinfo=zone, fold=fold).timestamp() for fold in (0, 1))
            if first > second:
                raise StallmarkError(
                    f"{moment:%Y-%m-%d %H:%M:%S} never was in {zone}: clocks were put forward over it, so the time "
                    "zone is another."
                )
        else:
            first = second = moment.timestamp()
        early[place], late[place] = first, second
    return Instants(early, late)


def is_local(reading: Reading) -> bool:
    return any(moment.tzinfo is None for moment in reading.moments)


def write_utc(seconds: float) -> str:
    """Return the time for people: 2025-11-21 10:00:00."""
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S}"


class Clock:
    """The clock of one file, whose times are read in their order; local times are of its zone, and notes are
    sentences."""

    def __init__(self, path: Path, order: str, zone: tzinfo | None, note: Callable[[str], None]):
        self._path, self._order, self._zone, self._note = path, order, zone, note
        self._before = float("-inf")

    def instant(self, stamp: str) -> float:
        """Return seconds since 1970. Raise StallmarkError for a time that cannot be read, or whose zone is unknown."""
        moment = moment_of(stamp.strip(), self._order)
        if moment is None:
            raise StallmarkError(
                f"The time {stamp.strip()[:40]!r} of {self._path} is not in the order {self._order}, as others are."
            )
        if moment.tzinfo is not None:
            return moment.timestamp()
        if self._zone is None:
            raise StallmarkError(
                f"{self._path} does not name the time zone of its times: give it with --timezone, as "
                "Europe/Berlin or UTC."
            )
        occurrences = instants([moment], self._zone)
        early, late = float(occurrences.early[0]), float(occurrences.late[0])
        if early != late:
            self._note(
                f"{self._path.name}: summer time ended within it. The times of that hour are there twice; they are "
                "taken in the order of the file."
            )
        self._before = late if early < self._before < late else early
        return self._before


def find_order(path: Path, stamps: Iterable[str], asked: str | None, otherwise: str = "") -> str:
    """Return the order of day and month in which all stamps can be read; stops at the first stamp that decides.

    Raise StallmarkError if no order fits, or several do and `asked` (month-first, day-first) does not choose.
    `otherwise` is another remedy for the message.
    """
    orders = [YEAR_FIRST, MONTH_FIRST, DAY_FIRST]
    stamp = ""
    for stamp in stamps:
        left = [order for order in orders if moment_of(stamp.strip(), order) is not None]
        if not left:
            raise StallmarkError(f"The time {stamp.strip()[:40]!r} of {path} cannot be read: record it in ISO 8601.")
        orders = left
        if orders == [YEAR_FIRST] or (len(orders) == 1 and not asked):
            return orders[0]
    if not stamp:
        raise StallmarkError(f"{path} has no times.")
    chosen = {"month-first": MONTH_FIRST, "day-first": DAY_FIRST}.get(asked or "")
    if chosen in orders:
        return chosen
    if len(orders) == 1:
        if chosen and orders != [YEAR_FIRST]:
            raise StallmarkError(f"The dates of {path} are not {asked}, as {stamp.strip()[:40]!r} shows.")
        return orders[0]
    # A four-digit year with AM or PM is American.
    if _AMERICAN.search(stamp.strip()):
        return MONTH_FIRST
    raise StallmarkError(
        f"The date of {stamp.strip()[:40]!r} in {path} may be read with the month or with the day first: choose "
        f"--dates month-first or --dates day-first{otherwise}."
    )


@dataclass(frozen=True)
class Schedule:
    """The times of reports that lack them, or whose style cannot be read."""

    start: float
    """The time of the first report, in seconds since 1970."""
    interval_s: float

    def stamp(self, place: int) -> str:
        """Return the time of a report in the form of other files."""
        return f"{datetime.fromtimestamp(self.start + place * self.interval_s, UTC):%Y-%m-%dT%H:%M:%S.%fZ}"


def schedule_from(start: str | None, interval_s: float | None, zone: str | None) -> Schedule | None:
    """Return the schedule that options give. Raise StallmarkError for one without the other, or without a zone."""
    if start is None and interval_s is None:
        return None
    if start is None or not interval_s:
        raise StallmarkError("--start and --interval belong together, as in --start 2026-03-02T10:00 --interval 15s.")
    if (moment := moment_of(start.strip(), YEAR_FIRST)) is None:
        raise StallmarkError(f"{start} is not a time: write it as 2026-03-02T10:00 or 2026-03-02T10:00+01:00.")
    if moment.tzinfo is None and zone is None:
        raise StallmarkError(f"--start {start} has no time zone: give it with --timezone, as Europe/Berlin or UTC.")
    begin = instants([moment], find_zone(zone) if zone else None)
    if begin.ambiguous.any():
        raise StallmarkError(f"{start} was twice in {zone}, because summer time ended: write it with its offset.")
    return Schedule(float(begin.early[0]), interval_s)
