"""Builds of the bank, and what they have left on the server and beside it."""

import contextlib

import psutil

from stallmark.engines.postgres.embedded_engine import EmbeddedEngine
from stallmark.engines.postgres.engine import PostgresEngine
from stallmark.loaders import BatchShare
from stallmark.loaders.load import BuildProgress, build
from stallmark.schema import deploy
from stallmark.schema.ddl import ddl_of
from stallmark.schema.deploy import OWN_TABLES
from stallmark.transactions.bank import WORKLOAD
from stallmark.transactions.workload import Workload

SCALE = {"branches": 1}
"""Three batches: accounts, tellers, branches."""
ROWS = 100_011
TELLERS = BatchShare(2, 3)
"""The batch of ten rows."""
SEED = 7


def make(database: PostgresEngine, scale: dict = SCALE, seed: int = SEED, **options):
    return build(database, WORKLOAD, scale, seed, **{"workers": 2} | options)


def make_tables(database: PostgresEngine) -> None:
    """As a build does before its first batch."""
    for metadata in (OWN_TABLES, ddl_of(WORKLOAD.metadata).tables):
        deploy.create_tables(database, metadata)


def stop(progress: BuildProgress) -> None:
    """The tables after a build that is stopped before its first batch."""
    raise KeyboardInterrupt


def copy_of(built: EmbeddedEngine, name: str) -> EmbeddedEngine:
    """A copy of a database that nobody is connected to."""
    [(original,)] = built.query("SELECT current_database()")
    EmbeddedEngine(built.server, "postgres").execute(f"CREATE DATABASE {name} TEMPLATE {original}")
    return EmbeddedEngine(built.server, name)


def checksums(database: PostgresEngine, workload: Workload = WORKLOAD) -> dict[str, tuple]:
    """Rows and an order-free checksum of every table's logical rows."""
    question = "SELECT count(*), sum(hashtextextended(t::text, 0)::numeric) FROM {} t"
    return {table.name: database.query(question.format(table))[0] for table in workload.metadata.sorted_tables}


def loaders_of(process: psutil.Process) -> list[psutil.Process]:
    found = []
    for child in process.children(recursive=True):
        with contextlib.suppress(psutil.Error):  # the server's own processes come and go
            if "stallmark.loaders.worker" in child.cmdline():
                found.append(child)
    return found


def loader_sessions(database: PostgresEngine) -> int:
    [(count,)] = database.query(
        "SELECT count(*) FROM pg_stat_activity "
        "WHERE datname = current_database() AND application_name = 'stallmark-loader'"
    )
    return count
