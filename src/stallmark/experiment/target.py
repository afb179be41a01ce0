"""The server that a command works on, embedded or given by URL, and the place of a scenario's database on it."""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from itertools import compress
from operator import not_
from pathlib import Path

import platformdirs

import stallmark
from stallmark import format
from stallmark.engines import make_databases, open_engine, with_databases
from stallmark.engines.base import Engine
from stallmark.engines.mssql.engine import MssqlEngine
from stallmark.engines.mssql.server import SQL_SERVER_2019
from stallmark.engines.postgres.embedded_server import EmbeddedServer
from stallmark.errors import CallFailed, StallmarkError, WrongOption, as_reason
from stallmark.experiment.others import refuse_others
from stallmark.experiment.work import most_sessions
from stallmark.loaders import LoadPlan, ledger, loader_for
from stallmark.scenarios.model import AnyScenario, TimedScenario, WorkloadChoice
from stallmark.scenarios.variant import OwnReset
from stallmark.schema import are_apart, parts_of, size
from stallmark.schema.ddl import Ddl
from stallmark.schema.deploy import schemas_of
from stallmark.schema.placement import Design, mssql_existing, sized
from stallmark.schema.placement import mssql as mssql_placement
from stallmark.storage.block_devices import NoBlockDevice, device_behind, mount_of
from stallmark.storage.direct_io import direct_io
from stallmark.transactions import find_workload

# The server that a command works on: the embedded one, in a folder per database, or one given by URL.

FSTAB = Path("/etc/fstab")


def home() -> Path:
    """Return the folder of embedded databases: STALLMARK_HOME, or `.stallmark` in the checkout that Stallmark runs
    from, or the user's data folder where it was installed from a wheel."""
    if named := os.environ.get("STALLMARK_HOME"):
        return Path(named)
    root = Path(stallmark.__file__).parents[2]
    return root / ".stallmark" if (root / "pyproject.toml").is_file() else platformdirs.user_data_path("stallmark")


def server_url(text: str) -> str:
    """Return the URL of a server as given, or out of the file that `@file` names.

    Raise StallmarkError if the file is empty or cannot be read, or if others than its owner can: it may hold a
    password.
    """
    if not text.startswith("@"):
        return text
    path = Path(text[1:]).expanduser()
    try:
        if os.name == "posix" and path.stat().st_mode & 0o077:
            raise StallmarkError(f"{path} can be read by others: chmod 600 {path}.")
        if url := path.read_text().strip():
            return url
        raise StallmarkError(f"{path}, which is to hold the server's URL, is empty: write the URL into it.")
    except OSError as error:
        raise StallmarkError(f"{path}, which is to hold the server's URL, cannot be read ({error.strerror}).") from None


