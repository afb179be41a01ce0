"""Building a database on a real server: whole, resumable, recognised, and refused when it is another."""

import contextlib
import dataclasses
import json
import signal
import subprocess
import sys
import threading
from pathlib import Path

import psutil
import pyarrow as pa
import pytest
from waiting import eventually

from stallmark.driver.engines.embedded import EmbeddedEngine, EmbeddedServer
from stallmark.driver.engines.errors import StallmarkError
from stallmark.driver.engines.postgres import PostgresEngine
from stallmark.loaders import crew, ledger, worker
from stallmark.loaders.bank import LOADER
from stallmark.loaders.load import Progress, build, recognise
from stallmark.loaders.plan import Batch, Part, Plan
from stallmark.schema import deploy
from stallmark.transactions.bank import WORKLOAD

SCALE = {"branches": 3}
SEED = 7


def make(database: PostgresEngine, scale: dict = SCALE, seed: int = SEED, **options):
    return build(database, WORKLOAD, scale, seed, **{"workers": 2} | options)


def checksums(database: PostgresEngine) -> dict[str, tuple]:
    """Rows and an order-free checksum of every table's logical rows."""
    question = "SELECT count(*), sum(hashtextextended(t::text, 0)::numeric) FROM {} t"
    return {
        table.name: database.query(question.format(table))[0] for table in WORKLOAD.metadata.sorted_tables
    }


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


def test_created_then_reused_then_another_worker_count(database: EmbeddedEngine) -> None:
    assert recognise(database, WORKLOAD, SCALE, SEED).state == "absent"
    seen: list[Progress] = []
    created = make(database, workers=1, progress=seen.append)
    assert (created.outcome, created.complete, created.rows) == ("created", True, 300_033)
    assert [p.rows for p in seen] == sorted(p.rows for p in seen)
    assert seen[0] == Progress("load", 0, 300_033, 0)
    assert seen[-1].rows == seen[-1].rows_total == 300_033
    assert list(dict.fromkeys(p.phase for p in seen)) == [
        "load",
        "keys and indexes",
        "procedures",
        "statistics",
    ]
    assert seen[-1].bytes > 84 * 300_033

    reused = make(database)
    assert (reused.outcome, reused.complete, reused.rows) == ("reused", True, 0)
    assert recognise(database, WORKLOAD, SCALE, SEED).state == "complete"

    first = checksums(database)
    other = EmbeddedEngine(database.server, "other_workers")
    make(other, workers=3)
    assert checksums(other) == first
    other.execute("DROP SCHEMA bank CASCADE; DROP SCHEMA stallmark CASCADE")
    make(other, seed=SEED + 1)
    second = checksums(other)
    assert all(second[name][0] == first[name][0] for name in first)
    assert all(second[name] != first[name] for name in ("accounts", "tellers", "branches"))


def test_what_is_noted_of_a_database(database: EmbeddedEngine) -> None:
    noted = []
    make(database, progress=lambda _: noted.append(ledger.read(database)))
    assert {entry.complete for entry in noted} == {False}
    loaded = ledger.read(database)
    assert loaded and loaded.complete and not loaded.driven
    assert loaded.loaded_bytes == pytest.approx(database.bytes_used(), rel=0.01)
    database.execute("CREATE TABLE bank.more AS SELECT * FROM bank.accounts")
    ledger.note_driven(database)
    make(database)
    grown = ledger.read(database)
    assert grown == dataclasses.replace(loaded, driven=True) and grown.label == loaded.label


def test_pages_are_as_compressible_as_stated(database: EmbeddedEngine) -> None:
    make(database, {"branches": 1})
    database.checkpoint()
    [(path,)] = database.query("SELECT pg_relation_filepath('bank.accounts')")
    heap = (database.server.data / path).read_bytes()
    pages = [page for at in range(0, len(heap), 8192) if (page := heap[at : at + 8192]).strip(b"\0")]
    assert len(pages) >= 100_000 // 61  # the rest was made ready by a bulk extension

    def ratio(codec: str) -> float:
        return len(pages) * 8192 / sum(len(pa.compress(page, codec=codec, asbytes=True)) for page in pages)

    fast, strong = ratio("lz4_raw"), ratio("gzip")
    assert 1.8 < fast < 2.2
    assert 2.2 < strong < 2.8


BUILDER = """
import json, sys
from stallmark.driver.engines import open_engine
from stallmark.loaders.load import build
from stallmark.transactions.bank import WORKLOAD
spec, scale, seed = json.loads(sys.stdin.readline())
build(open_engine(spec), WORKLOAD, scale, seed, workers=2)
"""


