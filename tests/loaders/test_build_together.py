"""Builds of one database at the same time: parts of several machines, and batches that two of them load."""

import threading
from types import SimpleNamespace
from typing import Any

from support.building import ROWS, SCALE, SEED, TELLERS, checksums, make, make_tables
from support.waiting import eventually

from stallmark.engines.abilities import ServerSession
from stallmark.engines.postgres.embedded_engine import EmbeddedEngine
from stallmark.errors import StallmarkError
from stallmark.loaders import Batch, BatchShare, ledger, worker
from stallmark.loaders.bank import LOADER
from stallmark.loaders.load import BuildProgress
from stallmark.schema import deploy

ORDER = worker.LoaderOrder("", "bank", SEED, SCALE, {})


def test_parts_at_the_same_time(database: EmbeddedEngine) -> None:
    results = []
    machines = [
        threading.Thread(target=lambda k=k: results.append(make(database, part=BatchShare(k, 2), workers=1)))
        for k in (1, 2)
    ]
    for machine in machines:
        machine.start()
    for machine in machines:
        machine.join()
    assert sorted(result.outcome for result in results) == ["continued", "created"]
    assert any(result.complete for result in results)
    assert sum(result.rows for result in results) == ROWS
    assert {name: count for name, (count, _) in checksums(database).items()} == {
        "accounts": 100_000, "tellers": 10, "branches": 1, "history": 0,
    }  # fmt: skip


def test_a_batch_somebody_else_has_loaded_is_rolled_back(database: EmbeddedEngine) -> None:
    make_tables(database)
    batches = [Batch("tellers", 0), Batch("tellers", 0), Batch("branches", 0)]
    answers = list(worker.load(database, LOADER, ORDER, iter(batches)))
    assert [answer.rows for answer in answers if isinstance(answer, worker.Written)] == [10, 0, 1]
    assert database.query("SELECT count(*) FROM bank.tellers") == [(10,)]


def test_who_comes_second_to_a_batch_waits_before_it_writes_and_leaves_it(database: EmbeddedEngine) -> None:
    make_tables(database)
    batch = Batch("accounts", 0)
    answers: list[worker.Answer] = []
    second = threading.Thread(target=lambda: answers.extend(worker.load(database, LOADER, ORDER, iter([batch]))))
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
    assert [answer.rows for answer in answers if isinstance(answer, worker.Written)] == [0]
    assert ledger.batches(database) == {batch: (7, 70)}
    assert database.query("SELECT pg_relation_size('bank.accounts')") == [(0,)]


def test_who_comes_second_to_a_batch_that_is_rolled_back_loads_it(database: EmbeddedEngine) -> None:
    make_tables(database)
    batch = Batch("tellers", 0)
    with database.bulk_writer() as first:
        first.execute(worker.LEDGER_BEGIN.format(batch=batch))
    answers = list(worker.load(database, LOADER, ORDER, iter([batch])))
    assert (
        isinstance(answers[-1], worker.Written) and answers[-1].rows == 10 and ledger.batches(database)[batch][0] == 10
    )


def test_a_build_that_waits_for_another_says_so(database: EmbeddedEngine) -> None:
    seen: list[BuildProgress] = []
    waiting = threading.Event()

    def follow(progress: BuildProgress) -> None:
        seen.append(progress)
        if progress.phase == "waiting for another build":
            waiting.set()

    second = threading.Thread(target=lambda: make(database, workers=1, part=TELLERS, progress=follow))
    with deploy.exclusive(database, lambda: None):
        second.start()
        assert waiting.wait(60)
        assert seen == [BuildProgress("waiting for another build", 0, ROWS, 0)]
    second.join()
    assert [progress.phase for progress in seen].count("waiting for another build") == 1
    assert seen[-1].rows == 10


def test_a_holder_that_is_seen_late_is_told_once(monkeypatch) -> None:
    monkeypatch.setattr(deploy, "SAY_AFTER_S", 0.01)
    holder = ServerSession(7, "psql", "dba", "")
    seen = iter([[], [holder], [holder], [holder, ServerSession(8, "psql", "dba", "")]])
    done, told = threading.Event(), []

    def blockers() -> list[ServerSession]:
        if (now := next(seen, None)) is None:
            done.set()
            raise StallmarkError("the server is away")
        return now

    engine: Any = SimpleNamespace(blockers=blockers)
    engine.databases = lambda: (engine,)
    with deploy.telling_blockers(engine, told.append):
        assert done.wait(60)
    assert told == [
        "Waiting for a lock that session 7 (psql, of dba) holds.",
        "Waiting for a lock that session 7 (psql, of dba) and session 8 (psql, of dba) hold.",
    ]
