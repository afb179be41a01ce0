"""The `workload:`, `database:` and `backup:` sections of a scenario: the contents and the files of a database."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from stallmark import capabilities, format
from stallmark.engines.abilities import BackupOptions
from stallmark.engines.mssql.server import LEAST_LEVEL, WHY_LEAST_LEVEL
from stallmark.loaders import checked_seed, loader_for
from stallmark.quantities import Seconds, Size, SizeOrZero, parse_size
from stallmark.record.manifest.workload import TradeHistory, trade_history
from stallmark.scenarios import Section, refusing
from stallmark.schema import placement
from stallmark.transactions import WORKLOADS, define, find_workload, known_name
from stallmark.transactions.workload import deck_of

# The `workload:` section of a scenario: which database and transactions, and how large.

Weight = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Seed = Annotated[int, Field(ge=0, strict=True), AfterValidator(refusing(checked_seed))]


def one_of(names: Sequence[str]) -> str:
    """Return the description of a key that takes one of these names."""
    return f"{format.either([f'`{name}`' for name in names])}."


def _with_bytes(given: Any) -> Any:
    """Return a scale with its size, as in `size: 20GB`, in bytes."""
    if not isinstance(given, Mapping) or not isinstance(size := given.get("size"), str):
        return given
    try:
        return {**given, "size": parse_size(size, like="20GB or 20GiB")}
    except ValueError as error:
        raise ValueError(f"size: {error}") from None


_NUMBER = {"anyOf": [{"type": "integer"}, {"type": "number"}]}
Measures = Annotated[
    dict[str, int | float],
    BeforeValidator(_with_bytes),
    WithJsonSchema(
        {
            "type": "object",
            "properties": {"size": {"type": ["string", "integer"], "examples": ["20GB"]}},
            "additionalProperties": _NUMBER,
        }
    ),
]


BESIDE = "beside"
"""The key of a validation's context with the folder that paths of a scenario start from."""

OwnSql = Annotated[
    dict[str, Any] | None, WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "object"}], "examples": ["./orders"]})
]


def with_definition(given: Any, key: str, info: ValidationInfo) -> Any:
    """Return a section's keys with the `sql` of a user read from its folder, and that workload's name under `key`."""
    if not isinstance(given, Mapping) or given.get("sql") is None:
        return given
    if not (readers := capabilities.parts("definition")):
        raise ValueError("sql is of the capability `own_sql`, which this Stallmark lacks: install it")
    definition = refusing(readers[0])(given["sql"], (info.context or {}).get(BESIDE, Path()))
    return {**given, "sql": definition, key: refusing(define)(definition).name}


class WorkloadChoice(Section):
    """The `workload:` section: database and transactions."""

    model_config = ConfigDict(json_schema_extra=lambda schema: schema["required"].remove("name"))  # or `sql`

    name: Annotated[
        str, AfterValidator(refusing(known_name)), WithJsonSchema({"type": "string", "enum": list(WORKLOADS)})
    ] = Field(description=one_of(WORKLOADS))
    scale: Annotated[Measures, Field(validate_default=True)] = {}
    """The size of the database in the workload's own measures: `{branches: 100}`, `{customers: 1000, days: 40}`,
    `{mailboxes: 200}`, `{factor: 1}`; or, for the brokerage, `{size: 20GB}`, which chooses suitable numbers of
    customers and days."""
    sql: OwnSql = None
    """In place of a name, a folder with SQL of your own: `{sql: ./orders}`."""
    seed: Seed = 1
    """The seed of all data and inputs: the same seed makes the same database and the same load."""
    mix: Annotated[dict[str, Weight], Field(min_length=1)] | None = None
    """Weights of the transactions that users start, or `{read_share: 0.9}`."""
    locality: Annotated[float, Field(ge=0, le=1)] = 0.0
    """With several load machines: the share of customers that each takes from its own part."""

    @model_validator(mode="before")
    @classmethod
    def _with_definition(cls, given: Any, info: ValidationInfo) -> Any:
        return with_definition(given, "name", info)

    @field_validator("scale")
    @classmethod
    def _complete(cls, given: dict[str, int | float], info: ValidationInfo) -> dict[str, int | float]:
        """Complete the scale by the workload's defaults."""
        return refusing(loader_for(info.data["name"]).scale)(given) if "name" in info.data else given  # refused already

    @field_validator("mix")
    @classmethod
    def _check_keys(cls, given: dict[str, float] | None, info: ValidationInfo) -> dict[str, float] | None:
        if given is not None and "name" in info.data:
            refusing(deck_of)(find_workload(info.data["name"]), given)
        return given

    @field_validator("locality")
    @classmethod
    def _in_parts(cls, given: float, info: ValidationInfo) -> float:
        if given and "name" in info.data and not find_workload(info.data["name"]).users.has_local_customers:
            raise ValueError(f"{info.data['name']} has no customers to divide among load machines: remove locality")
        return given

    @property
    def history(self) -> TradeHistory | None:
        """Return the history of trades in the database, or None without one."""
        return trade_history(self.name, self.scale)

    def deck(self) -> dict[str, int]:
        """Return the cards of each transaction that users may start."""
        return deck_of(find_workload(self.name), self.mix)

    def part(self, workload: str) -> "WorkloadChoice":
        """Return the choice of one of its workloads alone."""
        return WorkloadChoice(name=workload, scale=loader_for(workload).select_scale(self.scale), seed=self.seed)

    def __str__(self) -> str:
        if not self.scale:
            return self.name
        return f"{self.name} ({', '.join(f'{measure} {value:,}' for measure, value in self.scale.items())})"