def start_builder(database: EmbeddedEngine, scale: dict) -> subprocess.Popen:
    builder = subprocess.Popen([sys.executable, "-c", BUILDER], stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    assert builder.stdin
    builder.stdin.write(json.dumps([database.spec(), scale, SEED]).encode() + b"\n")
    builder.stdin.flush()
    return builder


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT], ids=["kill -9", "Ctrl-C"])
def test_killed_and_built_again(database: EmbeddedEngine, how: signal.Signals) -> None:
    scale = {"branches": 12}
    builder = start_builder(database, scale)
    eventually(lambda: len(ledger.batches(database)) >= 2)
    workers = loaders_of(psutil.Process(builder.pid))
    assert len(workers) == 2
    builder.send_signal(how)
    builder.communicate()
    assert builder.returncode != 0
    _, alive = psutil.wait_procs(workers, timeout=60)
    assert not alive, "a loader outlived its parent"
    eventually(lambda: loader_sessions(database) == 0)

    done = ledger.batches(database)
    found = recognise(database, WORKLOAD, scale, SEED)
    assert found.state == "half-loaded"
    assert f"{len(done)} of 14 batches" in str(found)
    # No half batch: the heap holds exactly what the ledger says.
    [(in_heap,)] = database.query("SELECT count(*) FROM bank.accounts")
    assert in_heap == sum(rows for batch, (rows, _) in done.items() if batch.group == "accounts")

    again = make(database, scale)
    assert again.outcome == "continued"
    assert again.rows == 1_200_132 - sum(rows for rows, _ in done.values())
    untouched = EmbeddedEngine(database.server, f"untouched_{how.name.lower()}")
    make(untouched, scale)
    assert checksums(database) == checksums(untouched)


def test_no_secret_in_the_arguments(database: EmbeddedEngine) -> None:
    secret = PostgresEngine(database.spec().replace("stallmark@", "stallmark:hush@"))
    seen: list[str] = []

    def look(_: Progress) -> None:
        seen.extend(" ".join(p.cmdline()) for p in loaders_of(psutil.Process()))

    make(secret, {"branches": 1}, workers=1, progress=look)
    assert seen
    assert not any("hush" in line for line in seen)


def test_a_dead_worker_is_named_and_nothing_of_its_batch_stays(database: EmbeddedEngine) -> None:
    def kill_one(progress: Progress) -> None:
        if progress.phase == "load" and progress.rows:
            loaders_of(psutil.Process())[0].kill()

    with pytest.raises(
        StallmarkError, match=r"accounts, batch \d+, failed: the loader process \d+ was killed by signal 9"
    ):
        make(database, {"branches": 12}, progress=kill_one)
    assert not loaders_of(psutil.Process())
    assert recognise(database, WORKLOAD, {"branches": 12}, SEED).state == "half-loaded"
    make(database, {"branches": 12})
    assert checksums(database)["accounts"][0] == 1_200_000


def test_the_servers_reason_is_told(database: EmbeddedEngine) -> None:
    def break_it(progress: Progress) -> None:
        if progress.rows == 0:
            database.execute("ALTER TABLE bank.accounts ADD CHECK (aid < 150000)")

    with pytest.raises(StallmarkError, match=r"batch 1, failed: .*violates check constraint.*continues"):
        make(database, workers=1, progress=break_it)


def test_a_key_that_cannot_be_made_is_told(database: EmbeddedEngine) -> None:
    def double_a_row(progress: Progress) -> None:
        if progress.phase == "keys and indexes":
            database.execute("INSERT INTO bank.tellers SELECT * FROM bank.tellers WHERE tid = 5")

    with pytest.raises(
        StallmarkError, match=r"^bank.tellers has several rows with the same tid, the first tid 5 \(2 "
    ):
        make(database, progress=double_a_row)
    assert recognise(database, WORKLOAD, SCALE, SEED).state == "half-loaded"


def test_a_server_that_goes_away_is_told(tmp_path: Path) -> None:
    server = EmbeddedServer(tmp_path / "server")
    database = EmbeddedEngine(server, "lost")

    def stop(progress: Progress) -> None:
        if progress.rows:
            server.stop()

    try:
        with pytest.raises(StallmarkError, match=r"Loading accounts, batch \d+, failed: .*continues"):
            make(database, {"branches": 12}, progress=stop)
        server.start()
        assert make(database, {"branches": 12}).outcome == "continued"
        assert checksums(database)["accounts"][0] == 1_200_000
    finally:
        server.close()


def test_no_worker_is_refused(database: EmbeddedEngine) -> None:
    with pytest.raises(StallmarkError, match="at least one"):
        make(database, workers=0)


def test_a_builder_that_stops_leaves_no_process(database: EmbeddedEngine) -> None:
    def stop(progress: Progress) -> None:
        if progress.rows:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make(database, {"branches": 6}, progress=stop)
    assert not loaders_of(psutil.Process())
    eventually(lambda: loader_sessions(database) == 0)
    [(in_heap,)] = database.query("SELECT count(*) FROM bank.accounts")
    assert in_heap == sum(rows for rows, _ in ledger.batches(database).values())


