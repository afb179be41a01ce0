"""Times as files write them, and the instants they mean.

A local time means nothing without its zone, and in the hour that a clock runs through twice not even with it: nothing
here guesses.
"""

import difflib
import os
import re
import zoneinfo
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from pathlib import Path

from stallmark.record.formats.sample import refusal, wrong_option

_STAMP = re.compile(
    r"(?P<first>[0-9]{1,4})(?P<between>[-/.:])(?P<second>[0-9]{1,2})(?P=between)(?P<third>[0-9]{1,4})"
    r"(?:T|,?\s+)(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{2})(?::(?P<whole>[0-9]{2})(?:[.,](?P<part>[0-9]{1,9}))?)?"
    r"\s*(?P<half>[AaPp]\.?[Mm]\.?)?\s*(?P<zone>Z|UTC|GMT|[+-][0-9]{2}(?::?[0-9]{2})?)?"
)
_COMPACT = re.compile(r"^([0-9]{4})([0-9][0-9])([0-9][0-9])(?=[T ][0-9])")
_EPOCH = re.compile(r"[0-9]{10}(\.[0-9]+)?|[0-9]{13}|[0-9]{16}|[0-9]{19}")
_OFFSET = re.compile(r"([+-])(\d{2}):?(\d{2})?")
_AMERICAN = re.compile(r"\d{4},?\s.*[AP]\.?M\.?$", re.I)  # other locales with AM and PM write two digits of the year

YEAR_FIRST, MONTH_FIRST, DAY_FIRST = "year/month/day", "month/day/year", "day.month.year"
_PLACES = {YEAR_FIRST: (0, 1, 2), MONTH_FIRST: (2, 0, 1), DAY_FIRST: (2, 1, 0)}
"""The places of year, month and day."""


def is_time(text: str) -> bool:
    """Return whether a cell is a date with a time; numbers that may count seconds do not qualify."""
    return _STAMP.fullmatch(_COMPACT.sub(r"\1-\2-\3", text.strip())) is not None


def is_epoch(text: str) -> bool:
    """Return whether a cell may count seconds since 1970, or milli-, micro- or nanoseconds."""
    return _EPOCH.fullmatch(text.strip()) is not None


def moment_of(stamp: str, order: str) -> datetime | None:
    """Return the time of a stamp in an order of day and month, or None if the stamp does not fit that order."""
    stamp = _COMPACT.sub(r"\1-\2-\3", stamp.strip())
    if is_epoch(stamp):
        whole, _, part = stamp.partition(".")
        micro = int((part + "000000")[:6]) + int(whole) * 10**6 // 10 ** (len(whole) - 10)
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micro) if order == YEAR_FIRST else None
    match = _STAMP.fullmatch(stamp)
    if match is None:
        return None
    parts = match["first"], match["second"], match["third"]
    # Four digits are a year, and only a year that comes first has them there.
    if (len(parts[0]) == 4) != (order == YEAR_FIRST) or len(parts[0]) == 3 or len(parts[2]) == 3:
        return None
    if order == MONTH_FIRST and match["between"] == ".":
        return None  # written with points, the day comes first
    year, month, day = (parts[place] for place in _PLACES[order])
    full_year = int(year) + (len(year) <= 2) * (2000 if int(year) < 69 else 1900)  # as POSIX does
    if not 1990 <= full_year < 2100:
        return None  # another calendar: 2026 is 2569 or 69 in Thailand, 1405 in Iran
    hour = int(match["hour"])
    if match["half"]:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + 12 * (match["half"][0] in "Pp")
    micro = int((match["part"] or "0").ljust(9, "0")) // 1000
    try:
        return datetime(
            full_year, int(month), int(day),
            hour, int(match["minute"]), int(match["whole"] or 0), micro,
            find_zone(match["zone"]) if match["zone"] else None,
        )  # fmt: skip
    except ValueError:
        return None


def find_zone(name: str) -> tzinfo:
    """Return the zone of that name: Europe/Berlin, UTC, +01:00. Raise StallmarkError for an unknown one."""
    if name.upper() in ("Z", "UTC", "GMT"):
        return UTC
    if match := _OFFSET.fullmatch(name):
        sign, hours, minutes = match.groups()
        offset = timedelta(hours=int(hours), minutes=int(minutes or 0))
        if offset < timedelta(days=1):
            return timezone(-offset if sign == "-" else offset)
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        pass
    known = {zone.lower(): zone for zone in zoneinfo.available_timezones()}
    near = difflib.get_close_matches(name.lower(), known, n=1)
    meant = f" (did you mean {known[near[0]]}?)" if near else ""
    raise refusal("no_zone", name=name, meant=meant)


