"""The tables of a profile's report."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import numpy as np

from stallmark import format
from stallmark.analysis.profile.rates import HOUR_S, Measure, WaitTotal
from stallmark.analysis.profile.summary import PERCENTILES, ProfileSummary
from stallmark.report.document import Heat
from stallmark.report.table import Rows, Table, number, numbers, word
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
    return Rows(list(found.rates.counted)).table(
        word("minutes", lambda measure: MEASURES[measure]),
        number("mean", lambda measure: value_of(measure, found.means[measure])),
        numbers(
            PERCENTILES,
            str,
            lambda measure, name: value_of(measure, found.percentiles[measure][name]),
            {"p50": 2, "p90": 1, "p99": 3},
        ),
    )


def windows(found: ProfileSummary) -> Table:
    """Return the busiest windows, busiest first."""
    shown = [measure for measure in WINDOW_MEASURES if measure in found.rates.counted]
    return Rows(found.windows).table(
        word(f"from, {format.zone()}", lambda window: format.minute(window.begin)),
        numbers(
            shown,
            MEASURES.__getitem__,
            lambda window, measure: value_of(measure, window.values.get(measure)),
            {measure: place for place, measure in enumerate(shown, 1) if measure not in _BRIEF},
        ),
    )


def peaks(found: ProfileSummary) -> Table:
    """Return the busiest window by each measure of what storage is asked for."""
    busiest = found.windows[0].values if found.windows else {}
    return Rows(list(found.peaks.items())).table(
        word("measure", lambda peak: MEASURES[peak[0]]),
        number("highest", lambda peak: value_of(peak[0], peak[1].values.get(peak[0]))),
        word(f"from, {format.zone()}", lambda peak: format.minute(peak[1].begin)),
        number("mean", lambda peak: value_of(peak[0], found.means[peak[0]]), importance=2),
        number("with most I/Os", lambda peak: value_of(peak[0], busiest.get(peak[0])), importance=1),
        number("I/Os per s then", lambda peak: value_of(Measure.IOS, peak[1].values.get(Measure.IOS)), importance=3),
    )


def classes(found: ProfileSummary) -> Table:
    """Return the I/O of every class of file: rates, share of reads, sizes and times."""
    return Rows(found.classes).table(
        word("files", lambda files: str(files.file_class)),
        number("reads/s", lambda files: files.reads_per_s),
        number("writes/s", lambda files: files.writes_per_s),
        number("reads", lambda files: files.read_share, format.share),
        number("KiB/read", lambda files: files.read_kib, importance=1),
        number("KiB/write", lambda files: files.write_kib, importance=2),
        number("ms/read", lambda files: files.read_ms),
        number("ms/write", lambda files: files.write_ms),
        number("size", lambda files: files.size_bytes, format.size, importance=3),
        number("growth", lambda files: files.grown_bytes, _signed_size, importance=4),
    )


def waits(shown: Sequence[WaitTotal]) -> Table:
    """Return waits by class, or the longest by type."""
    return Rows(shown[:_TYPES]).table(
        word("wait", lambda wait: waited_for(wait.name) if wait.name == wait.wait_class else wait.name),
        number("share", lambda wait: wait.share, format.share),
        number("waiting", lambda wait: wait.waiting),
        number("ms each", lambda wait: wait.mean_ms, importance=1),
    )


def unseen(found: ProfileSummary) -> Table:
    """Return the times that were not seen, and restarts."""
    return Rows(found.unseen).table(
        word(f"from, {format.zone()}", lambda gap: format.minute(gap.begin)),
        number("for", lambda gap: format.duration(gap.seconds)),
        word("restart", lambda gap: "yes" if gap.restart else "no"),
        word("reason", lambda gap: gap.reason or format.NONE),
    )


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


def _signed_size(value: float | None) -> str:
    if value is None:
        return format.NONE
    return f"{'+' if value >= 0 else '−'}{format.size(abs(value))}"


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