def test_interrupted_after_the_load(database: EmbeddedEngine) -> None:
    def stop(progress: Progress) -> None:
        if progress.phase == "procedures":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make(database, progress=stop)
    assert recognise(database, WORKLOAD, SCALE, SEED).state == "half-loaded"
    again = make(database)
    assert (again.outcome, again.complete, again.rows) == ("continued", True, 0)
    assert database.query("SELECT bank.transfer(1, 1, 1, 5)") == [(5,)]


def test_parts_of_several_machines(database: EmbeddedEngine) -> None:
    first = make(database, part=Part(1, 2))
    assert (first.outcome, first.complete) == ("created", False)
    assert recognise(database, WORKLOAD, SCALE, SEED).state == "half-loaded"
    second = make(database, part=Part(2, 2))
    assert (second.outcome, second.complete) == ("continued", True)
    assert first.rows + second.rows == 300_033


def test_parts_at_the_same_time(database: EmbeddedEngine) -> None:
    results = []
    machines = [
        threading.Thread(target=lambda k=k: results.append(make(database, part=Part(k, 2), workers=1)))
        for k in (1, 2)
    ]
    for machine in machines:
        machine.start()
    for machine in machines:
        machine.join()
    assert sorted(result.outcome for result in results) == ["continued", "created"]
    assert any(result.complete for result in results)
    assert sum(result.rows for result in results) == 300_033
    assert {name: count for name, (count, _) in checksums(database).items()} == {
        "accounts": 300_000, "tellers": 30, "branches": 3, "history": 0,
    }  # fmt: skip


def test_a_batch_somebody_else_has_loaded_is_rolled_back(database: EmbeddedEngine) -> None:
    from stallmark.schema.ledger import METADATA

    for metadata in (METADATA, deploy.take_apart(WORKLOAD.metadata).tables):
        deploy.create_tables(database, metadata)
    batches = [Batch("tellers", 0), Batch("tellers", 0), Batch("branches", 0)]
    answers = list(worker.load(database, LOADER, SEED, SCALE, iter(batches)))
    assert [answer["rows"] for answer in answers if "rows" in answer] == [30, 0, 3]
    assert database.query("SELECT count(*) FROM bank.tellers") == [(30,)]


def test_who_comes_second_to_a_batch_waits_before_it_writes_and_leaves_it(database: EmbeddedEngine) -> None:
    from stallmark.schema.ledger import METADATA

    for metadata in (METADATA, deploy.take_apart(WORKLOAD.metadata).tables):
        deploy.create_tables(database, metadata)
    batch = Batch("accounts", 0)
    answers: list[dict] = []
    second = threading.Thread(
        target=lambda: answers.extend(worker.load(database, LOADER, SEED, SCALE, iter([batch])))
    )
    waiting = (
        "SELECT query FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' "
        "AND application_name = 'stallmark-loader'"
    )
    with database.bulk_writer() as first:
        first.execute(worker.LEDGER_BEGIN.format(batch=batch))
        second.start()
        eventually(lambda: "stallmark.ledger" in "".join(query for (query,) in database.query(waiting)))
        assert ledger.batches(database) == {}
        first.execute(worker.LEDGER_END.format(batch=batch, rows=7, size=70))
        first.commit()
    second.join()
    assert [answer["rows"] for answer in answers if "rows" in answer] == [0]
    assert ledger.batches(database) == {batch: (7, 70)}
    assert database.query("SELECT pg_relation_size('bank.accounts')") == [(0,)]


def test_who_comes_second_to_a_batch_that_is_rolled_back_loads_it(database: EmbeddedEngine) -> None:
    from stallmark.schema.ledger import METADATA

    for metadata in (METADATA, deploy.take_apart(WORKLOAD.metadata).tables):
        deploy.create_tables(database, metadata)
    batch = Batch("tellers", 0)
    with database.bulk_writer() as first:
        first.execute(worker.LEDGER_BEGIN.format(batch=batch))
    answers = list(worker.load(database, LOADER, SEED, SCALE, iter([batch])))
    assert answers[-1]["rows"] == 30 and ledger.batches(database)[batch][0] == 30


def test_more_parts_than_batches_are_refused_before_anything_is_made(database: EmbeddedEngine) -> None:
    with pytest.raises(
        StallmarkError, match=r"--part 1/6 is a share of nothing: there are 5 batches.*up to 5"
    ):
        make(database, part=Part(1, 6))
    assert ledger.read(database) is None


