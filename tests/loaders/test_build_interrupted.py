"""A build that is killed or fails says by what, leaves no process and no half batch, and is completed by the next."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from subprocess import PIPE

import psutil
import pytest
from support.building import SCALE, SEED, checksums, loader_sessions, loaders_of, make, make_tables
from support.waiting import eventually

from stallmark.engines.postgres.embedded.engine import EmbeddedEngine
from stallmark.engines.postgres.embedded.server import EmbeddedServer
from stallmark.errors import StallmarkError
from stallmark.loaders import ledger, loader_pool
from stallmark.loaders.bank import LOADER
from stallmark.loaders.load import BuildProgress, recognise
from stallmark.loaders.plan import LoadPlan
from stallmark.transactions.bank import WORKLOAD

KILLED = {"branches": 4}
FEW = {"branches": 4}

BUILDER = """
import json, sys
from stallmark.engines import open_engine
from stallmark.loaders.load import build
from stallmark.transactions.bank import WORKLOAD
spec, scale, seed = json.loads(sys.stdin.readline())
def wait(progress):
    if progress.rows:
        print(flush=True)
        sys.stdin.readline()
build(open_engine(spec), WORKLOAD, scale, seed, workers=2, progress=wait)
"""
"""Builds until a batch is in, says so, and hands out no other."""


def start_builder(database: EmbeddedEngine, scale: dict) -> subprocess.Popen:
    builder = subprocess.Popen(
        [sys.executable, "-c", BUILDER], stdin=PIPE, stdout=PIPE, stderr=PIPE,
        # Where the tests run in the background Ctrl-C is ignored, and the builder would inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    assert builder.stdin
    builder.stdin.write(json.dumps([database.spec(), scale, SEED]).encode() + b"\n")
    builder.stdin.flush()
    return builder


@pytest.fixture(scope="module")
def never_killed(embedded_server: EmbeddedServer) -> dict[str, tuple]:
    """Checksums of the same database."""
    untouched = EmbeddedEngine(embedded_server, "never_killed")
    make(untouched, KILLED)
    return checksums(untouched)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT], ids=["kill -9", "Ctrl-C"])
def test_killed_and_built_again(database: EmbeddedEngine, never_killed: dict[str, tuple], how: signal.Signals) -> None:
    builder = start_builder(database, KILLED)
    assert builder.stdout and builder.stdout.readline() == b"\n"  # it waits; the other loader is in its first batch
    workers = loaders_of(psutil.Process(builder.pid))
    assert len(workers) == 2
    builder.send_signal(how)
    builder.wait()
    assert builder.returncode != 0
    _, alive = psutil.wait_procs(workers, timeout=60)
    assert not alive, "a loader outlived its parent"
    eventually(lambda: loader_sessions(database) == 0)

    done = ledger.batches(database)
    found = recognise(database, WORKLOAD, KILLED, SEED)
    assert found.state == "half-loaded"
    assert f"{len(done)} of 6 batches" in str(found)
    # No half batch: the heap holds exactly what the ledger says.
    [(in_heap,)] = database.query("SELECT count(*) FROM bank.accounts")
    assert in_heap == sum(rows for batch, (rows, _) in done.items() if batch.group == "accounts")

    again = make(database, KILLED)
    assert again.outcome == "continued"
    assert again.rows == 400_044 - sum(rows for rows, _ in done.values())
    assert checksums(database) == never_killed


def test_a_dead_worker_is_named_and_nothing_of_its_batch_stays(database: EmbeddedEngine) -> None:
    def kill_one(progress: BuildProgress) -> None:
        if progress.phase == "load" and progress.rows:
            loaders_of(psutil.Process())[0].kill()

    with pytest.raises(
        StallmarkError, match=r"accounts, batch \d+, failed: the loader process \d+ was killed by signal 9"
    ):
        make(database, FEW, progress=kill_one)
    assert not loaders_of(psutil.Process())
    assert recognise(database, WORKLOAD, FEW, SEED).state == "half-loaded"
    make(database, FEW)
    assert checksums(database)["accounts"][0] == 400_000


def test_the_servers_reason_is_told(database: EmbeddedEngine) -> None:
    def break_it(progress: BuildProgress) -> None:
        if progress.rows == 0:
            database.execute("ALTER TABLE bank.accounts ADD CHECK (aid < 150000)")

    with pytest.raises(StallmarkError, match=r"batch 1, failed: .*violates check constraint.*continues"):
        make(database, workers=1, progress=break_it)


def test_a_key_that_cannot_be_made_is_told(database: EmbeddedEngine) -> None:
    def double_a_row(progress: BuildProgress) -> None:
        if progress.phase == "keys and indexes":
            database.execute("INSERT INTO bank.tellers SELECT * FROM bank.tellers WHERE tid = 5")

    with pytest.raises(StallmarkError, match=r"^bank.tellers has several rows with the same tid, the first tid 5 \(2 "):
        make(database, progress=double_a_row)
    assert recognise(database, WORKLOAD, SCALE, SEED).state == "half-loaded"


def test_a_server_that_goes_away_is_told(tmp_path: Path) -> None:
    server = EmbeddedServer(tmp_path / "server")
    database = EmbeddedEngine(server, "lost")

    def stop(progress: BuildProgress) -> None:
        if progress.rows:
            server.stop()

    try:
        with pytest.raises(StallmarkError, match=r"Loading accounts, batch \d+, failed: .*continues"):
            make(database, FEW, progress=stop)
        server.start()
        assert make(database, FEW).outcome == "continued"
        assert checksums(database)["accounts"][0] == 400_000
    finally:
        server.close()


def test_a_builder_that_stops_leaves_no_process(database: EmbeddedEngine) -> None:
    def stop(progress: BuildProgress) -> None:
        if progress.rows:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make(database, FEW, progress=stop)
    assert not loaders_of(psutil.Process())
    eventually(lambda: loader_sessions(database) == 0)
    [(in_heap,)] = database.query("SELECT count(*) FROM bank.accounts")
    assert in_heap == sum(rows for rows, _ in ledger.batches(database).values())


def test_interrupted_after_the_load(database: EmbeddedEngine) -> None:
    def stop(progress: BuildProgress) -> None:
        if progress.phase == "procedures":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make(database, progress=stop)
    assert recognise(database, WORKLOAD, SCALE, SEED).state == "half-loaded"
    again = make(database)
    assert (again.outcome, again.complete, again.rows) == ("continued", True, 0)
    assert database.query("SELECT bank.transfer(1, 1, 1, 5)") == [(5,)]


def test_leaving_the_crew_ends_it(database: EmbeddedEngine) -> None:
    make_tables(database)
    batches = LoadPlan(LOADER.groups({"branches": 8})).batches()
    loading = loader_pool.load(database, "bank", SEED, {"branches": 8}, batches, 2)
    next(loading)
    pids = [p.pid for p in loaders_of(psutil.Process())]
    assert len(pids) == 2
    loading.close()
    assert not any(psutil.pid_exists(pid) for pid in pids)
