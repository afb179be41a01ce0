"""The report of a production server's profile: its tables, its charts, and the document of both."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from stallmark import format
from stallmark.analysis.finding import Severity
from stallmark.analysis.profile import PERCENTILES, ProfileSummary, UnseenTime, summarise_profile
from stallmark.analysis.profile_rates import HOUR_S, MINUTE_S, ClassTotals, Measure, WaitTotal, Window
from stallmark.report import sections
from stallmark.report.document import (
    Block,
    Bullets,
    Codes,
    Document,
    Facts,
    Fold,
    Heat,
    Pairs,
    Section,
    Shown,
    Words,
    bullets,
    table_blocks,
)
from stallmark.report.figures import (
    COLOURS,
    Figure,
    KeyItem,
    bucket_width,
    chart,
    coarse,
    from_zero,
    line_with_extremes,
    note,
)
from stallmark.report.kinds import RecordKind
from stallmark.report.renderers import in_json
from stallmark.report.table import Rows, Table, fields, numbers, word
from stallmark.report.table import number as as_number
from stallmark.report.text import profile as words
from stallmark.report.text import sentence
from stallmark.report.text.profile import MEASURES, waited_for

# The tables of a profile's report.

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


def percentiles_table(profile: ProfileSummary) -> Table:
    """Return the percentiles of the minutes of every measure, with its mean."""
    return Rows(list(profile.rates.measures)).table(
        word(words.slots(profile.manifest.interval_s), lambda measure: MEASURES[measure]),
        as_number("mean", lambda measure: value_of(measure, profile.means[measure])),
        numbers(
            PERCENTILES,
            str,
            lambda measure, name: value_of(measure, profile.percentiles[measure][name]),
            {"p50": 2, "p90": 1, "p99": 3},
        ),
    )


def windows_table(profile: ProfileSummary) -> Table:
    """Return the busiest windows, busiest first."""
    shown = [measure for measure in WINDOW_MEASURES if measure in profile.rates.measures]
    return Rows(profile.windows).table(
        word(f"from, {format.zone()}", lambda window: format.minute(window.begin)),
        numbers(
            shown,
            MEASURES.__getitem__,
            lambda window, measure: value_of(measure, window.values.get(measure)),
            {measure: place for place, measure in enumerate(shown, 1) if measure not in _BRIEF},
        ),
    )


def peaks_table(profile: ProfileSummary) -> Table:
    """Return the busiest window by each measure of what storage is asked for."""
    busiest = profile.windows[0].values if profile.windows else {}
    return Rows(list(profile.peaks.items())).table(
        word("measure", lambda peak: MEASURES[peak[0]]),
        as_number("highest", lambda peak: value_of(peak[0], peak[1].values.get(peak[0]))),
        word(f"from, {format.zone()}", lambda peak: format.minute(peak[1].begin)),
        as_number("mean", lambda peak: value_of(peak[0], profile.means[peak[0]]), importance=2),
        as_number("in the busiest window", lambda peak: value_of(peak[0], busiest.get(peak[0])), importance=1),
        as_number(
            "I/Os per s at its peak", lambda peak: value_of(Measure.IOS, peak[1].values.get(Measure.IOS)), importance=3
        ),
    )


def classes_table(profile: ProfileSummary) -> Table:
    """Return the I/O of every class of file: rates, share of reads, sizes and times."""
    return Rows(profile.classes).table(fields(ClassTotals))


def waits_table(shown: Sequence[WaitTotal]) -> Table:
    """Return waits by class, or the longest by type."""
    return Rows(shown[:_TYPES]).table(
        word("wait", lambda wait: waited_for(wait.name) if wait.name == wait.wait_class else wait.name),
        fields(WaitTotal),
    )


def unseen_table(profile: ProfileSummary) -> Table:
    """Return the times that were not observed, and restarts."""
    return Rows(profile.unseen).table(
        word(f"from, {format.zone()}", lambda gap: format.minute(gap.begin)),
        as_number("for", lambda gap: format.duration(gap.seconds)),
        word("restart", lambda gap: "yes" if gap.restart else "no"),
        word("reason", lambda gap: gap.reason or format.NONE),
    )


def facts_table(profile: ProfileSummary) -> list[tuple[str, str]]:
    """Return the known facts about the server, the profile and its sessions."""
    manifest = profile.manifest
    server = manifest.server
    pairs = [
        ("server", server.name or ("omitted" if manifest.anonymous else format.NONE)),
        ("product", f"{server.product} {server.version}".strip() or format.NONE),
        ("cores", format.count(server.cores)),
        ("memory", format.size(server.memory_bytes)),
        ("memory target", format.size(server.pool_bytes)),
        ("source", manifest.source),
        ("interval", format.seconds(manifest.interval_s)),
        (
            f"sessions ({format.zone()})",
            ", ".join(f"{format.minute(session.started)} ({session.end})" for session in manifest.sessions),
        ),
        ("Stallmark", manifest.stallmark or format.NONE),
    ]
    return [(name, value) for name, value in pairs if value != format.NONE]


def heat_table(profile: ProfileSummary) -> Heat:
    """Return the heat maps of a profile."""
    ahead_s = _ahead_of_utc_s(profile.rates.middle)
    hours, changes = profile.rates.slots(HOUR_S, ahead_s), np.diff(ahead_s)
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
    # The offset cannot change within a quarter, so it is looked up once for all moments in one.
    quarters, place = np.unique(np.floor(moments / QUARTER_S), return_inverse=True)
    offsets = (format.local_time(quarter * QUARTER_S).utcoffset() for quarter in quarters)
    return np.array([offset.total_seconds() if offset else 0.0 for offset in offsets])[place]


def _days(measure: Measure, begin: np.ndarray, values: np.ndarray) -> list[tuple[str, list[tuple[str, float]]]]:
    top = float(np.nanmax(values))
    days: dict[str, list[tuple[str, float]]] = {}
    for moment, value in zip(begin, values, strict=True):
        # UTC by name only: the number has the offset of the zone in it already.
        hour = datetime.fromtimestamp(float(moment), UTC)
        cells = days.setdefault(f"{hour:%a %d %b}", [("", 0.0)] * 24)
        if np.isfinite(value):
            cells[hour.hour] = value_of(measure, value), float(value) / top if top > 0 else 0.0
    return list(days.items())


def hours_in_json(profile: ProfileSummary) -> list[Mapping[str, object]]:
    """Return every hour with its measures."""
    return [
        {
            "begin": datetime.fromtimestamp(float(begin), UTC).isoformat(),
            "seen_s": float(profile.hours.seen_s[place]),
            **{
                str(measure): float(values[place]) if np.isfinite(values[place]) else None
                for measure, values in profile.hours.values.items()
            },
        }
        for place, begin in enumerate(profile.hours.begin)
    ]


# The charts of a profile over time.

_CHARTS: tuple[tuple[str, str, str, tuple[Measure, ...]], ...] = (
    ("ios", "I/Os", "per s", (Measure.READS, Measure.WRITES)),
    ("bytes", "Bytes", "MB/s", (Measure.READ_MB, Measure.WRITE_MB, Measure.LOG_MB)),
    ("times", "Time of an I/O", "ms", (Measure.READ_MS, Measure.WRITE_MS, Measure.LOG_MS)),
    ("work", "Work", "per s", (Measure.TRANSACTIONS, Measure.BATCHES)),
    ("cpu", "CPU", "% of the cores", (Measure.CPU,)),
)
_HEIGHT = 260


def figures(profile: ProfileSummary) -> list[Figure]:
    """Return a chart of every group of measures of which one is known."""
    made = [_figure(profile, *spec) for spec in _CHARTS]
    return [figure for figure in made if figure]


def _figure(profile: ProfileSummary, name: str, title: str, unit: str, measures: tuple[Measure, ...]) -> Figure | None:
    begin, values, interval_s = profile.minutes.begin, profile.minutes.values, profile.manifest.interval_s
    shown = [measure for measure in measures if measure in values]
    if not shown:
        return None
    # On a grid of all minutes a gap breaks the line. A longer sample is drawn in every minute that it covers.
    grid = np.arange(begin[0], begin[-1] + MINUTE_S, MINUTE_S)
    after = np.searchsorted(begin, grid)
    before = np.maximum(after - 1, 0)
    place = np.where(grid - begin[before] < begin[after] - grid, before, after)
    covered_s = np.maximum(profile.minutes.seen_s, MINUTE_S) if interval_s > MINUTE_S else np.full(len(begin), MINUTE_S)
    seen = np.abs(grid - begin[place]) < (covered_s[place] + MINUTE_S) / 2
    width = bucket_width(len(grid))
    hours = (grid - grid[0]) / 3600
    made = chart(_HEIGHT, xaxis={"title": {"text": f"hours since {format.moment(float(grid[0]))}"}})
    top = 0.0
    lines = []
    for number, measure in enumerate(shown):
        on_grid = np.where(seen, values[measure][place] * (100 if measure is Measure.CPU else 1), np.nan)
        lines.append(on_grid)
        top = max(top, float(np.nanmax(on_grid)))
        style = {"color": COLOURS[number], "width": 1.5}
        made.add(*line_with_extremes(MEASURES[measure], hours, on_grid, width, line=style))
    made.change(yaxis={"range": from_zero(top)})
    note(made, unit, yshift=5)
    header = ["hours", *(MEASURES[measure] for measure in shown)]
    rows = [[format.number(value) for value in row] for row in coarse([hours, *lines])]
    return Figure(
        id=name,
        title=title,
        unit=unit,
        emulated=False,
        summary=", ".join(f"{MEASURES[measure]}: {value_of(measure, profile.means[measure])}" for measure in shown),
        method=words.method(profile.manifest.source, interval_s),
        chart=made,
        header=header,
        rows=rows,
        key=[KeyItem(MEASURES[measure], COLOURS[number], "solid") for number, measure in enumerate(shown)],
        wide=True,
        columns=[unit],
    )


# The report of a server's profile: its sections, the parts that a terminal shows, and its JSON.


def profile_document(profile: ProfileSummary) -> Document:
    server, source = profile.manifest.server, profile.manifest.source
    title = f"Profile of {server.name or server.product or 'a server'}"
    product = f"{server.product} {server.version}".strip()
    # Notes belong to the environment; only cautions that weaken a figure lead the page.
    serious = [caution for caution in profile.cautions if caution.severity is not Severity.INFO]
    notes = [
        *(sentence(caution) for caution in profile.cautions if caution.severity is Severity.INFO),
        *profile.manifest.notes,
    ]
    seen = f"{format.duration(profile.seen_s)} observed from {format.moment(profile.begin)}"
    return Document(
        title=title,
        kind="profile",
        question=words.QUESTION,
        headline=[
            product or source,
            f"{format.duration(profile.end - profile.begin)} from {format.moment(profile.begin)}",
            f"{format.share(profile.seen_s / (profile.end - profile.begin))} observed",
        ],
        answer=sentence(profile.findings[0]),
        lead=[heat_table(profile)],
        cautions=serious,
        sections=[sections.findings_section(profile.findings), *_sections(profile), _environment(profile, notes)],
        brief=[
            [Words(title, "main"), Words(", ".join(filter(None, [product, seen])), "quiet")],
            bullets([*profile.findings, *profile.memory]),
            *([Shown(table)] for table in _brief_tables(profile) if table.rows),
            bullets(serious, "apart"),
            [Bullets(notes, "quiet")] if notes else [],
        ],
    )


def _sections(profile: ProfileSummary) -> Iterator[Section]:
    def section(id: str, title: str, lead: str, *blocks: Block) -> Section:
        return Section(id, title, [Words(lead, "lead"), *blocks])

    interval_s = profile.manifest.interval_s
    yield section("over-time", "Over time", words.minute_means(interval_s), *figures(profile))
    for id, title, lead, make in (
        ("minutes", f"Percentiles of {words.slots(interval_s)}", words.percentiles(interval_s), percentiles_table),
        ("peaks", "Peaks by measure", words.PEAKS, peaks_table),
        ("windows", "The busiest windows", words.WINDOWS, windows_table),
        ("io", "I/O by class of file", words.CLASSES, classes_table),
    ):
        if (table := make(profile)).rows:
            yield section(id, title, lead, Shown(table, title))
    if profile.wait_classes:
        types = Fold("By type", table_blocks(waits_table(profile.wait_types), "Waits by type"))
        yield section("waits", "Waits", words.WAITS, Shown(waits_table(profile.wait_classes), "Waits by class"), types)
    if profile.memory:
        yield section("memory", "More memory", words.MEMORY, *bullets(profile.memory))
    if profile.unseen:
        yield section("unseen", "Gaps and restarts", words.UNSEEN, Shown(unseen_table(profile), "Gaps and restarts"))


def _environment(profile: ProfileSummary, notes: list[str]) -> Section:
    method = words.method(profile.manifest.source, profile.manifest.interval_s)
    facts = Facts([Pairs(facts_table(profile), "Profile")])
    footnotes = [Words(text, "footnote") for text in [*notes, method]]
    record = Codes("Record", [profile.folder.name])
    return Section("environment", "Environment", [facts, *footnotes, record], "server and profile")


def _brief_tables(profile: ProfileSummary) -> Iterator[Table]:
    yield percentiles_table(profile)
    yield classes_table(profile)
    if profile.windows:
        yield peaks_table(profile)
        yield windows_table(profile)
    if profile.wait_classes:
        yield waits_table(profile.wait_classes)


def profile_in_json(profile: ProfileSummary) -> dict[str, Any]:
    """Return everything that the report shows; times in UTC, ISO 8601."""
    return {
        "kind": "profile",
        "folder": str(profile.folder),
        "manifest": in_json(profile.manifest),
        **_ends(profile),
        "seen_s": profile.seen_s,
        "means": in_json(profile.means),
        "percentiles_of_minutes": in_json(profile.percentiles),
        "hours": hours_in_json(profile),
        "busiest_windows": list(map(_part_in_json, profile.windows)),
        "peaks": {str(name): _part_in_json(window) for name, window in profile.peaks.items()},
        "files": in_json(profile.classes),
        "waits": {"classes": in_json(profile.wait_classes), "types": in_json(profile.wait_types)},
        "unseen": list(map(_part_in_json, profile.unseen)),
        "findings": in_json(profile.findings),
        "memory": in_json(profile.memory),
        "cautions": in_json(profile.cautions),
    }


PROFILE = RecordKind(summarise_profile, profile_document, profile_in_json)


def _part_in_json(part: Window | UnseenTime) -> dict[str, Any]:
    return in_json(part) | _ends(part)


def _ends(part: Window | UnseenTime | ProfileSummary) -> dict[str, str]:
    ends = {"begin": part.begin, "end": part.end}
    return {name: datetime.fromtimestamp(end, UTC).isoformat(timespec="seconds") for name, end in ends.items()}
