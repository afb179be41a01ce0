"""The tables of a profile's report."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np

from stallmark import format
from stallmark.analysis.profile.rates import HOUR_S, Measure
from stallmark.analysis.profile.summary import PERCENTILES, ProfileSummary
from stallmark.analysis.profile.totals import WaitTotal
from stallmark.report.table import Cell, Table
from stallmark.report.text import profile as words
from stallmark.report.text.profile import MEASURES, waited_for

QUARTER_S = 900
"""Clocks change at whole quarters of an hour."""
_TYPES = 12
_BRIEF = (Measure.IOS, Measure.READ_MS, Measure.LOG_MS, Measure.CPU)
WINDOW_MEASURES = (
    *(Measure.IOS, Measure.READS, Measure.WRITES, Measure.READ_MB, Measure.WRITE_MB, Measure.READ_MS),
    *(Measure.LOG_MB, Measure.LOG_MS, Measure.TRANSACTIONS, Measure.CPU),
)


def value_of(measure: Measure, value: float | None) -> str:
    """Write a value of a measure; the share of the CPU in per cent."""
    if value is None or not np.isfinite(value):
        return format.NONE
    return format.number(value * 100 if measure is Measure.CPU else value)


def percentiles(found: ProfileSummary) -> Table:
    """Return the percentiles of the minutes of every measure, with its mean."""
    rows: list[Sequence[str | Cell]] = [
        [
            MEASURES[measure],
            value_of(measure, found.means[measure]),
            *(value_of(measure, found.percentiles[measure][name]) for name in PERCENTILES),
        ]
        for measure in found.rates.counted
    ]
    return Table(["minutes", "mean", *PERCENTILES], rows, importance={2: 2, 3: 1, 5: 3})


def windows(found: ProfileSummary) -> Table:
    """Return the busiest windows, busiest first."""
    shown = [name for name in WINDOW_MEASURES if name in found.rates.counted]
    rows: list[Sequence[str | Cell]] = [
        [format.minute(one.begin), *(value_of(name, one.values.get(name)) for name in shown)] for one in found.windows
    ]
    leaves = {place: place for place, name in enumerate(shown, 1) if name not in _BRIEF}
    return Table([f"from, {format.zone()}", *(MEASURES[name] for name in shown)], rows, importance=leaves)


def peaks(found: ProfileSummary) -> Table:
    """Return the busiest window by each measure of what storage is asked for."""
    rows: list[Sequence[str | Cell]] = [
        [
            MEASURES[measure],
            value_of(measure, one.values.get(measure)),
            format.minute(one.begin),
            value_of(measure, found.means[measure]),
            value_of(measure, found.windows[0].values.get(measure)) if found.windows else format.NONE,
            value_of(Measure.IOS, one.values.get(Measure.IOS)),
        ]
        for measure, one in found.peaks.items()
    ]
    header = ["measure", "highest", f"from, {format.zone()}", "mean", "with most I/Os", "I/Os per s then"]
    return Table(header, rows, words=frozenset({0, 2}), importance={3: 2, 4: 1, 5: 3})


def classes(found: ProfileSummary) -> Table:
    """Return the I/O of every class of file: rates, share of reads, sizes and times."""
    rows: list[Sequence[str | Cell]] = [
        [
            str(one.file_class),
            format.number(one.reads_per_s),
            format.number(one.writes_per_s),
            format.share(one.read_share),
            format.number(one.read_kib),
            format.number(one.write_kib),
            format.number(one.read_ms),
            format.number(one.write_ms),
            format.NONE if one.size_bytes is None else format.size(round(one.size_bytes)),
            format.NONE if one.grown_bytes is None else _signed_size(one.grown_bytes),
        ]
        for one in found.classes
    ]
    header = ["files", "reads/s", "writes/s", "reads", "KiB/read", "KiB/write", "ms/read", "ms/write", "size", "growth"]
    return Table(header, rows, importance={9: 4, 5: 2, 4: 1, 8: 3})


def waits(shown: Sequence[WaitTotal]) -> Table:
    """Return waits by class, or the longest by type."""
    rows: list[Sequence[str | Cell]] = [
        [
            waited_for(one.name) if one.name == one.wait_class else one.name,
            format.share(one.share),
            format.number(one.waiting),
            format.number(one.mean_ms),
        ]
        for one in shown[:_TYPES]
    ]
    return Table(["wait", "share", "waiting", "ms each"], rows, importance={3: 1})


def unseen(found: ProfileSummary) -> Table:
    """Return the times that were not seen, and restarts."""
    rows: list[Sequence[str | Cell]] = [
        [
            format.minute(one.begin),
            format.duration(one.seconds),
            "yes" if one.restart else "no",
            one.reason or format.NONE,
        ]
        for one in found.unseen
    ]
    return Table([f"from, {format.zone()}", "for", "restart", "reason"], rows, words=frozenset({0, 2, 3}))


def facts(found: ProfileSummary) -> list[tuple[str, str]]:
    """Return what is known of the server, of the profile, and of its sessions."""
    manifest = found.manifest
    server = manifest.server
    pairs = [
        ("server", server.name or ("left out" if manifest.anonymous else format.NONE)),
        ("product", f"{server.product} {server.version}".strip() or format.NONE),
        ("cores", format.count(server.cores)),
        ("memory", format.size(server.memory_bytes)),
        ("memory it aims at", format.size(server.pool_bytes)),
        ("source", manifest.source),
        ("interval", format.seconds(manifest.interval_s)),
        (
            f"sessions ({format.zone()})",
            ", ".join(f"{format.minute(one.started)} ({one.end})" for one in manifest.sessions),
        ),
        ("Stallmark", manifest.stallmark or format.NONE),
    ]
    return [(name, value) for name, value in pairs if value != format.NONE]


@dataclass(frozen=True)
class Heat:
    """The heat maps in the zone that times are shown in. `maps`: of every measure its days, and of every day 24 hours
    with their text and their weight from 0 to 1; an hour that was not seen has no text."""

    reading: str
    zone: str
    maps: list[tuple[str, list[tuple[str, list[tuple[str, float]]]]]]


def heat(found: ProfileSummary) -> Heat:
    """Return the heat maps of a profile."""
    ahead_s = _ahead_of_utc_s(found.rates.middle)
    hours, changes = found.rates.by(HOUR_S, ahead_s), np.diff(ahead_s)
    return Heat(
        words.heat(put_forward=bool((changes >= HOUR_S).any()), put_back=bool((changes <= -HOUR_S).any())),
        format.zone(),
        [
            (MEASURES[measure], _days(measure, hours.begin, values))
            for measure, values in hours.values.items()
            if np.isfinite(values).any()
        ],
    )


def _ahead_of_utc_s(moments: np.ndarray) -> np.ndarray:
    """Return the seconds that local time is ahead of UTC at each moment."""
    quarters, place = np.unique(np.floor(moments / QUARTER_S), return_inverse=True)
    offsets = (format.local_time(quarter * QUARTER_S).utcoffset() for quarter in quarters)
    return np.array([offset.total_seconds() if offset else 0.0 for offset in offsets])[place]


def _days(measure: Measure, begin: np.ndarray, values: np.ndarray) -> list[tuple[str, list[tuple[str, float]]]]:
    top = float(np.nanmax(values))
    days: dict[str, list[tuple[str, float]]] = {}
    for moment, value in zip(begin, values, strict=True):
        hour = datetime.fromtimestamp(float(moment), UTC)  # by the clocks of the zone: their offset is in it
        cells = days.setdefault(f"{hour:%a %d %b}", [("", 0.0)] * 24)
        if np.isfinite(value):
            cells[hour.hour] = value_of(measure, value), float(value) / top if top > 0 else 0.0
    return list(days.items())


def _signed_size(value: float) -> str:
    return f"{'+' if value >= 0 else '−'}{format.size(round(abs(value)))}"


def hours_in_json(found: ProfileSummary) -> list[Mapping[str, object]]:
    """Return every hour with its measures."""
    return [
        {
            "begin": datetime.fromtimestamp(float(begin), UTC).isoformat(),
            "seen_s": float(found.hours.seen_s[place]),
            **{
                str(measure): float(values[place]) if np.isfinite(values[place]) else None
                for measure, values in found.hours.values.items()
            },
        }
        for place, begin in enumerate(found.hours.begin)
    ]
