"""The brokerage on SQL Server: the same rows as on the embedded server, though a loader died and the end came twice.

STALLMARK_TEST_SQLSERVER holds the URL of a database for the tests alone: its schemas `brokerage` and `stallmark` are
emptied.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
import pytest
from support.canonical import checksums
from support.mssql_server import empty
from support.sql_server import URL

from stallmark.engines.base import BulkWriter
from stallmark.engines.mssql.bulk import BulkCopyWriter, InsertWriter
from stallmark.engines.mssql.engine import MssqlEngine
from stallmark.engines.postgres.embedded_engine import EmbeddedEngine
from stallmark.engines.postgres.embedded_server import EmbeddedServer
from stallmark.loaders import Batch, BatchShare, LoadPlan
from stallmark.loaders.brokerage import LOADER
from stallmark.loaders.load import build
from stallmark.loaders.worker import AlreadyLoaded, load_batch
from stallmark.schema.brokerage.tables import METADATA
from stallmark.transactions import checks
from stallmark.transactions.brokerage import WORKLOAD

pytestmark = [pytest.mark.server, pytest.mark.sqlserver]

SCALE = LOADER.scale({"customers": 1_000, "days": 0.05})
SEED = 11
MARKET = Batch("market", 0)


class Died(Exception):
    pass


class InPieces(InsertWriter):
    """Its rows are in for good as they arrive, as in bulk copy: for servers that have none."""

    transactional = False

    def write(self, table: str, rows: pa.Table) -> None:
        super().write(table, rows)
        self.commit()


@contextmanager
def writer_without_transactions(engine: MssqlEngine) -> Iterator[BulkWriter]:
    with engine.bulk_writer() as writer:
        if isinstance(writer, BulkCopyWriter):
            yield writer
            return
    connection = engine.connect(autocommit=False)
    try:
        yield InPieces(connection, transactional=False)
    finally:
        connection.close()


def market(engine: MssqlEngine) -> list[int]:
    """Rows of tables that a batch of the market fills, some of which it finds by their symbols."""
    tables = ("company", "last_trade", "security", "daily_market", "news_item")
    return [engine.query(f"SELECT COUNT(*) FROM brokerage.{table}")[0][0] for table in tables]


def die_at_daily_market(engine: MssqlEngine) -> None:
    with writer_without_transactions(engine) as writer:
        write = writer.write

        def write_or_die(table: str, rows: pa.Table) -> None:
            write(table, rows.slice(0, 1_000))
            if table == "brokerage.daily_market":
                raise Died

        writer.write = write_or_die  # type: ignore[method-assign]
        with pytest.raises(Died):
            load_batch(writer, LOADER, SCALE, MARKET, LOADER.batch(SEED, SCALE, MARKET))


@pytest.fixture(scope="module")
def sql_server() -> Iterator[MssqlEngine]:
    engine = MssqlEngine(URL)
    empty(engine, METADATA)
    # The part without the market.
    batches = LoadPlan(LOADER.groups(SCALE)).batches()
    build(engine, WORKLOAD, SCALE, SEED, workers=1, part=BatchShare(1 + (batches.index(MARKET) == 0), len(batches)))
    die_at_daily_market(engine)
    yield engine
    empty(engine, METADATA)


def test_a_database_is_the_same_on_every_engine(sql_server, embedded_server: EmbeddedServer):
    assert market(sql_server) == [500, 685, 137, 1_000, 0]
    with writer_without_transactions(sql_server) as writer:
        rows, _ = load_batch(writer, LOADER, SCALE, MARKET, LOADER.batch(SEED, SCALE, MARKET))
    assert rows > sum(market(sql_server)) > 33_000
    with writer_without_transactions(sql_server) as writer, pytest.raises(AlreadyLoaded):
        load_batch(writer, LOADER, SCALE, MARKET, LOADER.batch(SEED, SCALE, MARKET))
    completed = build(sql_server, WORKLOAD, SCALE, SEED, workers=2)
    assert (completed.outcome, completed.complete) == ("continued", True)
    embedded = EmbeddedEngine(embedded_server, "brokerage_of_both")
    build(embedded, WORKLOAD, SCALE, SEED, workers=2)
    assert checksums(sql_server, METADATA) == checksums(embedded, METADATA)


def test_an_end_that_was_cut_is_made_whole(sql_server):
    sql_server.execute("ALTER TABLE brokerage.trade DROP CONSTRAINT trade_t_ca_id_fkey")
    sql_server.execute("DROP INDEX trade_t_ca_id_t_dts_idx ON brokerage.trade")
    sql_server.execute("UPDATE stallmark.[database] SET loaded_bytes = NULL")
    assert build(sql_server, WORKLOAD, SCALE, SEED, workers=2).complete
    [(keys,)] = sql_server.query("SELECT COUNT(*) FROM sys.foreign_keys WHERE name = 'trade_t_ca_id_fkey'")
    [(indexes,)] = sql_server.query(
        "SELECT COUNT(*) FROM sys.indexes WHERE object_id = OBJECT_ID('brokerage.trade') AND name <> ''"
    )
    assert (keys, indexes) == (1, 3)


def test_all_conditions_hold(sql_server):
    findings = checks.run(sql_server, WORKLOAD, SCALE, driven=False)
    assert findings and [finding for finding in findings if not finding.holds] == []
