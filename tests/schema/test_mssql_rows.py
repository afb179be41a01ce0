"""Tables whose rows lie otherwise than by their key: the statements that make them, and those that are there."""

from datetime import date

import pytest
import sqlalchemy as sa
from support.designs import ddl
from support.tsql import parser

from stallmark.engines.postgres.embedded_engine import EmbeddedEngine
from stallmark.errors import StallmarkError
from stallmark.scenarios.database import DatabaseChoice
from stallmark.schema import size
from stallmark.schema.ddl import ddl_of
from stallmark.schema.placement import Design, File, Filegroup, Settings, TableGroup, mssql, mssql_existing, sized
from stallmark.schema.placement import postgres as postgres_placement
from stallmark.schema.placement.mssql_existing import Found, FoundIndex
from stallmark.schema.warehouse.tables import LINEITEM, METADATA

BY_DATE = {"cluster_by": "l_shipdate"}
IN_YEARS = {**BY_DATE, "partition_by": "l_shipdate", "partition_every": "year"}
IN_COLUMNS = {"storage": "columnstore"}
COLUMNS_IN_MONTHS = {**IN_COLUMNS, "partition_by": "l_shipdate"}


def design(**how) -> Design:
    return DatabaseChoice.model_validate({"tables": [{"names": ["lineitem"], **how}]}).design()


def of_lineitem(how: Design) -> list[str]:
    return [
        text for text in ddl(METADATA, how) if "ON warehouse.lineitem" in text or "TABLE warehouse.lineitem A" in text
    ]


KEY = "ALTER TABLE warehouse.lineitem ADD CONSTRAINT lineitem_pkey PRIMARY KEY"
INDEX = "CREATE INDEX lineitem_l_partkey_l_suppkey_idx ON warehouse.lineitem (l_partkey, l_suppkey)"
CLUSTERED = "CREATE CLUSTERED INDEX lineitem_l_shipdate_clustered ON warehouse.lineitem (l_shipdate)"
COLUMNSTORE = "CREATE CLUSTERED COLUMNSTORE INDEX lineitem_columnstore ON warehouse.lineitem"


@pytest.mark.parametrize(
    ("how", "statements"),
    [
        ({}, [f"{KEY} (l_orderkey, l_linenumber)", INDEX]),
        (BY_DATE, [CLUSTERED, f"{KEY} NONCLUSTERED (l_orderkey, l_linenumber)", INDEX]),
        (
            {**BY_DATE, "compression": "page"},
            [
                f"{CLUSTERED} WITH (DATA_COMPRESSION = PAGE)",
                f"{KEY} NONCLUSTERED (l_orderkey, l_linenumber) WITH (DATA_COMPRESSION = PAGE)",
                f"{INDEX} WITH (DATA_COMPRESSION = PAGE)",
            ],
        ),
        (
            IN_YEARS,
            [
                f"{CLUSTERED} ON [lineitem_l_shipdate_year] ([l_shipdate])",
                f"{KEY} NONCLUSTERED (l_orderkey, l_linenumber) ON [PRIMARY]",
                f"{INDEX} ON [PRIMARY]",
            ],
        ),
        (IN_COLUMNS, [COLUMNSTORE, f"{KEY} NONCLUSTERED (l_orderkey, l_linenumber)", INDEX]),
        (
            COLUMNS_IN_MONTHS,
            [
                f"{COLUMNSTORE} ON [lineitem_l_shipdate_month] ([l_shipdate])",
                f"{KEY} NONCLUSTERED (l_orderkey, l_linenumber) ON [PRIMARY]",
                f"{INDEX} ON [PRIMARY]",
            ],
        ),
    ],
)
def test_statements(how: dict, statements: list[str]) -> None:
    """The clustered index comes first: the others refer to it, and SQL Server would make them twice."""
    found = [text.split(" FOREIGN KEY")[0] for text in of_lineitem(design(**how))]
    assert [text for text in found if "_fkey" not in text] == statements
    assert not any("CLUSTERED" in text for text in ddl(METADATA, design(**how)) if "lineitem" not in text)


def created(how: dict) -> list[str]:
    """Return what makes the table lineitem, without its keys."""
    parts = mssql.place_tables(ddl_of(METADATA), design(**how))
    executed: list[str] = []
    server = sa.create_mock_engine("mssql+pyodbc://", lambda statement, *_: executed.append(str(statement)))
    server.exec_driver_sql = executed.append  # type: ignore[attr-defined]
    parts.tables.tables["warehouse.lineitem"].create(server, checkfirst=False)  # type: ignore[arg-type]
    return executed


@pytest.mark.parametrize("how", [IN_YEARS, COLUMNS_IN_MONTHS])
def test_partitions_are_made_before_their_table(how: dict) -> None:
    function, scheme, table, *more = created(how)
    assert function.startswith("IF NOT EXISTS") and "CREATE PARTITION FUNCTION [lineitem_l_shipdate_" in function
    assert scheme.endswith("] ALL TO ([PRIMARY])") and "CREATE TABLE warehouse.lineitem" in table and not more


