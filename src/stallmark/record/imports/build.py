"""Make the folder of a profile from files of other tools. The spans of all files are put in the order of time: no two
overlap, each time counts once, and gaps are noted."""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import stallmark
from stallmark.errors import StallmarkError
from stallmark.format import listed
from stallmark.record.formats.recognise import detect_format, open_recording
from stallmark.record.formats.sysstat import AS_SADF, AS_TEXT
from stallmark.record.imports import open_csv, perfmon, prometheus, sysstat
from stallmark.record.imports.devices import ALL_DISKS, NUMBERED
from stallmark.record.imports.recording import COUNTS, Recording, Wanted, some_names
from stallmark.record.manifest.course import moment_at
from stallmark.record.profile.interval_table import IO, STATES, Intervals, is_known, write_imported
from stallmark.record.profile.manifest import GAP, Gap, ProfiledServer, ProfileManifest, Session, Source

_US = 1e6
_AS = {"iostat": f", as of {AS_TEXT}", "sar": f", as of {AS_SADF}"}
_LONG_S = 0.5  # minimum time between two spans that counts as a gap


@dataclass(frozen=True)
class Timeline:
    """The intervals of an import, their usual length, and the gaps between them."""

    intervals: Intervals
    interval_s: float
    gaps: tuple[Gap, ...]
    notes: list[str]


def timeline_of(recording: Recording, wanted: Wanted, *, covered: bool = True) -> Timeline:
    """Put the spans of all files in the order of time. A span that overlaps another is omitted; of two, the shorter one
    counts.

    A span much longer than the others counts for all of its time if `covered`: the tool has no value for a time without
    recording.
    """
    names = dict.fromkeys(name for rows in recording.rows for name in rows.columns)
    # In whole µs, so that the same time in two files is equal.
    start = np.round(np.concatenate([rows.start for rows in recording.rows]) * _US)
    end = np.round(np.concatenate([rows.end for rows in recording.rows]) * _US)
    columns = {
        name: np.concatenate([rows.columns.get(name, np.full(len(rows.end), np.nan)) for rows in recording.rows])
        for name in names
    }
    order = np.lexsort((end, start))
    start, end = start[order], end[order]
    first = np.ones(len(start), dtype=bool)
    first[1:] = (np.diff(start) != 0) | (np.diff(end) != 0)
    columns = {name: _first_known(values[order], first) for name, values in columns.items()}
    start, end = start[first] / _US, end[first] / _US
    usual_s = float(np.median(end - start)) if len(start) else 0.0
    late = end - start > GAP * usual_s
    # Spans of the usual length come first: they win over long ones that overlap them.
    kept = _without_overlaps(start, end, np.argsort(late, kind="stable")[: None if covered else int((~late).sum())])
    notes = []
    left_out = {
        "of a time that was there already": int((~kept & (~late | covered)).sum()),
        "after a time in which nothing was recorded": int((~kept & late & (not covered)).sum()),
    }
    for which, count in left_out.items():
        if count:
            notes.append(f"{count} sample{'s' * (count > 1)} {which} {'is' if count == 1 else 'are'} left out.")
    start, end = start[kept], end[kept]
    columns = sysstat.assign_all_disks({name: values[kept] for name, values in columns.items()}, recording, wanted)
    return Timeline(Intervals(start, end, columns), round(usual_s, 3), _gaps(start, end, recording), notes)


def _first_known(values: np.ndarray, first: np.ndarray) -> np.ndarray:
    """Return the first known value of each group of rows; each group begins with a `first` row."""
    known = np.flatnonzero(np.isfinite(values))
    groups, places = np.unique((np.cumsum(first) - 1)[known], return_index=True)
    first_values = np.full(int(first.sum()), np.nan)
    first_values[groups] = values[known[places]]
    return first_values


def _without_overlaps(start: np.ndarray, end: np.ndarray, candidates: np.ndarray) -> np.ndarray:
    """Return a mask of the spans to keep: each candidate in turn that overlaps none before it."""
    kept, starts, ends = np.zeros(len(start), dtype=bool), list[float](), list[float]()
    for place in candidates.tolist():
        after = bisect_right(starts, start[place])
        if (after == 0 or ends[after - 1] <= start[place]) and (after == len(starts) or end[place] <= starts[after]):
            starts.insert(after, start[place])
            ends.insert(after, end[place])
            kept[place] = True
    return kept


def _gaps(start: np.ndarray, end: np.ndarray, recording: Recording) -> tuple[Gap, ...]:
    """Return the times between the spans."""
    between = [pair for pair in zip(end[:-1].tolist(), start[1:].tolist(), strict=True) if pair[1] - pair[0] > _LONG_S]
    return tuple(
        Gap(started=moment_at(begin), ended=moment_at(until), reason=_reason(begin, until, recording))
        for begin, until in between
    )


def _reason(begin: float, until: float, recording: Recording) -> str:
    if any(begin <= restart_s <= until for restart_s in recording.restarts):
        return "the machine was restarted"
    if any(begin <= set_s <= until for set_s in recording.clock_set):
        return "the clock was set"
    return "no samples"


