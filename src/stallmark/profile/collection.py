"""Collect a profile: begin it in a new folder or continue an earlier one, read the server at every interval, note gaps,
and keep every sample."""

import hashlib
import os
import re
import secrets
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Literal

from stallmark.collectors.sampler import Ticks
from stallmark.engines.base import Login
from stallmark.errors import CallFailed, StallmarkError, as_reason, in_words
from stallmark.record.files import exclusive_folder
from stallmark.record.manifest.course import moment_at, seconds_at
from stallmark.record.profile import (
    FILE,
    GAP,
    Gap,
    Marks,
    ProfiledServer,
    ProfileManifest,
    Session,
    SessionEnd,
    is_profile,
    read_profile,
    write_profile,
)
from stallmark.record.profile_tables import Profile, ProfileWriter, close_streams, last_sample
from stallmark.redact import Redactor

# The interface to a profiled server: open, read all counters at once, close.

LOCK_TIMEOUT_MS = 5_000
ANSWER_WITHIN_S = 10
APPLICATION = "stallmark-profile"
_ADDRESS = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}|(?<![\w:])[0-9a-f]{0,4}(?::[0-9a-f]{0,4}){3,7}(?![\w:])", re.IGNORECASE)


@dataclass(frozen=True)
class Reading:
    """The counters of one moment."""

    server_clock: float
    start: str
    own_cpu_ms: int | None
    tables: Mapping[str, Sequence[tuple]]
    """The rows of the raw tables as tuples, without the sample's number."""

    def io(self) -> tuple[int, int]:
        """Return the number of reads and of writes of all files so far."""
        files = self.tables["file_counters"]
        return sum(row[4] or 0 for row in files), sum(row[7] or 0 for row in files)


@dataclass(frozen=True)
class Opened:
    """A server that answered."""

    server: ProfiledServer
    mark: str
    """Text that distinguishes the server from others at the same address."""
    missing: Mapping[str, str] = field(default_factory=dict)
    """The values that the server does not report, by table or column, each with the reason."""


class Source(ABC):
    """A server that is read over one connection.

    It changes nothing, takes no lock that others wait for, and cancels a query after ANSWER_WITHIN_S.
    """

    engine: Literal["mssql", "postgresql"]
    address: str
    """Host, port and database, for messages: never user or password."""

    def __init__(self, login: Login, database: str, *, anonymous: bool):
        names = {login.host: "<server>", database: "<database>"} if anonymous else {}
        self._anonymous = anonymous
        self._redact = Redactor(names, [login.user] if anonymous else [], login.password or None)

    def cleaned(self, text: str) -> str:
        """Return a text without passwords and, for an anonymous profile, without names and addresses."""
        text = self._redact(text)
        return _ADDRESS.sub("<address>", text) if self._anonymous else text

    @abstractmethod
    def open(self) -> Opened:
        """Connect. Raise StallmarkError if the server cannot be reached, or refuses what a profile requires."""

    @abstractmethod
    def read(self) -> Reading:
        """Read all counters. Raise StallmarkError, after which the connection may be unusable."""

    @abstractmethod
    def close(self) -> None:
        """Close the connection, whatever its state."""


# The collection.

INTERVAL_S = 15.0
FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 60.0


def refuse_folder(folder: Path) -> None:
    """Raise StallmarkError if a folder is neither new, nor empty, nor a profile of a server."""
    if is_profile(folder):
        if (source := read_profile(folder).source) != "server":
            raise StallmarkError(f"{folder} was imported ({source}): name another folder with --out.")
    elif folder.exists() and not (folder.is_dir() and all(map(_is_left_by_us, folder.iterdir()))):
        raise StallmarkError(f"{folder} exists and is not a profile: name a new folder with --out.")


def _is_left_by_us(path: Path) -> bool:
    """Return True if a file is the rest of an incompletely written manifest."""
    return path.name.startswith(f"{FILE}.") and path.suffix == ".new"


def refuse_over(folder: Path, planned_s: float, now: float) -> None:
    """Raise StallmarkError if the planned time of an earlier profile is over."""
    if is_profile(folder) and seconds_at(read_profile(folder).started) + planned_s <= now:
        raise StallmarkError(
            f"The profile in {folder} began longer ago than --for, so it is complete: see `stallmark report "
            f"{folder}`, name another folder with --out, or a longer time with --for."
        )


