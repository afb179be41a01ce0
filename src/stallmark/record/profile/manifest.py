"""The manifest of a profile: its source, its server, and its observed times; read and written."""

from pathlib import Path
from typing import Final, Literal

from stallmark.record.files import is_file, read_model, write_whole
from stallmark.record.manifest.course import ManifestPart, Moment, TableFile, TableName, moment_at, seconds_at

FORMAT: Final = 1
GAP: Final = 2.5
"""The number of intervals without a sample that make a gap."""
Source = Literal["server", "perfmon", "iostat", "sar", "prometheus", "csv"]
SessionEnd = Literal["running", "complete", "stopped", "killed", "failed", "imported"]
FILE = "profile.json"
_REMEDY = "restore it, or collect the profile anew"


class ProfiledServer(ManifestPart):
    """A server as it was when first observed with these properties.

    Attributes:
        since: the time of that observation.
        name: None if it is unknown or omitted on purpose.
        memory_bytes: memory of its machine.
        database_bytes: size of all its files.
    """

    since: Moment | None = None
    engine: Literal["mssql", "postgresql"] | None = None
    product: str = ""
    version: str = ""
    name: str | None = None
    cores: int | None = None
    memory_bytes: int | None = None
    pool_bytes: int | None = None
    database_bytes: int | None = None

    def is_as(self, other: "ProfiledServer") -> bool:
        """Return True if it is the same server with the same equipment, apart from sizes, which vary from hour to
        hour."""
        varying: dict[str, None] = {"since": None, "pool_bytes": None, "database_bytes": None}
        return self.changed(**varying) == other.changed(**varying)


class Session(ManifestPart):
    """A time of uninterrupted collecting.

    Attributes:
        ended: None while it lasts and after a kill, until the folder is used again.
        reason: the words of the failure that ended it.
    """

    started: Moment
    ended: Moment | None = None
    end: SessionEnd = "running"
    reason: str | None = None
    cpu_s: float | None = None
    """CPU time that collecting took on the machine of Stallmark."""


class Gap(ManifestPart):
    """A time within a session without observations. `reason` has the words of the failure."""

    started: Moment
    ended: Moment | None = None
    reason: str


class Marks(ManifestPart):
    """Short hashes with a salt, which identify the address and the server of a folder without naming them."""

    salt: str
    address: str
    server: str


class ProfileManifest(ManifestPart):
    """The manifest of a profile.

    Attributes:
        servers: more than one if another server answered at the same address.
        missing: reasons for missing values, by table.
        files: names of the imported files; empty for a profile of a server.
    """

    format: Literal[1] = FORMAT
    kind: Literal["profile"] = "profile"
    source: Source
    stallmark: str = ""
    started: Moment
    interval_s: float
    planned_s: float | None = None
    anonymous: bool = False
    servers: tuple[ProfiledServer, ...] = ()
    marks: Marks | None = None
    sessions: tuple[Session, ...] = ()
    gaps: tuple[Gap, ...] = ()
    missing: dict[str, str] = {}
    files: tuple[str, ...] = ()
    tables: dict[TableName, TableFile] = {}
    """The files that are written whole."""
    notes: tuple[str, ...] = ()

    @property
    def server(self) -> ProfiledServer:
        """Return the server as it was seen last; one without any fact where none is known."""
        return self.servers[-1] if self.servers else ProfiledServer()

    def servers_with(self, server: ProfiledServer, now: float) -> tuple[ProfiledServer, ...]:
        """Return all servers, with one that answers now: another, or the same with other equipment."""
        known = self.servers and self.server.is_as(server)
        return self.servers if known else (*self.servers, server.changed(since=moment_at(now)))

    def closed_gaps(self, now: float) -> tuple[Gap, ...]:
        """Return the gaps, each with an end."""
        return tuple(
            gap if gap.ended else gap.changed(ended=moment_at(max(now, seconds_at(gap.started)))) for gap in self.gaps
        )

    @property
    def server_names(self) -> list[str]:
        """Return the different names of the servers that answered, in their order."""
        return list(dict.fromkeys(server.name for server in self.servers if server.name))


def is_profile(folder: Path) -> bool:
    return is_file(folder / FILE)


def read_profile(folder: Path) -> ProfileManifest:
    """Read the manifest of a profile's folder; raise StallmarkError, which names the file and the key at fault."""
    return read_model(ProfileManifest, folder, FILE, "profile", FORMAT, _REMEDY)


def write_profile(folder: Path, manifest: ProfileManifest) -> None:
    """Replace the manifest whole or not at all: it may be read at any moment."""
    write_whole(folder / FILE, manifest)
