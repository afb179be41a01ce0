"""Building a database on a real server: whole, recognised, and refused when it is another."""

import dataclasses
from pathlib import Path
from types import SimpleNamespace

import psutil
import pyarrow as pa
import pytest
from support.building import ROWS, SCALE, SEED, checksums, copy_of, loaders_of, make, stop
from support.embedded_servers import copied

from stallmark.engines.postgres.embedded_engine import EmbeddedEngine
from stallmark.engines.postgres.embedded_server import EmbeddedServer
from stallmark.engines.postgres.engine import PostgresEngine
from stallmark.errors import StallmarkError
from stallmark.loaders import LARGEST_SEED, BatchShare, ledger
from stallmark.loaders.load import BuildProgress, BuildResult, build, recognise
from stallmark.transactions.bank import WORKLOAD


@dataclasses.dataclass
class Built:
    """A database, and what was to be seen while it was built."""

    engine: EmbeddedEngine
    result: BuildResult
    progress: list[BuildProgress]
    entries: list[ledger.Entry | None]
    arguments: list[str]
    """Of loader processes."""


@pytest.fixture(scope="module")
def built(embedded_server: EmbeddedServer) -> Built:
    """By one worker, at a URL with a password. Tests leave it as it is."""
    engine = EmbeddedEngine(embedded_server, "built")
    progress: list[BuildProgress] = []
    entries, arguments = [], []

    def follow(now: BuildProgress) -> None:
        progress.append(now)
        entries.append(ledger.read(engine))
        arguments.extend(" ".join(p.cmdline()) for p in loaders_of(psutil.Process()))

    secret = PostgresEngine(engine.spec().replace("stallmark@", "stallmark:hush@"))
    return Built(engine, make(secret, workers=1, progress=follow), progress, entries, arguments)


def test_what_a_build_tells(built: Built) -> None:
    result, seen = built.result, built.progress
    assert (result.outcome, result.complete, result.rows) == ("created", True, ROWS)
    assert [p.rows for p in seen] == sorted(p.rows for p in seen)
    assert seen[0] == BuildProgress("load", 0, ROWS, 0)
    assert seen[-1].rows == seen[-1].rows_total == ROWS
    assert list(dict.fromkeys(p.phase for p in seen)) == ["load", "statistics", "keys and indexes", "procedures"]
    assert seen[-1].bytes > 84 * ROWS
    assert {entry.complete for entry in built.entries if entry} == {False}
    assert built.arguments and not any("hush" in line for line in built.arguments)


def test_what_is_there_is_reused(built: Built) -> None:
    assert recognise(built.engine, WORKLOAD, SCALE, SEED).state == "complete"
    reused = make(built.engine)
    assert (reused.outcome, reused.complete, reused.rows) == ("reused", True, 0)


def test_the_seed_decides_the_rows_and_not_the_workers(built: Built, database: EmbeddedEngine) -> None:
    assert recognise(database, WORKLOAD, SCALE, SEED).state == "absent"
    make(database, workers=3)
    first = checksums(built.engine)
    assert checksums(database) == first
    database.execute("DROP SCHEMA bank CASCADE; DROP SCHEMA stallmark CASCADE")
    make(database, seed=LARGEST_SEED, workers=1)
    second = checksums(database)
    assert all(second[name][0] == first[name][0] for name in first)
    assert all(second[name] != first[name] for name in ("accounts", "tellers", "branches"))
    assert make(database, seed=LARGEST_SEED).outcome == "reused"


def test_what_is_noted_of_a_database(built: Built) -> None:
    database = copy_of(built.engine, "noted")
    loaded = ledger.read(database)
    assert loaded and loaded.complete and not loaded.driven
    assert loaded.loaded_bytes == pytest.approx(database.bytes_used(), rel=0.01)
    database.execute("CREATE TABLE bank.more AS SELECT * FROM bank.accounts")
    ledger.note_driven(database)
    make(database)
    grown = ledger.read(database)
    assert grown == dataclasses.replace(loaded, driven=True) and grown.label == loaded.label


def test_pages_are_as_compressible_as_stated(built: Built) -> None:
    built.engine.checkpoint()
    [(path,)] = built.engine.query("SELECT pg_relation_filepath('bank.accounts')")
    heap = (built.engine.server.data / path).read_bytes()
    pages = [page for at in range(0, len(heap), 8192) if (page := heap[at : at + 8192]).strip(b"\0")]
    assert len(pages) >= 100_000 // 61  # the rest was made ready by a bulk extension

    def ratio(codec: str) -> float:
        return len(pages) * 8192 / sum(len(pa.compress(page, codec=codec, asbytes=True)) for page in pages)

    fast, strong = ratio("lz4_raw"), ratio("gzip")
    assert 1.8 < fast < 2.2
    assert 2.2 < strong < 2.8


