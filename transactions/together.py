"""Several workloads on one server: in one database, each in its own schema ("bank+mail"), or in one each ("bank,mail").

They share no table. What they compete for is the server: its buffer pool, its cores, its devices.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from stallmark.schema.several import joined, version_of
from stallmark.transactions.workload import Workload

if TYPE_CHECKING:
    from sqlalchemy import MetaData


@dataclass(frozen=True)
class WorkloadsTogether(Workload):
    """The data of several workloads. Its users, their transactions and the conditions are those of its `parts`."""

    of: tuple[Workload, ...] = ()

    @property
    def parts(self) -> tuple[Workload, ...]:
        return self.of

    @cached_property
    def metadata(self) -> "MetaData":
        from stallmark.schema.ddl import together

        return together([part.metadata for part in self.of])

    def procedures(self, dialect: str) -> str:
        return "\nGO\n".join(filter(None, (part.procedures(dialect) for part in self.of)))


def together(parts: Sequence[Workload], *, apart: bool = False) -> WorkloadsTogether:
    """Return the workload that is these together, or `apart` in a database each. Its version changes with that of
    each."""
    version = version_of([part.version for part in parts])
    name = joined([part.name for part in parts], apart=apart)
    return WorkloadsTogether(name, version, schema="", tables="", package="", of=tuple(parts))