@dataclass(frozen=True)
class Target:
    """A server by `url`, or the embedded one if `url` is None; the next three fields then place it.

    `may_drop_caches` allows emptying the caches of a server that others may use, `may_share` allows load on a database
    with other users' objects.
    """

    url: str | None = None
    data_dir: Path | None = None
    wal_dir: Path | None = None
    port: int | None = None
    may_drop_caches: bool = False
    may_share: bool = False

    def __post_init__(self) -> None:
        if self.url and (self.data_dir or self.wal_dir or self.port):
            raise WrongOption(
                "--data-dir, --wal-dir and --port place the embedded server; a server named with --server has its own."
            )

    def folder(self, choice: WorkloadChoice) -> Path:
        scale = "-".join(f"{value:g}-{measure}" for measure, value in sorted(choice.scale.items()))
        given = [part for part in find_workload(choice.name).parts if part.is_given]
        scale = "-".join(filter(None, (scale, *(f"{part.data_version:06d}" for part in given))))
        seed = f"-seed-{choice.seed}" if loader_for(choice.name).seeded else ""
        return self.data_dir or home() / "embedded" / f"{choice.name}-{scale}{seed}"

    def is_absent(self, choice: WorkloadChoice) -> bool:
        """Return True if the embedded database does not exist yet; False for a URL, as only the server knows."""
        return not self.url and not EmbeddedServer(self.folder(choice)).exists

    def _refuse_writing(self, engine: Engine, databases: Iterable[Engine], choice: WorkloadChoice) -> None:
        """Raise StallmarkError if a database cannot be written, or has other users' objects without `may_share`."""
        for database in databases:
            parts = [part for part in find_workload(choice.name).parts if engine.database_of(part.name) is database]
            given = [part for part in parts if part.is_given]
            if given and (ours := [part.name for part in parts if not part.is_given]):
                choices = ", ".join(f"{part.name}: {{}}" for part in parts)
                raise StallmarkError(
                    f"{ours[0]} would be built in the database {database.database_name()}, which is yours: write "
                    f"`databases: {{{choices}}}`, and it gets one of its own."
                )
            if given and all(kind.reads_only for part in given for kind in part.transactions):
                continue
            if reason := database.not_writable_reason(
                [schema for part in parts for schema in schemas_of(part.metadata)]
            ):
                raise StallmarkError(reason)
            if given and not self.may_share:
                raise StallmarkError(
                    f"{format.listed([part.name for part in given])} writes into the database "
                    f"{database.database_name()}, whose rows are not Stallmark's: add --shared if a load may change "
                    "them."
                )
            if not self.may_share:
                refuse_others(database)

    @contextmanager
    def engine(
        self, choice: WorkloadChoice, scenario: AnyScenario | None = None, *, make: bool = True
    ) -> Iterator[Engine]:
        """Open the engine for a database, or for several workloads' databases, placed as in the scenario.

        Without `make`, refuse a missing database by URL, and change nothing on its server. With `make`, refuse a
        database that cannot be written or has other users' objects. An embedded server is stopped at the end in any
        case, and removed if it was made for a command that is then refused.
        """
        # Not above: `list` and `status` ask only where a database would be, and need no driver for that.
        from stallmark.engines.postgres.embedded_engine import EmbeddedEngine
        from stallmark.engines.postgres.engine import SYSTEM_DATABASE

        if self.url:
            with closing(open_engine(self.url)) as engine, engine.few_logins():
                engine.is_shared = self.may_share
                if engine.caches:
                    engine.caches.allowed = self.may_drop_caches
                users_own = {part.name for part in find_workload(choice.name).parts if part.is_given}
                names = with_databases(engine, parts_of(choice.name), users_own) if are_apart(choice.name) else []
                if scenario:
                    _finish_restores(engine, scenario)
                is_absent = bool(scenario and not names and is_to_be_made(engine, scenario))
                if not is_absent:
                    # An unreachable or too old server is refused here.
                    engine.identity()
                exist = [engine.has_database(name) for name in names] or [not is_absent]
                if not make and not all(exist):
                    raise StallmarkError(f"{choice} is absent: run `stallmark build` first.")
                if make:
                    self._refuse_writing(engine, compress(engine.databases(), exist), choice)
                    if scenario:  # the first change of the server
                        place(engine, scenario)
                    make_databases(engine, names)
                    # A new database has what its template has.
                    self._refuse_writing(engine, compress(engine.databases(), map(not_, exist)), choice)
                yield engine
            return
        places = [variant.place for variant in scenario.variants if variant.place] if scenario else []
        folders = [Path(named) for place in places for named in (place.data, place.log) if named]
        _refuse_unmounted(self.data_dir, self.wal_dir, *folders)
        sessions = sum(most_sessions(scenario)) if isinstance(scenario, TimedScenario) else 0
        server = EmbeddedServer(self.folder(choice), self.wal_dir, self.port, sessions=sessions)
        # Asked before anything is opened, which makes the folder.
        is_new = not server.folder.exists()
        try:
            apart = are_apart(choice.name)
            engine = EmbeddedEngine(server, SYSTEM_DATABASE if apart else choice.name)
            try:
                if apart:
                    with_databases(engine, parts_of(choice.name))
                if scenario:
                    place(engine, scenario)
                yield engine
            except (StallmarkError, CallFailed) as error:
                if isinstance(error, StallmarkError) and is_new and _holds_nothing(engine):
                    server.remove()
                elif full := server.full_disk():
                    # On a full disk the server cannot write its log either, so this is the only sign.
                    error.add_note(full)
                raise
        finally:
            server.close()


def _finish_restores(engine: Engine, scenario: AnyScenario) -> None:
    """Bring back what a restore that was cut has left closed, before anyone has to open it."""
    for database in engine.databases():
        if scenario.backup and database.backup and database.backup.options:
            database.backup.options = scenario.backup.options()
        if scenario.reset == "restore" and database.backup:
            database.backup.finish_restore()
        if isinstance(scenario.reset, OwnReset) and scenario.reset.restore and database.user_backup:
            database.user_backup.finish_restore(scenario.reset.restore)


def _refuse_unmounted(*folders: Path | None) -> None:
    """Refuse a folder whose parent is not there, or of a file system of /etc/fstab that is not mounted: it would be on
    the disk of the root directory.
    """
    for folder in filter(None, folders):
        for point in _mount_points():
            if folder.absolute().is_relative_to(point) and not os.path.ismount(point):
                raise StallmarkError(
                    f"{point} is a file system of {FSTAB} and is not mounted, so {folder} would be on another disk "
                    "than you mean: mount it."
                )
        if not folder.absolute().parent.is_dir():
            raise StallmarkError(
                f"{folder.parent} is not there, so {folder} would not be where you mean: mount its file system, or "
                "make that folder."
            )


def _mount_points() -> Iterator[Path]:
    """Yield the folders that /etc/fstab has for file systems; none on a machine without it."""
    with suppress(OSError):
        for line in FSTAB.read_text(errors="replace").splitlines():
            words = line.partition("#")[0].split()
            if len(words) > 1 and words[1].startswith("/"):
                # In fstab a space is written as \040.
                yield Path(words[1].replace("\\040", " "))


def _holds_nothing(engine: Engine) -> bool:
    """Return True if no build has begun in the database; False if this is unknown, as for a server that is gone."""
    try:
        return ledger.is_empty(engine)
    except (StallmarkError, CallFailed):
        return False


