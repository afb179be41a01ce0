"""Where a scenario wants its database on SQL Server: made there, or found there, before anything else happens."""

from collections.abc import Callable

from stallmark.driver.engines.base import Engine
from stallmark.driver.engines.errors import StallmarkError
from stallmark.loaders.plan import Plan, loader_for
from stallmark.scenarios.model import Scenario
from stallmark.schema.deploy import Parts
from stallmark.transactions import find_workload


def place(engine: Engine, scenario: Scenario) -> None:
    """Make the database as the scenario's `database:` designs it; one that is there must be so already.

    Raises StallmarkError where the server cannot have it so, naming what differs.
    """
    if scenario.database is None:
        return
    if engine.dialect != "mssql":
        raise StallmarkError(
            f"{scenario.name} asks for `database`, which places files on SQL Server: leave it out here; the embedded "
            "server is placed with --data-dir and --wal-dir."
        )
    from stallmark.driver.engines.mssql.engine import MssqlEngine
    from stallmark.schema import mssql_existing, mssql_placement
    from stallmark.schema.placement import sized

    assert isinstance(engine, MssqlEngine)
    master = engine.on_database("master")
    if why := mssql_placement.cannot(master):
        raise StallmarkError(f"{scenario.name} asks for `database`, but {why}.")
    choice, design = scenario.workload, scenario.database.design()
    metadata = find_workload(choice.name).metadata
    [(number,)] = master.query("SELECT DB_ID(?)", [engine.address.database])
    if number is None:
        loader = loader_for(choice.name)
        rows = Plan(loader.groups(loader.scale(choice.scale))).rows
        mssql_placement.make_database(engine, sized(design, metadata, rows))
    if design.tempdb:  # that the scenario may change the server was asked when it was read
        mssql_placement.place_tempdb(engine, design.tempdb, change_server=True)
    mssql_existing.refuse_other(engine, design, metadata)


def arrangement(scenario: Scenario) -> Callable[[Parts], Parts]:
    """What `loaders.load.build` is told of where tables and keys lie."""
    if scenario.database is None:
        return lambda parts: parts
    from stallmark.schema.mssql_placement import place_tables

    design = scenario.database.design()
    return lambda parts: place_tables(parts, design)