def local_zone_name() -> str:
    """Return the name of this machine's zone. Raise StallmarkError if there is none."""
    path = Path("/etc/localtime")
    name = os.environ.get("TZ", "").removeprefix(":") or str(path.resolve()).partition("zoneinfo/")[2]
    if not name:
        raise refusal("nameless_zone")
    return name


def possible_orders(path: Path, stamps: Iterable[str], otherwise: str = "") -> tuple[list[str], str]:
    """Return the orders of day and month in which all stamps can be read, and not to the same times; and a stamp that
    shows it.

    Stops at the first stamp that leaves one order. Raise StallmarkError if no order fits; `otherwise` is another remedy
    for the message.
    """
    orders = [YEAR_FIRST, MONTH_FIRST, DAY_FIRST]
    differ, stamp = False, None
    for stamp in stamps:
        moments = {order: moment for order in orders if (moment := moment_of(stamp, order)) is not None}
        if not moments:
            raise refusal("unreadable_time", path, stamp=stamp.strip()[:40], otherwise=otherwise)
        orders = list(moments)
        if len(orders) == 1:
            return orders, stamp.strip()
        differ |= len(set(moments.values())) > 1
    if stamp is None:
        raise refusal("no_time", path)
    return orders if differ else orders[:1], stamp.strip()


def choose_order(path: Path, stamps: Iterable[str], asked: str | None, otherwise: str = "") -> str:
    """Return the order of day and month in dates: the `asked` one (month-first, day-first), else the only possible one,
    else month first for a year of four digits with AM or PM, as in the USA.

    Raise StallmarkError if it is unknown.
    """
    orders, example = possible_orders(path, stamps, otherwise)
    chosen = {"month-first": MONTH_FIRST, "day-first": DAY_FIRST}.get(asked or "", "")
    if chosen in orders:
        return chosen
    if len(orders) == 1:
        if chosen and orders != [YEAR_FIRST] and moment_of(example, chosen) is None:
            raise refusal("other_order", path, asked=asked, stamp=example[:40])
        return orders[0]
    if _AMERICAN.search(example):
        return MONTH_FIRST
    raise refusal("no_order", path, stamp=example[:40], otherwise=otherwise)


class Clock:
    """The clock of one file: local times are of its zone. `zone_words`: the zone in the words of the file."""

    def __init__(self, path: Path, order: str, zone: tzinfo | None, zone_words: str = ""):
        self._path, self._order, self._zone, self._zone_words = path, order, zone, zone_words
        self._before = float("-inf")
        self.is_local = False
        """A time without an offset was read."""
        self.is_repeated = False
        """A local time was read that occurred twice, because summer time ended."""

    def occurrences(self, stamp: str) -> tuple[float, float]:
        """Return the instants of a time in seconds since 1970; they differ for a local time that occurred twice.

        Raise StallmarkError for a time that cannot be read, whose zone is unknown, or that its clock never showed.
        """
        moment = moment_of(stamp, self._order)
        if moment is None:
            raise refusal("mixed_order", self._path, stamp=stamp.strip()[:40], order=self._order)
        if moment.tzinfo is not None:
            return moment.timestamp(), moment.timestamp()
        self.is_local = True
        if self._zone is None:
            but = f", only “{self._zone_words}”" if self._zone_words else ""
            raise refusal("local_time", self._path, but=but)
        early, late = (moment.replace(tzinfo=self._zone, fold=fold).timestamp() for fold in (0, 1))
        if early > late:
            raise refusal("skipped_time", moment=moment, zone=self._zone)
        return early, late

    def instant(self, stamp: str) -> float:
        """Return seconds since 1970. Of two occurrences, the order of the file decides."""
        early, late = self.occurrences(stamp)
        self.is_repeated |= early != late
        if early != late and early < self._before < late:
            early = late
        self._before = early if self.is_local else self._before
        return early


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
    """Return the schedule that options give. Raise WrongOption for one without the other, or without a zone."""
    if start is None and interval_s is None:
        return None
    if start is None or not interval_s:
        raise wrong_option("half_schedule")
    if (moment := moment_of(start, YEAR_FIRST)) is None:
        raise wrong_option("bad_start", stamp=start)
    if moment.tzinfo is None and zone is None:
        raise wrong_option("local_start", stamp=start)
    begin, late = Clock(Path("--start"), YEAR_FIRST, find_zone(zone) if zone else None).occurrences(start)
    if begin != late:
        raise wrong_option("double_start", stamp=start, zone=zone)
    return Schedule(begin, interval_s)
