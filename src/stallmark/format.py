"""Write numbers, shares, sizes, durations and times as text: the one place for reports, the terminal and sentences.

Three significant digits below 1,000, whole numbers with thousands separators from there on. `None` and NaN are
written as an en dash: nothing was measured, which is not the same as zero. Fields of a row declare here how their
column in a table is written, as units are declared with the columns of a record.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, tzinfo
from functools import cache
from typing import Any, NamedTuple, get_type_hints

import humanize

NONE = "–"
NBSP = "\u00a0"
TOO_SMALL = "sample too small for this percentile"
MISSING = f"{NONE}*"
"""A percentile that too few samples leave unknown."""

_zone: tzinfo = UTC
"""The zone of all times that this process shows: a command may set another. Records and JSON keep UTC."""


@contextmanager
def times_in(zone: tzinfo) -> Iterator[None]:
    """Show times in this zone while inside."""
    global _zone
    before, _zone = _zone, zone
    try:
        yield
    finally:
        _zone = before


def number(value: float | None) -> str:
    """Write a measured quantity, without its unit; with a minus sign, not a hyphen. One read in 100,000 transactions is
    <0.0001 per transaction."""
    if value is None or math.isnan(value):
        return NONE
    return "<0.0001" if 0 < value < 0.0001 else _significant(value, 3)


def with_uncertainty(value: float | None, uncertainty: float | None) -> str:
    """Write a number with the share by which it may be off; without one if that is not known."""
    return f"{number(value)} ±{NBSP}{percent(uncertainty)}" if value is not None and uncertainty else number(value)


def percentile(value: float | None) -> str:
    """Write a percentile; a mark if the sample is too small for it."""
    return MISSING if value is None else number(value)


def count(value: int | None) -> str:
    """Write a count: every digit matters."""
    return NONE if value is None else f"{value:,d}"


def share(value: float | None) -> str:
    """Write a measured share of one as a percentage; what is not all of it is never written as 100 %."""
    if value is None or math.isnan(value):
        return NONE
    percent = value * 100
    if 99.95 <= percent < 100:
        return f">99.9{NBSP}%"
    if 0 < abs(percent) < 0.05:
        return f"<0.1{NBSP}%"
    return f"{percent:.0f}{NBSP}%" if percent in (0, 100) else f"{percent:.1f}{NBSP}%"


def portion(value: float | None) -> str:
    """Write a share that was chosen, not measured: 5 %, 12.5 %."""
    return NONE if value is None else f"{short(value * 100)}{NBSP}%"


def size(value: float | None) -> str:
    """Write the size of memory and files: KiB, MiB, GiB."""
    if value is None:
        return NONE
    # More decimals than are shown, since `short` rounds: rounded twice, the last digit could be another one.
    amount, unit = humanize.naturalsize(round(value), binary=True, format="%.6f").split()
    return f"{short(float(amount))}{NBSP}{unit}"


def whole(value: float | None) -> str:
    """Write a mean of counts, without its digits after the point."""
    return NONE if value is None else f"{value:,.0f}"


def in_units(size: int) -> Callable[[float | None], str]:
    """Return a function that writes a quantity as a number of units of this size."""
    return lambda value: number(None if value is None else value / size)


kib, mib = in_units(1024), in_units(2**20)


def signed_size(value: float | None) -> str:
    """Write the change of a size: +1.5 GiB, −64 MiB."""
    return NONE if value is None else f"{'+' if value >= 0 else '−'}{size(abs(value))}"


def seconds(value: float | None) -> str:
    """Write a duration: 45 s, 10 min, 24 h."""
    if value is None or math.isnan(value):
        return NONE
    for length, unit in ((3600, "h"), (60, "min")):
        if value >= 2 * length:
            return f"{short(value / length)}{NBSP}{unit}"
    return f"{short(value)}{NBSP}s"


def duration(span_s: float) -> str:
    """Return a span in words: to the second below an hour, to the minute above."""
    return humanize.precisedelta(round(span_s), minimum_unit="seconds" if span_s < 3600 else "minutes", format="%d")


def roughly(span_s: float) -> str:
    """Return a span in words for an estimate: in one unit of which there are two or more; seconds in tens from 10
    on."""
    units = (("day", 86_400), ("hour", 3600), ("minute", 60))
    unit, length = next(((name, seconds) for name, seconds in units if span_s >= 2 * seconds), ("second", 1))
    count = round(span_s, -1 if unit == "second" and span_s >= 10 else None) if length == 1 else round(span_s / length)
    return f"{count:.0f} {unit}{'s' * (count != 1)}"


def time_unit(span_s: float) -> tuple[int, str]:
    """Return the seconds of a unit for an axis of `span_s` seconds, and the unit."""
    return (3600, "hours") if span_s >= 3 * 3600 else (60, "minutes") if span_s >= 600 else (1, "seconds")


def zone() -> str:
    """Return the name of the zone that times are shown in."""
    return str(_zone)


def moment(when: str | float) -> str:
    """Write a moment to the minute, with its zone: 2026-11-22 10:11 UTC."""
    return f"{minute(when)} {zone()}"


def minute(when: str | float) -> str:
    """Write a moment to the minute, beside a label that names the zone: 2026-11-22 10:11."""
    return _clock(when, "minutes")


def second(when: str | float) -> str:
    """Write a moment to the second, beside a label that names the zone: 2026-11-22 10:11:12."""
    return _clock(when, "seconds")


def local_time(when: str | float) -> datetime:
    """Return a moment in the zone that times are shown in, from ISO 8601 (UTC unless it names an offset) or seconds
    since 1970."""
    if not isinstance(when, str):
        return datetime.fromtimestamp(when, _zone)
    parsed = datetime.fromisoformat(when)
    return (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).astimezone(_zone)


def _clock(when: str | float, precision: str) -> str:
    local = local_time(when)
    # An hour comes twice in the night when summer time ends: only the offset tells the two apart.
    twice = local.replace(fold=1 - local.fold).utcoffset() != local.utcoffset()
    return (local if twice else local.replace(tzinfo=None)).isoformat(" ", precision)


def difference(left: float | None, right: float | None) -> float | None:
    """Return the difference of `right` from `left` as a share of `left`, or None if either is missing."""
    if left is None or right is None or left == 0:
        return None
    return right / left - 1


def per_transaction(value: float) -> str:
    return f"{value:.1f}" if value >= 0.1 or value == 0 else short(value, 2)


def per_second(value: float) -> str:
    return f"{number(value)}/s"


def percent(share: float) -> str:
    """Return a share in whole percents; one above 0 and below 1 % is "under 1 %"."""
    if 0 < share < 0.01:
        return "under 1 %"
    return f"{share * 100:.0f} %"


def up_to(share: float) -> str:
    """Write a share as the largest of several: "up to 3 %", "under 1 %", "0 %"."""
    return percent(share) if share < 0.01 else f"up to {percent(share)}"


def factor(ratio: float) -> str:
    """Write a ratio: "2.1×", "21×"; near 1 with enough digits to show a difference, "1.03×"."""
    if 0.9 <= ratio < 1.1:
        return f"{ratio:.2f}×"
    return f"{short(ratio, 2)}×" if ratio < 9.95 else f"{ratio:,.0f}×"


def listed(names: Sequence[str]) -> str:
    """List names: "a", "a and b", "a, b and c"."""
    return humanize.natural_list(list(names)).replace(", and ", " and ")


def either(names: Sequence[str]) -> str:
    """List alternatives: "a", "a or b", "a, b or c"."""
    return " or ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def quoted(names: Sequence[str]) -> str:
    """List names in quotes, "“a” and “b”": names as their user wrote them."""
    return listed([f"“{name}”" for name in names])


def users(count: int) -> str:
    return f"{count} user{'s' * (count != 1)}"


def shorten(text: str, most: int = 60) -> str:
    """Write at most so many characters of a text, with an ellipsis where the others were."""
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"


WRITTEN_WITH_HYPHENS = {
    "background_scan", "broker_volume", "customer_position", "data_maintenance", "delete_message", "deliver_message",
    "list_folder", "market_feed", "market_watch", "move_message", "read_message", "security_detail", "trade_cleanup",
    "trade_lookup", "trade_order", "trade_result", "trade_status", "trade_update", "update_message",
}  # fmt: skip
"""The transactions of Stallmark's own workloads whose names are of several words."""