_READ: dict[Source, Callable[[Any, Recording, Wanted], None]] = {
    "perfmon": perfmon.read, "iostat": sysstat.read, "sar": sysstat.read, "prometheus": prometheus.read,
    "csv": open_csv.read,
}  # fmt: skip
"""The functions that add a file, which take its reader if `open_recording` has one, or else its path."""


def import_profile(files: Sequence[Path], folder: Path, wanted: Wanted, *, anonymous: bool = False) -> ProfileManifest:
    """Write a new folder with the profile in the files, which are of one tool and one machine.

    Raise StallmarkError before anything is written.
    """
    if folder.exists():
        raise StallmarkError(f"{folder} exists already: an import makes a new folder. Name another with --out.")
    recording = Recording()
    source: Source | None = None
    for path in files:
        try:
            format = detect_format(path, of_profile=True)
            if source not in (None, format):
                raise StallmarkError(f"{path} is of {format}, the files before it of {source}: import each alone.")
            source = format
            # Cleared, so that the host of this file alone is compared with the earlier ones.
            host, recording.host = recording.host, None
            _READ[format](open_recording(path, format, wanted.schedule) or path, recording, wanted)
        except OSError as error:
            raise StallmarkError(f"{path} cannot be read ({error.strerror or error}).") from None
        if host and recording.host and host.lower() != recording.host.lower():
            raise StallmarkError(f"{path} is of {recording.host}, the files before it of {host}: import each alone.")
        recording.host = recording.host or host
    if source is None:
        raise StallmarkError("No file to import: name one with --from.")
    if wanted.schedule and len(files) > 1:
        raise StallmarkError("--start is the time of one file's first report: import each file alone.")
    _refuse_unknown_devices(recording, wanted)
    timeline = timeline_of(recording, wanted, covered=source != "csv")
    tables = timeline.intervals.tables()
    if not any(table.num_rows for table in tables.values()):
        reasons = " ".join([*(f"{reason}." for reason in recording.missing.values()), *recording.notes])
        needed = f"Two consecutive samples are needed{_AS.get(source, '')}."
        raise StallmarkError(
            f"{', '.join(str(path) for path in files)}: no interval has a value that a profile knows. "
            f"{reasons if reasons and len(timeline.intervals.start) else needed}"
        )
    manifest = _manifest(files, source, recording, timeline, anonymous)
    write_imported(folder, manifest, tables)
    return manifest


def _refuse_unknown_devices(recording: Recording, wanted: Wanted) -> None:
    for name in wanted.classes:
        if name not in recording.mapped:
            present = recording.devices - {ALL_DISKS}
            examples = some_names(present)
            # sysstat without -p has numbers in place of names.
            numbers = ": name it by its numbers, or record with -p" if any(map(NUMBERED.match, present)) else ""
            raise StallmarkError(
                f"{name} is not a device{f': the files have {examples}' if present else ' of the files'}{numbers}."
            )


def _manifest(
    files: Sequence[Path], source: Source, recording: Recording, timeline: Timeline, anonymous: bool
) -> ProfileManifest:
    intervals = timeline.intervals
    targets = intervals.known_values("server.memory_target_bytes")
    begin, end = moment_at(intervals.start[0]), moment_at(intervals.end[-1])
    notes = recording.notes + timeline.notes
    if anonymous:
        for place, path in enumerate(files, 1):
            # Notes were written with the names of files, which may name the machine.
            notes = [note.replace(path.name, f"file {place}") for note in notes]
    server = ProfiledServer(
        since=begin,
        engine=recording.engine,
        name=None if anonymous else recording.host,
        cores=recording.cores,
        pool_bytes=int(targets[-1]) or None if len(targets) else None,
    )
    return ProfileManifest(
        source=source,
        stallmark=stallmark.__version__,
        started=begin,
        interval_s=timeline.interval_s,
        anonymous=anonymous,
        servers=(server,),
        sessions=(Session(started=begin, ended=end, end="imported"),),
        gaps=timeline.gaps,
        missing=_missing(recording, intervals, source),
        files=tuple(f"file {place}" if anonymous else path.name for place, path in enumerate(files, 1)),
        notes=tuple(notes),
    )


_NO_VALUES = "the files have no values of"


def _missing(recording: Recording, intervals: Intervals, source: Source) -> dict[str, str]:
    """Return the values that no file has, by table, with the reason."""
    missing = dict(recording.missing)
    known = {name for name, values in intervals.columns.items() if is_known(values)}
    of_files = {name.partition(".")[2] for name in known if not name.startswith("server.")}
    if not of_files:
        missing["disk counters"] = "the files have no I/O of disks"
    elif lacking := [name for name in IO if name not in of_files]:
        reason = "sar counts a device's reads and writes together, without" if source == "sar" else _NO_VALUES
        missing["disk counters"] = f"{reason} {listed(lacking)}"
    of_server = {name.partition(".")[2] for name in known if name.startswith("server.")}
    if not of_server - {"cpu_s"}:
        missing["database counters"] = "the files have no counters of the database server"
    elif lacking := [name for name in (*COUNTS, *STATES) if name not in of_server and f"server.{name}" not in missing]:
        missing["database counters"] = f"{_NO_VALUES} {listed(lacking)}"
    missing["waits"] = f"{'the file' if source == 'csv' else source} does not record what the server waits for"
    return missing