# The `database:` section of a scenario: where a database lies, and how it is set; most of it is of SQL Server.
#
# database:
#   files: [{path: 'D:\data\bank.mdf'}]                          # of PRIMARY; no size: as large as it needs
#   filegroups:
#     - name: growing
#       files: [{path: 'E:\bank\growing_1.ndf', size: 20GiB}, {path: 'F:\bank\growing_2.ndf', size: 20GiB}]
#   log: [{path: 'L:\log\bank.ldf', size: 8GiB, growth: 512MiB}]
#   tables: [{names: [history], filegroup: growing, compression: page}]
#   recovery: simple
#   target_recovery_time: 60s
#
# How rows of a table lie there: by a column, in a columnstore, in partitions by month or year of a date:
#
# database:
#   tables: [{names: [lineitem], cluster_by: l_shipdate, partition_by: l_shipdate, partition_every: year}]
#   tables: [{names: [lineitem, orders], storage: columnstore}]
#
# On PostgreSQL by URL, which tablespaces of the server hold what; indexes lie with their table unless said otherwise:
#
# database:
#   tables: [{names: [growing], tablespace: fast, index_tablespace: faster}]
#
# Where a database holds several workloads, each in places of its own:
#
# database:
#   tables: [{names: ['bank.*'], tablespace: fast}, {names: [mail.growing, mail.bodies], tablespace: large}]

Switch = Literal["on", "off"]


def _has_string_split(level: Any) -> Any:
    if isinstance(level, int) and level < LEAST_LEVEL:
        raise ValueError(f"{level} is too low: {WHY_LEAST_LEVEL}; write legacy_cardinality_estimation: on")
    return level


class FileChoice(Section):
    """A file on the server; by default its name in the database is the last part of its path."""

    path: str
    """The file's path on the server."""
    name: str | None = None
    """Its logical name; by default the path's last part."""
    size: SizeOrZero | None = None
    """Its first size; by default what the data need."""
    growth: SizeOrZero = placement.GROWTH_BYTES
    """The growth increment."""

    def design(self) -> placement.File:
        name = placement.default_name(self.path) if self.name is None else self.name
        return placement.File(self.path, name, self.size, self.growth)


class FilegroupChoice(Section):
    name: str
    """The filegroup's name."""
    files: Annotated[list[FileChoice], Field(min_length=1)]
    """Its files."""


class TableChoice(Section):
    """Tables with the filegroups of tables and indexes, their storage and compression."""

    names: Annotated[list[str], Field(min_length=1)]
    """The tables, as `bank.history` where several workloads have one of that name; `growing` are all that a run adds
    rows to, `*` all that are not named otherwise; `bank.growing` and `bank.*` are those of one workload."""
    filegroup: str | None = None
    """Their filegroup (SQL Server)."""
    indexes: str | None = None
    """The filegroup of their indexes, if another (SQL Server)."""
    compression: placement.Compression = "none"
    """The compression of their pages (SQL Server)."""
    tablespace: Annotated[str, Field(min_length=1)] | None = None
    """Their tablespace (PostgreSQL)."""
    index_tablespace: Annotated[str, Field(min_length=1)] | None = None
    """The tablespace of their indexes, if another (PostgreSQL)."""
    storage: placement.Storage = "rowstore"
    """The storage of the tables: as rows, or as a clustered columnstore (SQL Server)."""
    cluster_by: Annotated[str, Field(min_length=1)] | None = None
    """The column of the clustered index (SQL Server)."""
    partition_by: Annotated[str, Field(min_length=1)] | None = None
    """The date column that they are partitioned by (SQL Server)."""
    partition_every: placement.Period = "month"
    """The span of a partition."""
    fill_factor: Annotated[int, Field(ge=1, le=100, strict=True)] | None = None
    """The fill factor of indexes in per cent (SQL Server). 1 gives each of the bank's branches its own page, so that
    users wait for a row's lock and not for the page's latch. By default its rows are stored close together as in
    pgbench, and a hot page is part of the measurement."""
    sequential_key: Annotated[bool, Field(strict=True)] = False
    """Make its indexes with OPTIMIZE_FOR_SEQUENTIAL_KEY (SQL Server 2019 and later), for inserts at the end
    of a growing key that convoy on its last page (PAGELATCH_EX)."""

    def design(self) -> placement.TableGroup:
        options = self.model_dump(exclude={"names", "indexes"})
        return placement.TableGroup(tuple(self.names), index_filegroup=self.indexes, **options)