def test_a_build_that_waits_for_another_says_so(database: EmbeddedEngine) -> None:
    seen: list[Progress] = []
    waiting = threading.Event()

    def follow(progress: Progress) -> None:
        seen.append(progress)
        if progress.phase == "waiting for another build":
            waiting.set()

    second = threading.Thread(target=lambda: make(database, {"branches": 1}, workers=1, progress=follow))
    with deploy.exclusive(database, lambda: None):
        second.start()
        assert waiting.wait(60)
        assert seen == [Progress("waiting for another build", 0, 100_011, 0)]
    second.join()
    assert [progress.phase for progress in seen].count("waiting for another build") == 1
    assert seen[-1].rows == 100_011


def test_another_database_is_refused_with_the_difference(database: EmbeddedEngine) -> None:
    make(database)
    newer = dataclasses.replace(WORKLOAD, version=WORKLOAD.version + 1)
    for workload, scale, seed, said in [
        (
            WORKLOAD,
            {"branches": 4},
            SEED,
            "its scale is branches 3, asked is branches 4. Ask for what it holds, name",
        ),
        (WORKLOAD, SCALE, 8, "its seed is 7, asked is 8. Ask for what it holds, name"),
        (newer, SCALE, SEED, "its version is 1, asked is 2. Name"),
    ]:
        with pytest.raises(StallmarkError) as refusal:
            build(database, workload, scale, seed, workers=1)
        assert f"another one than asked for: {said} another database, or remove" in str(refusal.value)
    with pytest.raises(StallmarkError, match=r"its scale .*; its seed "):
        recognise(database, WORKLOAD, {"branches": 4}, 8)


def test_a_database_of_an_older_stallmark_is_refused(database: EmbeddedEngine) -> None:
    make(database, {"branches": 1})
    database.execute("ALTER TABLE stallmark.database DROP COLUMN loaded_bytes, ADD COLUMN complete boolean")
    with pytest.raises(StallmarkError, match=r"by another version of Stallmark.*build it again"):
        make(database, {"branches": 1})


def test_a_new_load_ends_the_copy_of_what_was_there_before(tmp_path: Path) -> None:
    server = EmbeddedServer(tmp_path / "server")
    try:
        database = EmbeddedEngine(server, "bank")
        make(database, {"branches": 1})
        database.keep_for_restore("the first")
        make(database, {"branches": 1})
        assert database.kept_for_restore() == "the first"
        database.execute("DROP SCHEMA bank CASCADE; DROP SCHEMA stallmark CASCADE")
        make(database, {"branches": 2})
        assert database.kept_for_restore() is None
    finally:
        server.close()


def test_tables_of_somebody_else_are_refused(database: EmbeddedEngine) -> None:
    database.execute("CREATE SCHEMA bank; CREATE TABLE bank.accounts (mine int)")
    with pytest.raises(StallmarkError, match=r"schema 'bank' that Stallmark did not make \(accounts"):
        make(database)
    assert database.query("SELECT count(*) FROM bank.accounts") == [(0,)]


class Full(PostgresEngine):
    def free_bytes(self) -> int | None:
        return 1_000_000_000


def test_a_disk_too_small_is_refused_before_anything_is_made(database: EmbeddedEngine) -> None:
    full = Full(database.spec())
    with pytest.raises(
        StallmarkError, match=r"about 2\.\d GB while it is built, 1\.0 GB are free.*smaller scale"
    ):
        make(full, {"branches": 80})
    assert database.query("SELECT count(*) FROM pg_namespace WHERE nspname IN ('bank', 'stallmark')") == [
        (0,)
    ]
    with pytest.raises(
        StallmarkError, match=r"about 1\.\d GB with the copy that every run starts from, 1\.0 GB are"
    ):
        make(full, {"branches": 25}, to_be_copied=True)
    assert make(full, {"branches": 1}, to_be_copied=True).complete


@pytest.mark.parametrize("seed", [-1, 2**63, 1.5, True, "1"])
def test_an_impossible_seed_is_refused(database: EmbeddedEngine, seed) -> None:
    with pytest.raises(StallmarkError, match="whole number"):
        recognise(database, WORKLOAD, SCALE, seed)


def test_largest_seed(database: EmbeddedEngine) -> None:
    from stallmark.loaders.plan import LARGEST_SEED

    make(database, {"branches": 1}, LARGEST_SEED)
    assert make(database, {"branches": 1}, LARGEST_SEED).outcome == "reused"


def test_leaving_the_crew_ends_it(database: EmbeddedEngine) -> None:
    from stallmark.schema.ledger import METADATA

    for metadata in (METADATA, deploy.take_apart(WORKLOAD.metadata).tables):
        deploy.create_tables(database, metadata)
    batches = Plan(LOADER.groups({"branches": 8})).batches()
    loading = crew.load(database, "bank", SEED, {"branches": 8}, batches, 2)
    next(loading)
    pids = [p.pid for p in loaders_of(psutil.Process())]
    assert len(pids) == 2
    loading.close()
    assert not any(psutil.pid_exists(pid) for pid in pids)
