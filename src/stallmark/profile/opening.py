"""Begin a profile in a new folder, or go on with one that was begun."""

import hashlib
import secrets
from importlib.metadata import version
from pathlib import Path

from stallmark.errors import StallmarkError
from stallmark.profile.source import Opened
from stallmark.record.manifest.part import moment_at, seconds_at
from stallmark.record.profile.manifest import (
    FILE,
    Marks,
    ProfileManifest,
    Session,
    is_profile,
    read_profile,
    write_profile,
)
from stallmark.record.profile.raw import ProfileWriter, close_streams, read_raw

INTERVAL_S = 15.0


def refuse_folder(folder: Path) -> None:
    """Raise StallmarkError where a folder is neither new, nor empty, nor a profile of a server."""
    if is_profile(folder):
        if (source := read_profile(folder).source) != "server":
            raise StallmarkError(f"{folder} was imported ({source}): name another folder with --out.")
    elif folder.exists() and not (folder.is_dir() and all(map(_is_left_by_us, folder.iterdir()))):
        raise StallmarkError(f"{folder} is there and is no profile: name a new folder with --out.")


def _is_left_by_us(path: Path) -> bool:
    """Tell whether a file is what remains of a manifest that was not yet written whole."""
    return path.name.startswith(f"{FILE}.") and path.suffix == ".new"


def refuse_over(folder: Path, planned_s: float, now: float) -> None:
    """Raise StallmarkError where the time of a profile that is to go on is over."""
    if is_profile(folder) and seconds_at(read_profile(folder).started) + planned_s <= now:
        raise StallmarkError(
            f"The profile in {folder} began longer ago than --for says, so it is whole: see `stallmark report "
            f"{folder}`, name another folder with --out, or a longer time with --for."
        )


def begin(
    folder: Path, address: str, opened: Opened, planned_s: float, *, anonymous: bool, now: float
) -> ProfileWriter:
    """Return the writer of the next session. Raise StallmarkError for a folder of another server."""
    session = Session(started=moment_at(now))
    if is_profile(folder):
        found = _ended(folder, read_profile(folder), now)
        _refuse_another(folder, found, address, opened, anonymous)
        servers = found.servers
        if not found.server.is_as(opened.server):
            servers = (*servers, opened.server.changed(since=moment_at(now)))
        manifest = found.changed(planned_s=planned_s, sessions=(*found.sessions, session), servers=servers)
    else:
        salt = secrets.token_hex(8)
        manifest = ProfileManifest(
            source="server",
            stallmark=version("stallmark"),
            started=moment_at(now),
            interval_s=INTERVAL_S,
            planned_s=planned_s,
            anonymous=anonymous,
            servers=(opened.server.changed(since=moment_at(now)),),
            marks=Marks(salt=salt, address=mark(salt, address), server=mark(salt, opened.mark)),
            sessions=(session,),
            missing=dict(opened.missing),
        )
    manifest = manifest.changed(tables=manifest.tables | close_streams(folder))
    write_profile(folder, manifest)
    return ProfileWriter(folder, manifest, len(manifest.sessions))


def mark(salt: str, name: str) -> str:
    """Return a hash too short to find the name by: of 65,536 names two have the same."""
    return hashlib.blake2b((salt + name).encode(), digest_size=2).hexdigest()


def _ended(folder: Path, found: ProfileManifest, now: float) -> ProfileManifest:
    """Return the manifest with an end of its last session, which a kill has left open, and of its last gap."""
    if not found.sessions or found.sessions[-1].ended:
        return found
    *before, last = found.sessions
    clocks = read_raw(folder, "samples").column("clock")
    seen = clocks[-1].as_py() if len(clocks) else seconds_at(last.started)
    ended = moment_at(min(max(seen, seconds_at(last.started)), now))
    gaps = tuple(gap if gap.ended else gap.changed(ended=max(ended, gap.started)) for gap in found.gaps)
    return found.changed(sessions=(*before, last.changed(ended=ended, end="killed")), gaps=gaps)


def _refuse_another(folder: Path, found: ProfileManifest, address: str, opened: Opened, anonymous: bool) -> None:
    marks = found.marks
    if marks and mark(marks.salt, address) != marks.address and mark(marks.salt, opened.mark) != marks.server:
        raise StallmarkError(f"{folder} is the profile of another server: name a new folder with --out.")
    if found.anonymous != anonymous:
        said = "leaves names out: give --anonymous again" if found.anonymous else "has names: leave --anonymous out"
        raise StallmarkError(f"The profile in {folder} {said}, or name a new folder with --out.")