def test_no_worker_is_refused(database: EmbeddedEngine) -> None:
    with pytest.raises(StallmarkError, match="at least one"):
        make(database, workers=0)


def test_more_parts_than_batches_are_refused_before_anything_is_made(database: EmbeddedEngine) -> None:
    with pytest.raises(StallmarkError, match=r"--part 1/5 is a share of nothing: there are 3 batches.*up to 3"):
        make(database, part=BatchShare(1, 5))
    assert ledger.read(database) is None


def test_another_database_is_refused_with_the_difference(built: Built) -> None:
    newer = dataclasses.replace(WORKLOAD, version=WORKLOAD.version + 1)
    for workload, scale, seed, said in [
        (WORKLOAD, {"branches": 4}, SEED, "its scale is branches 1, asked is branches 4. Ask for what it holds, name"),
        (WORKLOAD, SCALE, 8, "its seed is 7, asked is 8. Ask for what it holds, name"),
    ]:
        with pytest.raises(StallmarkError) as refusal:
            build(built.engine, workload, scale, seed, workers=1)
        assert f"another one than asked for: {said} another database, or remove" in str(refusal.value)
    with pytest.raises(
        StallmarkError, match=r"by data version 1 of the bank, and this Stallmark has 2: `stallmark db rem"
    ):
        build(built.engine, newer, SCALE, SEED, workers=1)
    with pytest.raises(
        StallmarkError, match=r"its version is 1, asked is 2; its scale .*Name another database, or remove"
    ):
        recognise(built.engine, newer, {"branches": 4}, SEED)
    with pytest.raises(StallmarkError, match=r"its scale .*; its seed "):
        recognise(built.engine, WORKLOAD, {"branches": 4}, 8)


def test_a_database_of_an_older_stallmark_is_refused(built: Built) -> None:
    database = copy_of(built.engine, "older")
    database.execute("ALTER TABLE stallmark.database DROP COLUMN loaded_bytes, ADD COLUMN complete boolean")
    with pytest.raises(StallmarkError, match=r"by another version of Stallmark.*build it again"):
        make(database)


def test_a_new_load_ends_the_copy_of_what_was_there_before(template: Path) -> None:
    with copied(template) as server:
        database = EmbeddedEngine(server, "bank")
        make(database)
        database.backup.keep("the first")
        make(database)
        assert database.backup.label() == "the first"
        database.execute("DROP SCHEMA bank CASCADE; DROP SCHEMA stallmark CASCADE")
        with pytest.raises(KeyboardInterrupt):
            make(database, progress=stop)
        assert database.backup.label() is None


def test_tables_of_somebody_else_are_refused(database: EmbeddedEngine) -> None:
    database.execute("CREATE SCHEMA bank; CREATE TABLE bank.accounts (mine int)")
    with pytest.raises(StallmarkError, match=r"schema 'bank' that Stallmark did not make \(accounts"):
        make(database)
    assert database.query("SELECT count(*) FROM bank.accounts") == [(0,)]


class Full(PostgresEngine):
    backup = SimpleNamespace(copy_bytes=lambda loaded: loaded, drop=lambda: None)  # type: ignore[assignment]

    def free_bytes(self) -> int | None:
        return 1_000_000_000


def test_a_disk_too_small_is_refused_before_anything_is_made(database: EmbeddedEngine) -> None:
    full = Full(database.spec())
    with pytest.raises(StallmarkError, match=r"about 2[.\d]*\sGiB while it is built, 954\sMiB are free.*smaller scale"):
        make(full, {"branches": 80})
    with pytest.raises(StallmarkError, match=r"about [\d.,]+\s.iB with the copy that every run starts from, 954\s"):
        make(full, {"branches": 25}, to_be_copied=True)
    assert database.query("SELECT count(*) FROM pg_namespace WHERE nspname IN ('bank', 'stallmark')") == [(0,)]
    with pytest.raises(KeyboardInterrupt):  # this one has room, and begins
        make(full, {"branches": 1}, to_be_copied=True, progress=stop)


@pytest.mark.parametrize("seed", [-1, 2**63, 1.5, True, "1"])
def test_an_impossible_seed_is_refused(database: EmbeddedEngine, seed) -> None:
    with pytest.raises(StallmarkError, match="whole number"):
        recognise(database, WORKLOAD, SCALE, seed)