# Where a database of ours lies: said before the load, so that a wrong disk is seen before it is measured for days.

_PAGE_CACHE = {
    "past": ", direct I/O",
    "through": ", direct I/O through the system's page cache: reads may come from memory",
    "unknown": ", direct I/O perhaps through the system's page cache",
}


def locations(engine: Engine, scenario: AnyScenario | None = None) -> Iterator[str]:
    """Yield a sentence for each folder of an embedded server, and of variants that are elsewhere: device and file
    system; none for a server by URL.
    """
    for name, folder in (folders := engine.directories()).items():
        yield f"{name}: {_describe_folder(name, folder)}"
    for variant in scenario.variants if scenario and folders else ():
        if variant.place:
            yield f"{variant.name}: data: {_describe_folder('data', Path(variant.place.data))}"
            log = _describe_folder("log", Path(variant.place.log)) if variant.place.log else "with the data"
            yield f"{variant.name}: log: {log}"


def _describe_folder(name: str, folder: Path) -> str:
    nearest = folder if folder.is_dir() else folder.parent  # it is made when the first run begins
    tried = direct_io(nearest) if name == "data" else None
    return f"{folder}, {_disk(nearest)}{_PAGE_CACHE[tried.goes] if tried else ''}"


def _disk(folder: Path) -> str:
    try:
        return f"on {device_behind(folder).name} ({mount_of(folder).file_system})"
    except NoBlockDevice as reason:
        return as_reason(reason)


# The placement of a scenario's database: its files are placed, or found in place, before anything else happens.


def place(engine: Engine, scenario: AnyScenario) -> None:
    """Make the database, or each of several, as the scenario designs it; one that exists must already be so.

    Raises StallmarkError if the server cannot have it so, naming what differs.
    """
    for workload, design in scenario.designs().items():
        choice = scenario.contents if workload == scenario.contents.name else scenario.contents.part(workload)
        _place_one(engine.database_of(workload), scenario, choice, design)


def is_to_be_made(engine: Engine, scenario: AnyScenario) -> bool:
    """Return True if `place` makes the database of the engine, which is possible on SQL Server only."""
    if not isinstance(engine, MssqlEngine) or not scenario.designs():
        return False
    return not engine.has_database(engine.address.database)


def _place_one(engine: Engine, scenario: AnyScenario, choice: WorkloadChoice, design: Design) -> None:
    # Not above: `list` and `status` ask only where a database would be, and need no driver for that.
    from stallmark.engines.postgres.engine import PostgresEngine
    from stallmark.schema.placement import postgres as postgres_placement

    if isinstance(engine, PostgresEngine):
        if engine.is_local:
            raise StallmarkError(
                f"{scenario.name} asks for `database`, which places a database on a server named with --server: leave "
                "it out here; the embedded server is placed with --data-dir and --wal-dir."
            )
        postgres_placement.refuse_impossible(engine, design)
        postgres_placement.refuse_other(engine, design, find_workload(choice.name).metadata)
        return
    assert isinstance(engine, MssqlEngine)
    if any(group.tablespace or group.index_tablespace for group in design.tables):
        raise StallmarkError(
            f"{scenario.name} asks for a tablespace, but SQL Server has filegroups: write `filegroup` and `indexes`."
        )
    master = engine.on_database("master")  # the other one may not be there yet
    if any(group.sequential_key for group in design.tables) and not master.has_version(SQL_SERVER_2019):
        raise StallmarkError(f"{scenario.name} asks for `sequential_key`, which SQL Server has from 2019 on.")
    if reason := master.placement.refusal():
        raise StallmarkError(f"{scenario.name} asks for `database`, but {reason}.")
    if design.tempdb and (reason := master.service.no_tempdb_reason):
        raise StallmarkError(f"{scenario.name} asks for `database.tempdb`, but {reason}.")
    with master.hold():  # two runs never change one server at once
        _place(engine, choice, design)


def _place(engine: MssqlEngine, choice: WorkloadChoice, design: Design) -> None:
    metadata = find_workload(choice.name).metadata
    if not engine.has_database(engine.address.database):
        loader = loader_for(choice.name)
        plan = LoadPlan(loader.groups(loader.scale(choice.scale)))
        tables = size.with_article_bytes(metadata, plan.article_bytes)
        mssql_placement.make_database(engine, sized(design, tables, plan.rows))
    if design.tempdb:  # the permission `change_server` was checked when the scenario was read
        mssql_existing.place(engine, design.tempdb, change_server=True)
    mssql_existing.refuse_other(engine, design, metadata)


def arrangement(engine: Engine, scenario: AnyScenario | None) -> Callable[[str, Ddl], Ddl]:
    """Return the function by which `loaders.databases.build` places tables and keys of a workload; without a design of
    its database it changes nothing."""
    from stallmark.schema.placement import postgres as postgres_placement

    designs = scenario.designs() if scenario else {}
    place_tables = postgres_placement.place_tables if engine.dialect == "postgresql" else mssql_placement.place_tables

    def arrange(workload: str, ddl: Ddl) -> Ddl:
        return place_tables(ddl, designs[workload]) if workload in designs else ddl

    return arrange