class TempDbChoice(Section):
    """tempdb belongs to the server: `change_server: true` allows Stallmark to change it."""

    files: Annotated[list[FileChoice], Field(min_length=1)]
    """The data files of tempdb."""
    log: FileChoice | None = None
    """Its log file."""
    change_server: Literal[True, False] = False
    """Allow changes of tempdb, which all databases of the server share."""

    def design(self) -> placement.TempDb:
        return placement.TempDb(_files(self.files), self.log.design() if self.log else None)


class DatabaseChoice(Section):
    files: list[FileChoice] = []
    """The files of the primary filegroup."""
    filegroups: list[FilegroupChoice] = []
    """Further filegroups."""
    log: list[FileChoice] = []
    """The files of the log."""
    tables: list[TableChoice] = []
    """The placement and storage of tables."""
    tempdb: TempDbChoice | None = None
    """The placement of tempdb."""
    recovery: placement.Recovery | None = None
    """The recovery model."""
    read_committed_snapshot: Switch | None = None
    """Let READ COMMITTED read row versions instead of taking locks."""
    snapshot_isolation: Switch | None = None
    """Allow SNAPSHOT isolation."""
    compatibility_level: Annotated[Literal[130, 140, 150, 160, 170] | None, BeforeValidator(_has_string_split)] = None
    """The compatibility level, from 130."""
    legacy_cardinality_estimation: Switch | None = None
    """Make plans by the cardinality estimation of SQL Server 2012."""
    auto_update_statistics: placement.StatisticsUpdate | None = None
    """Update statistics automatically, and let a query wait for that or not."""
    target_recovery_time: Annotated[Seconds, Field(ge=0, multiple_of=1)] | None = None
    """The target of indirect checkpoints; 0 is automatic checkpoints."""
    delayed_durability: placement.DelayedDurability | None = None
    """Let a commit return before its log is on disk."""
    page_verify: placement.PageVerify | None = None
    """The verification of pages when they are read."""

    def mistakes(self) -> Iterator[str]:
        refusing(self.design)()
        if self.tempdb and not self.tempdb.change_server:
            yield (
                "tempdb belongs to every database of the server: write `change_server: true` below tempdb if it is "
                "yours to change"
            )

    def design(self) -> placement.Design:
        """Return the physical design. Raise StallmarkError if it is not possible."""
        return placement.Design(
            files=_files(self.files),
            filegroups=tuple(placement.Filegroup(group.name, _files(group.files)) for group in self.filegroups),
            log=_files(self.log),
            tables=tuple(group.design() for group in self.tables),
            tempdb=self.tempdb.design() if self.tempdb else None,
            settings=placement.Settings(
                recovery=self.recovery,
                read_committed_snapshot=ON[self.read_committed_snapshot],
                snapshot_isolation=ON[self.snapshot_isolation],
                compatibility_level=self.compatibility_level,
                target_recovery_time_s=None if (target := self.target_recovery_time) is None else int(target),
                delayed_durability=self.delayed_durability,
                page_verify=self.page_verify,
                legacy_cardinality_estimation=ON[self.legacy_cardinality_estimation],
                auto_update_statistics=self.auto_update_statistics,
            ),
        )


ON = {"on": True, "off": False, None: None}


def _files(chosen: list[FileChoice]) -> tuple[placement.File, ...]:
    return tuple(file.design() for file in chosen)


# The `backup:` section of a scenario: how SQL Server writes and reads the copy that every run starts from.
#
# backup: {folder: 'B:\backup', files: 4, compression: on, buffers: 50, transfer_size: 4MiB}

TRANSFER = 64 * 1024


class BackupChoice(Section):
    folder: Annotated[str, Field(min_length=1)] | None = None
    """A folder of the server, by default its backup folder."""
    files: Annotated[int, Field(ge=1, le=64, strict=True)] = 1
    """The files that it is striped over."""
    compression: Literal["on", "off", "ms_xpress", "qat_deflate", "zstd"] | None = None
    """Compress it, or by which algorithm (SQL Server 2022; `zstd` 2025); by default as the server is configured."""
    buffers: Annotated[int, Field(ge=1, strict=True)] | None = None
    """BUFFERCOUNT; by default the server's choice."""
    transfer_size: Annotated[Size, Field(ge=TRANSFER, le=64 * TRANSFER, multiple_of=TRANSFER)] | None = None
    """MAXTRANSFERSIZE, in steps of 64KiB up to 4MiB; by default the server's choice."""

    def options(self) -> BackupOptions:
        return BackupOptions(self.folder, self.files, self.compression, self.buffers, self.transfer_size)
