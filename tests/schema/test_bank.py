"""The bank's tables are pgbench's, as pgbench itself makes them."""

import subprocess
from pathlib import Path

import pytest

from stallmark.engines.postgres.embedded.engine import EmbeddedEngine
from stallmark.engines.postgres.embedded.programs import binary
from stallmark.engines.postgres.embedded.server import EmbeddedServer
from stallmark.loaders.load import build
from stallmark.transactions.bank import WORKLOAD

COLUMNS = """
SELECT attname, format_type(atttypid, atttypmod), attnotnull
  FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 ORDER BY attnum"""
KEYS = """
SELECT contype, pg_get_constraintdef(oid) FROM pg_constraint
 WHERE conrelid = %s::regclass AND contype <> 'n' ORDER BY 1, 2"""
FILL_FACTOR = """
SELECT coalesce(substring(reloptions::text FROM 'fillfactor=(\\d+)'), '100')
  FROM pg_class WHERE oid = %s::regclass"""


def pgbench(database: EmbeddedEngine, *arguments: str) -> str:
    result = subprocess.run(
        [binary("pgbench"), *arguments, database.spec()], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.fixture(scope="module")
def bank(embedded_server: EmbeddedServer) -> EmbeddedEngine:
    engine = EmbeddedEngine(embedded_server, "beside_pgbench")
    build(engine, WORKLOAD, {"branches": 1}, 1, workers=1)
    return engine


def test_same_as_pgbench(bank: EmbeddedEngine) -> None:
    pgbench(bank, "-i", "-q", "-s1")
    for table in ("branches", "tellers", "accounts", "history"):
        for question in (COLUMNS, KEYS, FILL_FACTOR):
            assert bank.query(question, [f"bank.{table}"]) == bank.query(question, [f"pgbench_{table}"])
            assert bank.query(question, [f"bank.{table}"]) or table == "history"


def test_pgbench_script_runs(bank: EmbeddedEngine, tmp_path: Path) -> None:
    shown = subprocess.run([binary("pgbench"), "--show-script=tpcb-like"], capture_output=True, text=True, check=True)
    script = tmp_path / "peer.sql"
    script.write_text((shown.stdout or shown.stderr).replace("pgbench_", "bank."))
    pgbench(bank, "-n", "-s1", "-t25", "-c2", f"-f{script}")
    assert bank.query("SELECT count(*) FROM bank.history") == [(50,)]
    # Our function writes what its statements write: same columns filled, same columns left null.
    bank.query("SELECT bank.transfer(7, 3, 1, 100)")
    shapes = bank.query(
        "SELECT DISTINCT tid IS NULL, bid IS NULL, aid IS NULL, delta IS NULL, mtime IS NULL, filler IS NULL "
        "FROM bank.history"
    )
    assert shapes == [(False, False, False, False, False, True)]
