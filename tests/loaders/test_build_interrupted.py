"""A build that is killed or fails says by what, leaves no process and no half batch, and is completed by the next."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from subprocess import PIPE

import psutil
import pytest
from support.building import SEED, TELLERS, checksums, loader_sessions, loaders_of, make, make_tables
from support.embedded_servers import copied
from support.waiting import eventually

from stallmark.engines.postgres.embedded_engine import EmbeddedEngine
from stallmark.engines.postgres.embedded_server import EmbeddedServer
from stallmark.errors import StallmarkError
from stallmark.loaders import Batch, LoadPlan, ledger, worker
from stallmark.loaders.bank import LOADER
from stallmark.loaders.load import BuildProgress, recognise
from stallmark.transactions.bank import WORKLOAD

SCALE = {"branches": 3}
"""Five batches: two workers know four of them at most while the first is loaded."""

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
    make(untouched, SCALE)
    return checksums(untouched)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT], ids=["kill -9", "Ctrl-C"])
def test_killed_and_built_again(database: EmbeddedEngine, never_killed: dict[str, tuple], how: signal.Signals) -> None:
    builder = start_builder(database, SCALE)
    assert builder.stdout and builder.stdout.readline() == b"\n"  # it waits; the other loader is in its first batch
    workers = loaders_of(psutil.Process(builder.pid))
    assert len(workers) == 2
    builder.send_signal(how)
    builder.wait()
    assert builder.returncode != 0
    _, alive = psutil.wait_procs(workers, timeout=60)
    assert not alive, "a loader outlived its parent"
    done = only_whole_batches(database)
    assert f"{len(done)} of 5 batches" in str(recognise(database, WORKLOAD, SCALE, SEED))
    again = make(database, SCALE, workers=1)
    assert again.outcome == "continued"
    assert again.rows == 300_033 - sum(rows for rows, _ in done.values())
    assert checksums(database) == never_killed


def only_whole_batches(database: EmbeddedEngine) -> dict[Batch, tuple[int, int]]:
    """Those of a build that has failed. It has left no process, and rows are there as the ledger says."""
    assert not loaders_of(psutil.Process())
    eventually(lambda: loader_sessions(database) == 0)
    assert recognise(database, WORKLOAD, SCALE, SEED).state == "half-loaded"
    done = ledger.batches(database)
    [(in_heap,)] = database.query("SELECT count(*) FROM bank.accounts")
    assert in_heap == sum(rows for batch, (rows, _) in done.items() if batch.group == "accounts")
    return done


def test_a_build_goes_on_after_whatever_has_ended_it(database: EmbeddedEngine, never_killed: dict[str, tuple]) -> None:
    killed: list[psutil.Process] = []

    def kill_loaders(progress: BuildProgress) -> None:
        if progress.rows and not killed:
            killed.extend(loaders_of(psutil.Process()))
            for loader in killed:
                loader.kill()

    with pytest.raises(StallmarkError, match=r"batch \d+, failed: the loader process \d+ was killed by signal 9"):
        make(database, SCALE, progress=kill_loaders)
    before = sum(rows for rows, _ in only_whole_batches(database).values())

    def stop_loading(progress: BuildProgress) -> None:
        if progress.rows > before:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make(database, SCALE, workers=1, progress=stop_loading)
    only_whole_batches(database)

    def double_a_row(progress: BuildProgress) -> None:
        if progress.phase == "keys and indexes" and not progress.done:
            database.execute("INSERT INTO bank.tellers SELECT * FROM bank.tellers WHERE tid = 5")

    with pytest.raises(StallmarkError, match=r"^bank.tellers has several rows with the same tid, the first tid 5 \(2 "):
        make(database, SCALE, workers=1, progress=double_a_row)
    only_whole_batches(database)
    database.execute("DELETE FROM bank.tellers WHERE ctid = (SELECT max(ctid) FROM bank.tellers WHERE tid = 5)")

    def stop_at_the_end(progress: BuildProgress) -> None:
        if progress.phase == "procedures":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make(database, SCALE, progress=stop_at_the_end)
    only_whole_batches(database)
    again = make(database, SCALE)
    assert (again.outcome, again.complete, again.rows) == ("continued", True, 0)
    assert checksums(database) == never_killed
    assert database.query("SELECT bank.transfer(1, 1, 1, 5)") == [(5,)]


def test_the_servers_reason_is_told(database: EmbeddedEngine) -> None:
    def break_it(progress: BuildProgress) -> None:
        if progress.rows == 0:
            database.execute("ALTER TABLE bank.tellers ADD CHECK (tid < 5)")

    with pytest.raises(StallmarkError, match=r"tellers, batch 0, failed: .*violates check constraint.*continues"):
        make(database, workers=1, part=TELLERS, progress=break_it)


def test_a_server_that_goes_away_is_told(template: Path) -> None:
    scale = {"branches": 2}
    with copied(template) as server:
        database = EmbeddedEngine(server, "lost")

        def stop(progress: BuildProgress) -> None:
            if progress.rows:
                server.stop()

        with pytest.raises(StallmarkError, match=r"Loading (branches|tellers), batch 0, failed: .*continues"):
            make(database, scale, workers=1, progress=stop)
        server.start()
        assert make(database, scale, workers=1).outcome == "continued"
        assert checksums(database)["accounts"][0] == 200_000


def test_leaving_the_pool_ends_it(database: EmbeddedEngine) -> None:
    make_tables(database)
    batches = LoadPlan(LOADER.groups(SCALE)).batches()
    loading = worker.load_batches(database, "bank", SEED, SCALE, batches, 2)
    next(loading)
    pids = [p.pid for p in loaders_of(psutil.Process())]
    assert len(pids) == 2
    loading.close()
    assert not any(psutil.pid_exists(pid) for pid in pids)
