"""Make the folder of a profile from files that other tools recorded."""

from collections.abc import Callable, Sequence
from pathlib import Path

import stallmark
from stallmark.errors import StallmarkError
from stallmark.record.formats.open import detect_format
from stallmark.record.imports import open_csv, perfmon, prometheus, sysstat
from stallmark.record.imports.devices import ALL_DISKS, NUMBERED
from stallmark.record.imports.recording import COUNTS, Recording, Wanted
from stallmark.record.imports.timeline import Timeline, timeline_of
from stallmark.record.manifest.part import moment_at
from stallmark.record.profile.intervals import FILE_IO, STATES, Intervals, is_known, write_imported
from stallmark.record.profile.manifest import Gap, ProfiledServer, ProfileManifest, Session, Source

_READ: dict[Source, Callable[[Path, Recording, Wanted], None]] = {
    "perfmon": perfmon.read,
    "iostat": sysstat.read,
    "sar": sysstat.read,
    "prometheus": prometheus.read,
    "csv": open_csv.read,
}


def import_profile(files: Sequence[Path], folder: Path, wanted: Wanted, *, anonymous: bool = False) -> ProfileManifest:
    """Write a new folder with the profile that the files hold; they are of one tool and one machine.

    Raise StallmarkError before anything is written.
    """
    if folder.exists():
        raise StallmarkError(f"{folder} is there already: an import makes a new folder. Name another with --out.")
    recording = Recording()
    source: Source | None = None
    for path in files:
        try:
            format = detect_format(path)
            if source not in (None, format):
                raise StallmarkError(f"{path} is of {format}, the files before it of {source}: import each alone.")
            source = format
            host, recording.host = recording.host, None
            _READ[format](path, recording, wanted)
        except OSError as error:
            raise StallmarkError(f"{path} cannot be read ({error.strerror or error}).") from None
        if host and recording.host and host.lower() != recording.host.lower():
            raise StallmarkError(f"{path} is of {recording.host}, the files before it of {host}: import each alone.")
        recording.host = recording.host or host
    if source is None:
        raise StallmarkError("There is no file to import: name one with --from.")
    _refuse_unknown_devices(recording, wanted)
    sysstat.assign_all_disks(recording, wanted)
    timeline = timeline_of(recording)
    if not len(timeline.intervals.start):
        raise StallmarkError(
            f"{', '.join(str(path) for path in files)}: there is no interval with a value that a profile knows. Two "
            "samples after another are needed."
        )
    manifest = _manifest(files, source, recording, timeline, anonymous)
    write_imported(folder, manifest, timeline.intervals.tables())
    return manifest


def _refuse_unknown_devices(recording: Recording, wanted: Wanted) -> None:
    for name in wanted.classes:
        if name not in recording.mapped:
            there = sorted(recording.devices - {ALL_DISKS})
            some = ", ".join(there[:8]) + (", …" if len(there) > 8 else "")
            # sysstat without -p has numbers in place of names.
            numbers = ": name it by its numbers, or record with -p" if any(map(NUMBERED.match, there)) else ""
            raise StallmarkError(
                f"There is no device {name}{f': there is {some}' if there else ' in what was read'}{numbers}."
            )


def _manifest(
    files: Sequence[Path], source: Source, recording: Recording, timeline: Timeline, anonymous: bool
) -> ProfileManifest:
    intervals = timeline.intervals
    targets = intervals.known("server.memory_target_bytes")
    begin, end = moment_at(intervals.start[0]), moment_at(intervals.end[-1])
    notes = recording.notes + timeline.notes
    if anonymous:
        for place, path in enumerate(files, 1):
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
        gaps=tuple(
            Gap(started=moment_at(one.start), ended=moment_at(one.end), reason=one.reason) for one in timeline.gaps
        ),
        missing=_missing(recording, intervals, source),
        files=tuple(f"file {place}" if anonymous else path.name for place, path in enumerate(files, 1)),
        notes=tuple(notes),
    )


def _missing(recording: Recording, intervals: Intervals, source: Source) -> dict[str, str]:
    """Return what no file has, by table, with the reason."""
    found = dict(recording.missing)
    known = {name for name, values in intervals.columns.items() if is_known(values)}
    of_files = {name.partition(".")[2] for name in known if not name.startswith("server.")}
    if not of_files:
        found["disk counters"] = "the files have no I/O of disks"
    elif lacking := [name for name in FILE_IO.names[3:-1] if name not in of_files]:
        reason = "sar counts a device's reads and writes together" if source == "sar" else "not in the files"
        found["disk counters"] = f"{', '.join(lacking)}: {reason}"
    of_server = {name.partition(".")[2] for name in known if name.startswith("server.")}
    if not of_server - {"cpu_s"}:
        found["database counters"] = "the files have no counters of the database server"
    elif lacking := [name for name in (*COUNTS, *STATES) if name not in of_server and f"server.{name}" not in found]:
        found["database counters"] = f"{', '.join(lacking)}: not in the files"
    found["waits"] = f"{'the file' if source == 'csv' else source} does not record what the server waits for"
    return found
