"""A design and a schema that the tests of placement share, and the statements that come of them."""

import re

import sqlalchemy as sa
from sqlalchemy.dialects import mssql
from sqlalchemy.schema import AddConstraint, CreateIndex, CreateTable

from stallmark.schema.bank import tables as bank
from stallmark.schema.ddl import ddl_of
from stallmark.schema.placement import GIB, MIB, Design, File, Filegroup, Settings, TableGroup
from stallmark.schema.placement import mssql as mssql_placement
from support.tds.datatypes import BIGINT, BIT, INT, nvarchar
from support.tds.tokens import Column

ROWS = {"bank.accounts": 10_000_000, "bank.tellers": 1_000, "bank.branches": 100}
DESIGN = Design(
    files=(File("/data/bank.mdf", "bank", 2 * GIB), File("/data/bank_2.ndf", "bank_2", 2 * GIB)),
    filegroups=(
        Filegroup("growing", (File("/fast/growing.ndf", "growing", GIB, 0),)),
        Filegroup("indexes", (File("/fast/indexes.ndf", "indexes", GIB),)),
    ),
    log=(File("/log/bank.ldf", "bank_log", GIB, 512 * MIB),),
    tables=(TableGroup(("history", "sale"), "growing", "indexes", "page"),),
    settings=Settings("simple", True, False, 160, 60, "disabled", "checksum"),
)

TEXT = nvarchar(300)
FILE_COLUMNS = [  # of existing_files.mssql.sql
    *(Column(name, TEXT) for name in ("type_desc", "filegroup", "name", "physical_name")),
    Column("size_bytes", BIGINT),
    Column("growth_bytes", BIGINT),
    Column("growth_percent", INT),
]
SETTINGS_COLUMNS = [  # of existing_settings.mssql.sql
    Column("recovery", TEXT),
    Column("read_committed_snapshot", BIT),
    Column("snapshot_isolation", TEXT),
    Column("compatibility_level", INT),
    Column("target_recovery_time_s", INT),
    Column("delayed_durability", TEXT),
    Column("page_verify", TEXT),
    Column("legacy_cardinality_estimation", BIT),
    Column("auto_update_statistics", TEXT),
]
TABLE_COLUMNS = [  # of existing_tables.mssql.sql
    Column("table_name", TEXT),
    Column("index_id", INT),
    *(
        Column(name, TEXT)
        for name in ("index_name", "filegroup", "compression", "storage", "ordered_by", "partitioned_by")
    ),
    Column("partitions", INT),
    Column("fill_factor", INT),
]


def shop() -> sa.MetaData:
    metadata = sa.MetaData(schema="bank", naming_convention=bank.METADATA.naming_convention)
    sa.Table(
        "sale",
        metadata,
        sa.Column("id", sa.BigInteger, primary_key=True),
        sa.Column("number", sa.Integer),
        sa.UniqueConstraint("number", name="sale_number_key"),
        sa.Index("sale_number_ix", "number"),
    )
    sa.Table("history", metadata, sa.Column("sale_id", sa.ForeignKey("bank.sale.id")))
    sa.Table("other", metadata, sa.Column("id", sa.Integer))
    return metadata


def ddl(metadata: sa.MetaData, design: Design, dialect: sa.Dialect | None = None) -> list[str]:
    parts = mssql_placement.place_tables(ddl_of(metadata), design)
    statements: list = [CreateTable(table) for table in parts.tables.sorted_tables]
    for item in (*parts.keys, *parts.foreign_keys):
        statements.append(CreateIndex(item) if isinstance(item, sa.Index) else AddConstraint(item))
    texts = [str(statement.compile(dialect=dialect or mssql.dialect())) for statement in statements]
    return [re.sub(r"\s*\n\s*", " ", text).strip() for text in texts]