def begin(
    folder: Path, address: str, opened: Opened, planned_s: float, *, anonymous: bool, now: float
) -> ProfileWriter:
    """Return the writer of the next session. Raise StallmarkError for a folder of another server."""
    session = Session(started=moment_at(now))
    if is_profile(folder):
        # A killed session has no end yet, and its gap would grow with every later session.
        earlier = _with_end(folder, read_profile(folder), now)
        _refuse_another(folder, earlier, address, opened, anonymous)
        manifest = earlier.changed(planned_s=planned_s, sessions=(*earlier.sessions, session))
    else:
        # A salt of its own: marks of two profiles cannot be compared.
        salt = secrets.token_hex(8)
        manifest = ProfileManifest(
            source="server",
            stallmark=version("stallmark"),
            started=moment_at(now),
            interval_s=INTERVAL_S,
            planned_s=planned_s,
            anonymous=anonymous,
            marks=Marks(salt=salt, address=mark(salt, address), server=mark(salt, opened.mark)),
            sessions=(session,),
            missing=dict(opened.missing),
        )
    tables = manifest.tables | close_streams(folder)
    manifest = manifest.changed(servers=manifest.servers_with(opened.server, now), tables=tables)
    write_profile(folder, manifest)
    return ProfileWriter(folder, manifest, len(manifest.sessions))


def mark(salt: str, name: str) -> str:
    """Return a hash too short to find the name by: of 65,536 names, two share a hash."""
    return hashlib.blake2b((salt + name).encode(), digest_size=2).hexdigest()


def _with_end(folder: Path, manifest: ProfileManifest, now: float) -> ProfileManifest:
    """Return the manifest with its last session and its last gap closed, if a kill left them open."""
    if not manifest.sessions or manifest.sessions[-1].ended:
        return manifest
    *before, last = manifest.sessions
    clocks = Profile(folder).table("samples").column("clock")
    seen = clocks[-1].as_py() if len(clocks) else seconds_at(last.started)
    # The last sample is the last sign of life; a clock that was set must not put it outside the session.
    ended = min(max(seen, seconds_at(last.started)), now)
    sessions = (*before, last.changed(ended=moment_at(ended), end="killed"))
    return manifest.changed(sessions=sessions, gaps=manifest.closed_gaps(ended))


def _refuse_another(folder: Path, manifest: ProfileManifest, address: str, opened: Opened, anonymous: bool) -> None:
    marks = manifest.marks
    if marks and mark(marks.salt, address) != marks.address and mark(marks.salt, opened.mark) != marks.server:
        raise StallmarkError(f"{folder} is the profile of another server: name a new folder with --out.")
    if manifest.anonymous != anonymous:
        remedy = (
            "leaves names out: give --anonymous again" if manifest.anonymous else "has names: leave --anonymous out"
        )
        raise StallmarkError(f"The profile in {folder} {remedy}, or name a new folder with --out.")


@dataclass(frozen=True)
class Clock:
    """The clocks of this machine, and a way to wait."""

    now: Callable[[], float] = time.time
    monotonic: Callable[[], float] = time.monotonic
    wait: Callable[[float], None] = time.sleep
    cpu: Callable[[], float] = time.process_time


@dataclass(frozen=True)
class CollectionProgress:
    """The progress of a collection."""

    passed_s: float
    planned_s: float
    samples: int
    gaps: int
    reads_per_s: float | None = None
    writes_per_s: float | None = None
    trouble: str | None = None
    """The reason that the server cannot be read at the moment."""


@dataclass
class _LastSample:
    """The previous sample, for the rates of the progress."""

    at_s: float
    start: str
    reads: int
    writes: int