def display_name(transaction: str) -> str:
    """Write a transaction type as people write it: "trade_result" is Trade-Result; one of a user's own stays."""
    if transaction not in WRITTEN_WITH_HYPHENS:
        return transaction
    return "-".join(part.capitalize() for part in transaction.split("_"))


def plural(transaction: str) -> str:
    name = display_name(transaction)
    return f"{name}es" if name.endswith("s") else f"{name}s"


def signed(share: float | None) -> str:
    """Write a change: "+3.1 %", "−18 %", "+1,442 %"; a minus sign, not a hyphen, and none if it is written as zero."""
    if share is None:
        return NONE
    size_percent = abs(share) * 100
    text = f"{size_percent:.1f}" if size_percent < 9.95 else f"{size_percent:,.0f}"
    sign = "" if text == "0.0" else "−" if share < 0 else "+"
    return f"{sign}{text}{NBSP}%"


def coefficient(value: float) -> str:
    """Write a correlation: "+0.62", "−0.05"."""
    return f"{value:+.2f}".replace("-", "−")


def change_text(share: float) -> str:
    """Write a change as a verb: "rose by 18 %", "fell by 3.1 %"."""
    return f"{'fell' if share < 0 else 'rose'} by {signed(abs(share)).removeprefix('+')}"


def short(value: float, digits: int = 3) -> str:
    """Write `digits` significant digits, without zeros after the point: "1.5", "0.02", "1,500"."""
    return _without_zeros(_significant(value, digits))


