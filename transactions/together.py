"""Several workloads in one database, each in its own schema: "bank+mail".

They share no table. What they compete for is the server: its buffer pool, its cores, its devices.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from stallmark.transactions.workload import Workload

if TYPE_CHECKING:
    from sqlalchemy import MetaData


@dataclass(frozen=True)
class WorkloadsTogether(Workload):
    """The database of several workloads. Its users, their transactions and the conditions are those of its `parts`."""

    of: tuple[Workload, ...] = ()

    @property
    def parts(self) -> tuple[Workload, ...]:
        return self.of

    @cached_property
    def metadata(self) -> "MetaData":
        from stallmark.schema.together import together

        return together([part.metadata for part in self.of])

    def procedures(self, dialect: str) -> str:
        return "\nGO\n".join(filter(None, (part.procedures(dialect) for part in self.of)))


def together(parts: Sequence[Workload]) -> WorkloadsTogether:
    """Return the workload that is these together. Its version changes with that of each."""
    version = 0
    for part in parts:
        version = 100 * version + part.version
    name = "+".join(part.name for part in parts)
    return WorkloadsTogether(name, version, schema="", tables="", package="", of=tuple(parts))