@dataclass
class Collection:
    """A profile of a server that is collected into a folder."""

    source: Source
    folder: Path
    planned_s: float
    """The time from the profile's first start."""
    anonymous: bool = False
    clock: Clock = field(default_factory=Clock)
    show: Callable[[CollectionProgress], None] = lambda progress: None
    _last: _LastSample | None = None

    def run(self) -> None:
        """Collect until the time is over. Earlier samples are kept in any case.

        Raise StallmarkError if the first connection fails, the folder is unsuitable, or the disk is full.
        """
        refuse_folder(self.folder)
        refuse_over(self.folder, self.planned_s, self.clock.now())
        opened = self.source.open()
        try:
            taken = f"Another process is collecting into {self.folder}: let it end, or name another folder with --out."
            with exclusive_folder(self.folder, taken=taken):
                now = self.clock.now()
                writer = begin(
                    self.folder, self.source.address, opened, self.planned_s, anonymous=self.anonymous, now=now
                )
                self._session(writer)
        finally:
            self.source.close()

    def _session(self, writer: ProfileWriter) -> None:
        end: SessionEnd = "stopped"
        reason: str | None = None
        cpu = self.clock.cpu()
        # One number is skipped, because a kill may have left a part of the next sample.
        self._sample = last_sample(self.folder) + 2
        try:
            self._collect(writer)
            end = "complete"
        except OSError as error:
            end, reason = "failed", os.strerror(error.errno) if error.errno else as_reason(error)
            remedy = "Earlier samples are kept: make room" if self.folder.is_dir() else "If it was moved, put it back"
            raise StallmarkError(
                f"{self.folder} could not be written ({reason}). {remedy}, and give the same command again."
            ) from None
        finally:
            cpu_s = round(self.clock.cpu() - cpu, 3)
            writer.close()
            *before, last = writer.manifest.sessions
            ended = last.changed(ended=moment_at(self.clock.now()), end=end, reason=reason, cpu_s=cpu_s)
            try:
                writer.update(sessions=(*before, ended), gaps=writer.manifest.closed_gaps(self.clock.now()))
            except OSError:  # the disk is full: the next session notes the end of this one
                pass

    def _collect(self, writer: ProfileWriter) -> None:
        begun = seconds_at(writer.manifest.started)
        clock, interval_s = self.clock, writer.manifest.interval_s
        over = clock.monotonic() + begun + self.planned_s - clock.now()
        ticks = Ticks(interval_s, clock.monotonic())
        pause_s, is_open, seen_at = FIRST_PAUSE_S, True, clock.monotonic()
        while True:
            try:
                if not is_open:
                    self._reopen(writer)
                    is_open = True
                self._sample_once(writer)
            # A server that restarts or fails over comes back: keep trying, with longer and longer pauses.
            except (StallmarkError, CallFailed) as error:
                self.source.close()
                is_open = False
                reason = self.source.cleaned(in_words(error))
                self._open_gap(writer, reason, seen_at)
                self._report(writer, trouble=reason)
                due = clock.monotonic() + pause_s
                pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
            else:
                self._close_gap(writer, seen_at, interval_s)
                pause_s, seen_at = FIRST_PAUSE_S, clock.monotonic()
                # A read that took longer than the interval skips the ticks it missed.
                if ticks.due <= seen_at:
                    ticks.advance(seen_at)
                due = ticks.due
            if clock.monotonic() >= over:
                return
            clock.wait(max(0.0, min(due, over) - clock.monotonic()))

    def _reopen(self, writer: ProfileWriter) -> None:
        """Connect again, and note another server behind the address, or a change of its facts."""
        servers = writer.manifest.servers_with(self.source.open().server, self.clock.now())
        if servers != writer.manifest.servers:
            writer.update(servers=servers)

    def _sample_once(self, writer: ProfileWriter) -> None:
        clock = self.clock
        began, wall = clock.monotonic(), clock.now()
        reading = self.source.read()
        took = clock.monotonic() - began
        place = len(writer.manifest.sessions), wall + took / 2, began + took / 2
        about = reading.server_clock, took, reading.start, len(writer.manifest.servers), reading.own_cpu_ms
        for name, rows in reading.tables.items():
            writer.append(name, [(self._sample, *row) for row in rows])
        # Written last: a sample counts only with this row.
        writer.append("samples", [(self._sample, *place, *about)])
        self._sample += 1
        self._report(writer, reading)

    def _open_gap(self, writer: ProfileWriter, reason: str, seen_at: float) -> None:
        gaps = writer.manifest.gaps
        if gaps and gaps[-1].ended is None:
            return
        since = self.clock.now() - (self.clock.monotonic() - seen_at)
        writer.update(gaps=(*gaps, Gap(started=moment_at(since), reason=reason)))

    def _close_gap(self, writer: ProfileWriter, seen_at: float, interval_s: float) -> None:
        """Close the gap, or remove it if only a sample or two were missed."""
        if all(gap.ended for gap in writer.manifest.gaps):
            return
        if self.clock.monotonic() - seen_at > GAP * interval_s:
            writer.update(gaps=writer.manifest.closed_gaps(self.clock.now()))
        else:
            writer.update(gaps=tuple(gap for gap in writer.manifest.gaps if gap.ended))

    def _report(self, writer: ProfileWriter, reading: Reading | None = None, trouble: str | None = None) -> None:
        now = self.clock.monotonic()
        reads_per_s = writes_per_s = None
        if reading:
            last, self._last = self._last, _LastSample(now, reading.start, *reading.io())
            # Another start time means that the counters were reset in between.
            if last and last.start == reading.start and now > last.at_s:
                reads_per_s = (self._last.reads - last.reads) / (now - last.at_s)
                writes_per_s = (self._last.writes - last.writes) / (now - last.at_s)
        passed_s = self.clock.now() - seconds_at(writer.manifest.started)
        gaps = len(writer.manifest.gaps)
        self.show(
            CollectionProgress(
                max(0.0, passed_s), self.planned_s, self._sample, gaps, reads_per_s, writes_per_s, trouble
            )
        )