def exact(value: float) -> str:
    """Write a number as someone chose it, with every digit: "20", "0.5", "1,000,000"."""
    return _without_zeros(f"{value:,.6f}")


def _significant(value: float, digits: int) -> str:
    """Write `digits` significant digits, and every digit before the point: never an exponent."""
    # Rounded before the decimals are counted: 9.996 is 10.0 with three digits, and not 10.00.
    value = float(f"{value:.{digits}g}") if abs(value) < 10**digits else value
    decimals = 0 if value == 0 or abs(value) >= 10 ** (digits - 1) else digits - 1 - math.floor(math.log10(abs(value)))
    return f"{value:,.{decimals}f}".replace("-", "−")


def _without_zeros(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text


class Shown(NamedTuple):
    """The column of a field: its title, how a value is written, and the title above it and its neighbours. Columns of
    high `importance` leave a narrow terminal first; 0 never leaves."""

    title: str
    write: Callable[[Any], str] = number
    group: str = ""
    is_word: bool = False
    importance: int = 0


def words(title: str, write: Callable[[Any], str] = str, group: str = "") -> Shown:
    return Shown(title, write, group, is_word=True)


def in_lower_case(name: str | None) -> str:
    """Write a name as the server has it, in capitals and underscores, as words."""
    return (name or NONE).replace("_", " ").lower()


@cache
def shown_fields(row: type) -> list[tuple[str, Shown]]:
    """Return the fields that are columns, in the order of the class."""
    hints = get_type_hints(row, include_extras=True)
    marks = ((name, mark) for name, hint in hints.items() for mark in getattr(hint, "__metadata__", ()))
    return [(name, mark) for name, mark in marks if isinstance(mark, Shown)]
