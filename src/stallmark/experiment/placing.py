"""The place of a scenario's database: its files are placed, or found in place, and a wrong disk is reported."""

from collections.abc import Callable, Iterator
from pathlib import Path

from stallmark.engines.base import Engine
from stallmark.engines.mssql.engine import MssqlEngine
from stallmark.engines.mssql.server import SQL_SERVER_2019
from stallmark.engines.postgres.engine import PostgresEngine
from stallmark.errors import StallmarkError, as_reason
from stallmark.loaders.plan import LoadPlan, loader_for
from stallmark.scenarios.model import AnyScenario, WorkloadChoice
from stallmark.schema import size
from stallmark.schema.ddl import Ddl
from stallmark.schema.placement import Design, mssql_existing, sized
from stallmark.schema.placement import mssql as mssql_placement
from stallmark.schema.placement import postgres as postgres_placement
from stallmark.storage.block_devices import NoBlockDevice, device_behind, mount_of
from stallmark.storage.direct_io import direct_io
from stallmark.transactions import find_workload

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
    designs = scenario.designs() if scenario else {}
    place_tables = postgres_placement.place_tables if engine.dialect == "postgresql" else mssql_placement.place_tables

    def arrange(workload: str, ddl: Ddl) -> Ddl:
        return place_tables(ddl, designs[workload]) if workload in designs else ddl

    return arrange