@pytest.mark.microsoft_parser
@pytest.mark.parametrize(
    "how", [{}, BY_DATE, {**BY_DATE, "compression": "page"}, IN_YEARS, IN_COLUMNS, COLUMNS_IN_MONTHS]
)
def test_microsoft_s_parser_parses(how: dict) -> None:
    assert not any(map(parser.errors, [*created(how), *of_lineitem(design(**how))]))


def test_a_partition_for_each_period() -> None:
    years, months = (mssql.bounds(design(**how).tables[0], LINEITEM) for how in (IN_YEARS, COLUMNS_IN_MONTHS))
    assert years == [date(year, 1, 1) for year in range(1993, 1999)]
    assert (len(months), months[0], months[-1]) == (83, date(1992, 2, 1), date(1998, 12, 1))
    assert months == sorted(set(months)) and set(years) < set(months)


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({**IN_COLUMNS, "compression": "page"}, "a columnstore is always compressed in its own way"),
        ({**IN_COLUMNS, **BY_DATE}, "cannot be a columnstore and be clustered by l_shipdate"),
        ({"partition_by": "l_shipdate"}, "add `cluster_by: l_shipdate`"),
        ({"cluster_by": "l_taxes"}, "lineitem cannot be clustered by l_taxes: it has no such column"),
        ({"cluster_by": "l_tax", "partition_by": "l_tax"}, "lineitem can have partitions by l_shipdate, not by l_tax"),
    ],
)
def test_what_cannot_be(how: dict, said: str) -> None:
    with pytest.raises((StallmarkError, ValueError)) as error:
        ddl(METADATA, design(**how))
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("how", "said"),
    [
        (IN_COLUMNS, "`database` asks for storage: columnstore, but PostgreSQL has no columnstore"),
        (BY_DATE, "`database` asks for cluster_by: l_shipdate, but PostgreSQL keeps no table in the order"),
    ],
)
def test_postgres_has_none_of_it(database: EmbeddedEngine, how: dict, said: str) -> None:
    with pytest.raises(StallmarkError) as error:
        postgres_placement.refuse_impossible(database, design(**how))
    assert said in str(error.value)


def as_found(storage="rowstore", ordered_by=None, partitioned_by=None, partitions=None) -> FoundIndex:
    compression = "none" if storage == "rowstore" else "columnstore"
    return FoundIndex(
        "warehouse.lineitem", 1, "x", "PRIMARY", compression, storage, ordered_by, partitioned_by, partitions
    )


BY_KEY = as_found(ordered_by="l_orderkey")


@pytest.mark.parametrize(
    ("how", "there", "phrase"),
    [
        ({}, BY_KEY, None),
        (BY_DATE, as_found(ordered_by="l_shipdate"), None),
        (IN_YEARS, as_found("rowstore", "l_shipdate", "l_shipdate", 7), None),
        (COLUMNS_IN_MONTHS, as_found("columnstore", None, "l_shipdate", 84), None),
        (BY_DATE, BY_KEY, "the rows of warehouse.lineitem lie by l_orderkey, not by l_shipdate"),
        ({}, as_found(ordered_by="l_shipdate"), "the rows of warehouse.lineitem lie by l_shipdate, not by l_orderkey"),
        (IN_COLUMNS, BY_KEY, "the table warehouse.lineitem is a rowstore, not a columnstore"),
        ({}, as_found("columnstore"), "the table warehouse.lineitem is a columnstore, not a rowstore"),
        (
            COLUMNS_IN_MONTHS,
            as_found("columnstore", None, "l_shipdate", 7),
            "the table warehouse.lineitem has 7 partitions by l_shipdate, not 84 partitions by l_shipdate",
        ),
        (
            IN_YEARS,
            as_found(ordered_by="l_shipdate"),
            "the table warehouse.lineitem has no partitions, not 7 partitions by l_shipdate",
        ),
    ],
)
def test_what_is_there_is_compared(how: dict, there: FoundIndex, phrase: str | None) -> None:
    found = Found([], Settings(), [there])
    assert mssql_existing.differences(design(**how), found, METADATA) == ([phrase] if phrase else [])


def test_a_key_beside_the_rows_takes_room() -> None:
    rows = {"warehouse.lineitem": 600_000_000}

    def index_file_bytes(**how) -> int:
        placed = sized(
            Design(
                files=(File("/data/w.mdf", "w"),),
                filegroups=(Filegroup("indexes", (File("/data/i.ndf", "i"),)),),
                tables=(TableGroup(("lineitem",), index_filegroup="indexes", **how),),
            ),
            METADATA.tables.values(),
            rows,
        )
        return placed.filegroups[0].files[0].size_bytes or 0

    more = index_file_bytes(**IN_COLUMNS) - index_file_bytes()
    assert more == pytest.approx(1.25 * size.key_apart_bytes(LINEITEM, 600_000_000), rel=0.1)
    # Two keys of 8 and 4 bytes, a locator of 8: with what every row has, about 30.
    assert size.key_apart_bytes(LINEITEM, 60_000_000) == pytest.approx(60_000_000 * 30, rel=0.1)
