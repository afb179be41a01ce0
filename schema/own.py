"""The names of what Stallmark makes in a database: all others are of somebody else."""

import re
from collections.abc import Mapping, Sequence
from typing import Protocol

import sqlalchemy as sa

from stallmark.schema.ledger import METADATA as OWN_TABLES

MOST_NAMED = 4

_CREATED = re.compile(r"^CREATE (?:OR REPLACE )?(?:FUNCTION|PROCEDURE) (\w+)\.(\w+)", re.MULTILINE)


class Deployable(Protocol):
    """The part of a workload that is made in a database."""

    @property
    def metadata(self) -> sa.MetaData: ...
    def procedures(self, dialect: str) -> str: ...


def routines(workload: Deployable, dialect: str) -> set[tuple[str, str]]:
    """Return schema and name of the workload's functions or procedures."""
    return set(_CREATED.findall(workload.procedures(dialect)))


def things_of_others(used: Mapping[str, Sequence[str]], dialect: str, *workloads: Deployable) -> list[str]:
    """Return the things that belong neither to the workloads nor to the ledger, as schema.name. `used`: as
    `Engine.schemas_in_use` returns it."""
    own = {(str(table.schema), table.name) for table in OWN_TABLES.tables.values()}
    for workload in workloads:
        own.update((str(table.schema), table.name) for table in workload.metadata.tables.values())
        own.update(routines(workload, dialect))
    return sorted(f"{schema}.{name}" for schema, names in used.items() for name in names if (schema, name) not in own)


def in_short(names: Sequence[str]) -> str:
    """Return the first of the names, and the number of the others."""
    more = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
