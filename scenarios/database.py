"""The `database:` section of a scenario: where a database lies, and how it is set; most of it is of SQL Server.

database:
  files: [{path: 'D:\\data\\bank.mdf'}]                          # of PRIMARY; no size: as large as it needs
  filegroups:
    - name: growing
      files: [{path: 'E:\\bank\\growing_1.ndf', size: 20GiB}, {path: 'F:\\bank\\growing_2.ndf', size: 20GiB}]
  log: [{path: 'L:\\log\\bank.ldf', size: 8GiB, growth: 512MiB}]
  tables: [{names: [history], filegroup: growing, compression: page}]
  recovery: simple
  target_recovery_time: 60s

How rows of a table lie there: by a column, in a columnstore, in partitions by month or year of a date:

database:
  tables: [{names: [lineitem], cluster_by: l_shipdate, partition_by: l_shipdate, partition_every: year}]
  tables: [{names: [lineitem, orders], storage: columnstore}]

On PostgreSQL by URL, which tablespaces of the server hold what; indexes lie with their table unless said otherwise:

database:
  tables: [{names: [growing], tablespace: fast, index_tablespace: faster}]
"""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from stallmark.errors import StallmarkError
from stallmark.quantities import Seconds, SizeOrZero
from stallmark.scenarios.section import Section
from stallmark.schema.placement import design as placement

Switch = Literal["on", "off"]


class FileChoice(Section):
    """A file on the server; its name in the database is its path's last part unless it says another."""

    path: str
    name: str | None = None
    size: SizeOrZero | None = None
    growth: SizeOrZero = placement.GROWTH_BYTES

    def design(self) -> placement.File:
        name = placement.default_name(self.path) if self.name is None else self.name
        return placement.File(self.path, name, self.size, self.growth)


class FilegroupChoice(Section):
    name: str
    files: Annotated[list[FileChoice], Field(min_length=1)]


class TableChoice(Section):
    """Tables, where they and their indexes lie, how they are stored and compressed; `growing`: all that a run adds rows
    to."""

    names: Annotated[list[str], Field(min_length=1)]
    filegroup: str | None = None
    indexes: str | None = None
    compression: placement.Compression = "none"
    tablespace: Annotated[str, Field(min_length=1)] | None = None
    index_tablespace: Annotated[str, Field(min_length=1)] | None = None
    storage: placement.Storage = "rowstore"
    cluster_by: Annotated[str, Field(min_length=1)] | None = None
    partition_by: Annotated[str, Field(min_length=1)] | None = None
    partition_every: placement.Period = "month"

    def design(self) -> placement.TableGroup:
        return placement.TableGroup(
            tables=tuple(self.names),
            filegroup=self.filegroup,
            index_filegroup=self.indexes,
            compression=self.compression,
            tablespace=self.tablespace,
            index_tablespace=self.index_tablespace,
            storage=self.storage,
            cluster_by=self.cluster_by,
            partition_by=self.partition_by,
            partition_every=self.partition_every,
        )


class TempDbChoice(Section):
    """tempdb belongs to the server: `change_server: true` says that it is ours to change."""

    files: Annotated[list[FileChoice], Field(min_length=1)]
    log: FileChoice | None = None
    change_server: Literal[True, False] = False

    def design(self) -> placement.TempDb:
        return placement.TempDb(_files(self.files), self.log.design() if self.log else None)


class DatabaseChoice(Section):
    files: list[FileChoice] = []
    filegroups: list[FilegroupChoice] = []
    log: list[FileChoice] = []
    tables: list[TableChoice] = []
    tempdb: TempDbChoice | None = None
    recovery: placement.Recovery | None = None
    read_committed_snapshot: Switch | None = None
    snapshot_isolation: Switch | None = None
    compatibility_level: Literal[100, 110, 120, 130, 140, 150, 160, 170] | None = None
    target_recovery_time: Annotated[Seconds, Field(ge=0)] | None = None
    delayed_durability: placement.DelayedDurability | None = None
    page_verify: placement.PageVerify | None = None

    @model_validator(mode="after")
    def _possible(self) -> "DatabaseChoice":
        try:
            self.design()
        except StallmarkError as error:
            raise ValueError(str(error)) from None
        if self.tempdb and not self.tempdb.change_server:
            raise ValueError(
                "tempdb belongs to every database of the server: write `change_server: true` below tempdb if it is "
                "yours to change"
            )
        return self

    def design(self) -> placement.Design:
        """Return the physical design; raise StallmarkError for one that cannot be."""
        target = self.target_recovery_time
        if target is not None and target != int(target):
            raise StallmarkError("target_recovery_time is whole seconds on the server: write it so.")
        return placement.Design(
            files=_files(self.files),
            filegroups=tuple(placement.Filegroup(group.name, _files(group.files)) for group in self.filegroups),
            log=_files(self.log),
            tables=tuple(group.design() for group in self.tables),
            tempdb=self.tempdb.design() if self.tempdb else None,
            settings=placement.Settings(
                recovery=self.recovery,
                read_committed_snapshot=_ON[self.read_committed_snapshot],
                snapshot_isolation=_ON[self.snapshot_isolation],
                compatibility_level=self.compatibility_level,
                target_recovery_time_s=None if target is None else int(target),
                delayed_durability=self.delayed_durability,
                page_verify=self.page_verify,
            ),
        )


_ON = {"on": True, "off": False, None: None}


def _files(chosen: list[FileChoice]) -> tuple[placement.File, ...]:
    return tuple(file.design() for file in chosen)
