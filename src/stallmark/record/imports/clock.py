"""The instants of a file's times: their order of day and month, their zone, and the hour that a clock shows twice."""

from collections.abc import Iterable
from datetime import datetime, tzinfo
from pathlib import Path

from stallmark.errors import StallmarkError
from stallmark.record.attach.times import DAY_FIRST, MONTH_FIRST, YEAR_FIRST, find_zone, instants, moment_of
from stallmark.record.imports.recording import Recording, Wanted

_ORDERS = {"month-first": MONTH_FIRST, "day-first": DAY_FIRST}


class Clock:
    """The clock of one file. `zone`: of the file's local times, where it says one."""

    def __init__(self, path: Path, recording: Recording, wanted: Wanted, order: str, zone: tzinfo | None = None):
        self._path, self._recording, self._order = path, recording, order
        self._zone = find_zone(wanted.zone) if wanted.zone else zone
        self._before = float("-inf")

    def instant(self, stamp: str) -> float:
        """Return seconds since 1970. Raise StallmarkError for a time that cannot be read, or whose zone is unknown."""
        moment = moment_of(stamp.strip(), self._order)
        if moment is None:
            raise StallmarkError(
                f"The time {stamp.strip()[:40]!r} of {self._path} is no time in the order {self._order}, as others are."
            )
        return self.instant_of(moment)

    def instant_of(self, moment: datetime) -> float:
        if moment.tzinfo is not None:
            return moment.timestamp()
        if self._zone is None:
            raise StallmarkError(
                f"{self._path} does not say in which time zone its times are: give it with --timezone, as "
                "Europe/Berlin or UTC."
            )
        found = instants([moment], self._zone)
        early, late = float(found.early[0]), float(found.late[0])
        if early != late:
            self._recording.note(
                f"{self._path.name}: summer time ended within it. The times of that hour are there twice; they are "
                "taken in the order of the file."
            )
        self._before = late if early < self._before < late else early
        return self._before


def order_of(path: Path, stamps: Iterable[str], wanted: Wanted) -> str:
    """Return the one order of day and month in which all the stamps can be read; only as many are taken as it needs.

    Raise StallmarkError where there is none, or more than one and the options do not say which.
    """
    orders = [YEAR_FIRST, MONTH_FIRST, DAY_FIRST]
    seen = ""
    for seen in stamps:
        left = [order for order in orders if moment_of(seen.strip(), order) is not None]
        if not left:
            raise StallmarkError(f"The time {seen.strip()[:40]!r} of {path} cannot be read: record it in ISO 8601.")
        orders = left
        if len(orders) == 1 and not wanted.dates:
            return orders[0]
    if not seen:
        raise StallmarkError(f"{path} has no times.")
    if len(orders) > 1 and seen.strip().upper().endswith(("AM", "PM")):
        return MONTH_FIRST
    asked = _ORDERS.get(wanted.dates or "")
    if asked in orders:
        return asked
    if len(orders) == 1:
        if asked and orders != [YEAR_FIRST]:
            raise StallmarkError(f"The dates of {path} are not {wanted.dates}, as {seen.strip()[:40]!r} shows.")
        return orders[0]
    raise StallmarkError(
        f"The date of {seen.strip()[:40]!r} in {path} may be read with the month or with the day first: say which with "
        "--dates month-first or --dates day-first."
    )
