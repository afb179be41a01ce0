"""Things and sessions of others in a server's databases: load beside them would disturb somebody."""

from stallmark.engines.base import Engine
from stallmark.errors import StallmarkError
from stallmark.loaders import ledger
from stallmark.schema.deploy import OWN_TABLES, in_short, schemas_of, things_of_others
from stallmark.transactions import find_workload, known_name


def others_in(engine: Engine) -> str | None:
    """Return names of what others have in a database, things and sessions; None if nothing is seen."""
    foreign = [*things_in(engine), *map(str, engine.other_sessions())]
    return in_short(foreign) if foreign else None


def things_in(engine: Engine) -> list[str]:
    """Return the names of what others have made in a database: tables, views, routines and the like.

    Objects of extensions are not included. Raise StallmarkError if another version of Stallmark built in it.
    """
    used = engine.schemas_in_use()
    entry = ledger.read(engine) if used.keys() & {*schemas_of(OWN_TABLES)} else None
    workloads = [find_workload(known_name(entry.identity.workload))] if entry else []
    return things_of_others(used, engine.dialect, *workloads)


def refuse_others(engine: Engine) -> None:
    """Raise StallmarkError if others have something in a database that is to be built or driven."""
    for database in engine.databases():
        if foreign := others_in(database):
            raise StallmarkError(
                f"The database {database.database_name()} holds what is not Stallmark's: {foreign}. Name a database of "
                "its own, or add --shared to build and drive load beside it."
            )
        if reason := database.hidden_objects_reason():
            raise StallmarkError(
                f"Whether the database {database.database_name()} holds what is not Stallmark's is not known: "
                f"{reason}, or add --shared to build and drive load beside it."
            )


def advice_on_unseen(engine: Engine) -> list[str]:
    """Return a sentence on each database in which sessions of others would not be seen."""
    return [
        f"Whether others have sessions in the database {database.database_name()} is not known: {reason}."
        for database in engine.databases()
        if (reason := database.hidden_sessions_reason())
    ]
