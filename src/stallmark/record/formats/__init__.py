"""Readers of files of other tools, one module for each format.

`detect_format` recognises the format of a file, by `kinds.yaml`. A reader yields samples: the values of counters at
the file's times. `attach/` puts samples next to a run. `import_profile` makes a profile of them:

    file → samples → Readings: a row for each time, a column for each counter
         → Part: each column with its meaning, by counters.csv, and its device, database or file
         → Amounts: counts over the spans between rows → sums by class of file → Intervals: the folder

The module of each format chooses what counts. Files are read as streams: only the values that a profile uses are held
in memory. `units.yaml` has the units of counters, `sentences.yaml` the refusals and the notes on files.

`dates` converts the times to UTC. pandas, dateutil and DuckDB guess if a time is ambiguous: day before month, or an
hour that a clock change repeats or skips. Here each such time is refused, or the page reports the choice.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

import stallmark
from stallmark.errors import StallmarkError
from stallmark.format import listed
from stallmark.record.files import refuse_unwritable
from stallmark.record.formats import open_csv, perfmon, prometheus, sysstat
from stallmark.record.formats.amounts import COUNTS, Recording, Wanted, some_names
from stallmark.record.formats.dates import Schedule
from stallmark.record.formats.devices import ALL_DISKS, NUMBERED
from stallmark.record.formats.perfmon import Perfmon
from stallmark.record.formats.sample import (
    Recorded,
    count_with_noun,
    head_bytes,
    head_of,
    in_quotes,
    load_yaml,
    refusal,
)
from stallmark.record.formats.sysstat import REPORT, Iostat, Sadf
from stallmark.record.manifest.course import moment_at
from stallmark.record.profile import (
    GAP,
    IO,
    STATES,
    Gap,
    Intervals,
    ProfiledServer,
    ProfileManifest,
    Session,
    Source,
    is_known,
    write_imported,
)

Format = Literal["perfmon", "iostat", "sar", "prometheus", "csv"]


def detect_format(path: Path, *, of_profile: bool = False) -> Format:
    """Return the format of a file.

    Raise StallmarkError for one of another kind, or of a kind that makes no profile; OSError if it cannot be opened.
    """
    kinds, start, name = load_yaml("kinds"), head_bytes(path), path.name.lower().removesuffix(".gz")
    for kind in kinds["binary"] if b"\0" in start else ():
        if start.startswith(kind.get("start", "").encode("latin-1")) and name.endswith(kind.get("end", "")):
            raise _refusal(path, kind)
    head = head_of(path).lstrip("\ufeff\r\n ")
    for kind in kinds["text"]:
        if match := re.search(kind["pattern"].replace("{report}", REPORT), head, re.M):
            if "format" in kind and not (of_profile and "name" in kind):
                return kind["format"]
            raise _refusal(path, kind, **match.groupdict())
    return "csv"


def _refusal(path: Path, kind: dict[str, Any], **parts: str) -> StallmarkError:
    """Return the error of a kind; `parts` are texts of the file, for the pattern of a sed command."""
    patterns = {name: _sed_pattern(text) for name, text in parts.items()}
    remedy = kind["remedy"].format(**load_yaml("sentences")["commands"], **patterns)
    return refusal("of_kind", path, name=kind["name"], remedy=remedy)


def _sed_pattern(text: str) -> str:
    """Return a pattern of a text that begins each line.

    Its numbers may differ, and an empty line may lack the blanks behind it.
    """
    escaped = re.sub(r"[][.*^$/\\]", r"\\\g<0>", text.rstrip())
    blanks = len(text) - len(text.rstrip())
    return in_quotes(re.sub(r"\d+", "[0-9]*", escaped)) + (rf"[[:blank:]]\{{0,{blanks}\}}" if blanks else "")


def open_recording(path: Path, format: Format, schedule: Schedule | None = None) -> Recorded | None:
    """Return the reader of a file of Perfmon, iostat or sar; None for another format.

    Raise StallmarkError for a schedule of a file whose times are always known.
    """
    if format == "iostat":
        return Iostat(path, schedule)
    if schedule:
        raise refusal("own_times", path)
    return Perfmon(path) if format == "perfmon" else Sadf(path) if format == "sar" else None


# The folder of a profile, made from files of other tools. The spans of all files are put in the order of time: no two
# overlap, each time counts once, and gaps are noted.

_US = 1e6
_SAME = 1e-6  # share by which two values of one span may differ
_LONG_S = 0.5  # minimum time between two spans that counts as a gap


def _intervals(recording: Recording, wanted: Wanted) -> Intervals:
    """Put the spans of all files in the order of time. Of a span in two files, the first known value of each column
    counts; of two spans that overlap, the shorter one."""
    # In whole µs, so that the same time in two files is equal.
    spans = np.round(np.concatenate([(part.start, part.end) for part in recording.intervals], axis=1) * _US)
    (start, end), places = np.unique(spans, axis=1, return_inverse=True)
    columns: dict[str, np.ndarray] = {}
    differs = np.zeros(len(start), dtype=bool)
    for part in recording.intervals:
        own, places = np.split(places, [len(part.start)])
        for name, values in part.columns.items():
            column = columns.setdefault(name, np.full(len(start), np.nan))
            differs[own] |= np.abs(column[own] - values) > _SAME * np.abs(values)
            is_new = np.flatnonzero(np.isnan(column[own]) & np.isfinite(values))[::-1]
            column[own[is_new]] = values[is_new]
    if times := int(differs.sum()):
        recording.note("other_values", times=count_with_noun(times, "time"))
    start, end = start / _US, end / _US
    # Spans of the usual length come first: they win over long ones that overlap them.
    is_late = end - start > GAP * float(np.median(end - start)) if len(start) else np.zeros(0)
    kept = _without_overlaps(start, end, np.argsort(is_late, kind="stable"))
    if left_out := int((~kept).sum()):
        recording.note("overlaps", samples=count_with_noun(left_out, "sample"))
    columns = {name: values[kept] for name, values in columns.items()}
    start, end = start[kept], end[kept]
    return Intervals(start, end, sysstat.assign_all_disks(columns, end - start, recording, wanted))


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
    gaps = []
    for begin, until in zip(end[:-1].tolist(), start[1:].tolist(), strict=True):
        if until - begin > _LONG_S:
            reason = "no samples"
            if any(begin <= restart_s <= until for restart_s in recording.restarts):
                reason = "the machine was restarted"
            elif any(begin <= set_s <= until for set_s in recording.clock_set):
                reason = "the clock was set"
            gaps.append(Gap(started=moment_at(begin), ended=moment_at(until), reason=reason))
    return tuple(gaps)


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
        raise refusal("existing", folder)
    refuse_unwritable(folder, "name another with --out")
    if not files:
        raise refusal("no_file")
    if wanted.schedule and len(files) > 1:
        raise refusal("several_files")
    recording = Recording()
    try:
        source = _read_files(files, recording, wanted)
    except OSError as error:
        raise refusal("unopened", error.filename, reason=error.strerror or error) from None
    _refuse_unknown_devices(recording, wanted)
    intervals = _intervals(recording, wanted)
    tables = intervals.tables()
    if not any(table.num_rows for table in tables.values()):
        names = ", ".join(str(path) for path in files)
        reasons = " ".join([*(f"{reason}." for reason in recording.missing.values()), *recording.notes])
        if not len(intervals.start):
            raise refusal("few_samples", names)
        raise refusal("no_interval" if reasons else "no_column", names, reasons=reasons)
    manifest = _manifest(files, source, recording, intervals, anonymous)
    write_imported(folder, manifest, tables)
    return manifest


def _read_files(files: Sequence[Path], recording: Recording, wanted: Wanted) -> Source:
    """Read all files, and return their format."""
    source = detect_format(files[0], of_profile=True)
    for path in files:
        if (format := detect_format(path, of_profile=True)) != source:
            raise refusal("other_format", path, format=format, source=source)
        # Cleared, so that the host of this file alone is compared with the earlier ones.
        before, recording.host = recording.host, None
        _READ[format](open_recording(path, format, wanted.schedule) or path, recording, wanted)
        if before and recording.host and before.lower() != recording.host.lower():
            raise refusal("other_host", path, host=recording.host, before=before)
        recording.host = recording.host or before
    return source


def _refuse_unknown_devices(recording: Recording, wanted: Wanted) -> None:
    present = recording.devices - {ALL_DISKS}
    # sysstat without -p has numbers in place of names.
    kind = "no_numbered_device" if any(map(NUMBERED.match, present)) else "no_device"
    for name in wanted.classes.keys() - recording.mapped:
        raise refusal(kind, device=name, names=some_names(present) or "none")


def _manifest(
    files: Sequence[Path], source: Source, recording: Recording, intervals: Intervals, anonymous: bool
) -> ProfileManifest:
    targets = intervals.known_values("server.memory_target_bytes")
    begin, end = moment_at(intervals.start[0]), moment_at(intervals.end[-1])
    names, notes = [path.name for path in files], recording.notes
    if anonymous:
        for place, name in enumerate(names):
            names[place] = f"file {place + 1}"
            # Notes were written with the names of files, which may name the machine.
            notes = [note.replace(name, names[place]) for note in notes]
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
        interval_s=round(float(np.median(intervals.seconds)), 3),
        anonymous=anonymous,
        servers=(server,),
        sessions=(Session(started=begin, ended=end, end="imported"),),
        gaps=_gaps(intervals.start, intervals.end, recording),
        missing=_missing(recording, intervals, source),
        files=tuple(names),
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
