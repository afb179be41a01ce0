"""The sentence on a batch that failed: it depends on what the writer can roll back."""

from collections.abc import Iterator
from functools import partial

import psutil
import pytest
from support.building import loaders_of
from support.mssql_server import answering, engine_at, says_it_is
from support.tds.answers import Count, Cut, Error, Hold
from support.tds.datatypes import INT, nvarchar
from support.tds.script import Script
from support.tds.tokens import Column
from support.waiting import eventually

from stallmark.engines.base import Engine
from stallmark.engines.mssql.engine import MssqlEngine
from stallmark.engines.postgres.embedded_engine import EmbeddedEngine
from stallmark.errors import StallmarkError
from stallmark.loaders import Batch, worker
from stallmark.loaders.worker import _begun_ahead

pytestmark = pytest.mark.thorough

NOTHING = r"Nothing of this batch was kept; the same build again continues"
TELLERS = [Column("tid", INT), Column("bid", INT), Column("tbalance", INT), Column("filler", nvarchar(84))]
BRANCHES = [Column("bid", INT), Column("bbalance", INT), Column("filler", nvarchar(88))]


@pytest.fixture
def script() -> Script:
    script = Script(databases=["bank"])
    says_it_is(script)
    script.table("bank.tellers", TELLERS)
    script.table("bank.branches", BRANCHES)
    script.sql("stallmark.ledger", Count(1))
    return script


@pytest.fixture
def engine(script: Script) -> Iterator[MssqlEngine]:
    pytest.importorskip("mssql_python", reason="pip install mssql-python", exc_type=ImportError)
    with answering(script) as server:
        yield engine_at(server)


def load(engine: Engine) -> None:
    list(worker.load_batches(engine, "bank", 1, {"branches": 1}, [Batch("tellers", 0)], 1))


def test_what_is_rolled_back_is_not_kept(database: EmbeddedEngine):
    with pytest.raises(StallmarkError, match=rf"Loading tellers, batch 0, failed: .*does not exist\. {NOTHING}"):
        load(database)  # into tables that are not there


def test_what_bulk_copy_has_written_may_be_kept(engine, script):
    script.bulk("bank.tellers", Cut(), after_bytes=10)
    with pytest.raises(StallmarkError, match=r"Rows of this batch may have been kept, .* again removes them"):
        load(engine)


def test_who_never_came_to_write_has_kept_nothing(engine, script):
    script.login(Error(18456, "Login failed for user 'tester'.", severity=14))
    with pytest.raises(StallmarkError, match=rf"the login was refused.*{NOTHING}"):
        load(engine)


def test_the_next_batch_is_begun_while_one_is_written():
    """And no more than that one: its rows wait in memory, or on the disk."""
    begun: list[int] = []

    def make(batch: Batch) -> Iterator[int]:
        begun.append(batch.number)
        yield from (10 * batch.number, 10 * batch.number + 1)

    batches = [Batch("tellers", number) for number in range(4)]
    for batch, pieces in _begun_ahead(make, iter(batches)):  # type: ignore[arg-type]
        expected = list(range(min(batch.number + 2, 4)))
        eventually(partial(begun.__eq__, expected), f"{expected} begun, not {begun}")
        assert list(pieces) == [10 * batch.number, 10 * batch.number + 1]
    assert begun == [0, 1, 2, 3]


def test_a_batch_that_cannot_be_made_is_the_one_that_failed():
    def make(batch: Batch) -> Iterator[int]:
        if batch.number:
            raise StallmarkError("no more text")
        yield 1

    coming = _begun_ahead(make, iter([Batch("tellers", 0), Batch("tellers", 1)]))  # type: ignore[arg-type]
    assert next(coming)[0].number == 0
    with pytest.raises(StallmarkError, match="no more text"):
        next(coming)


def test_who_has_two_batches_loads_both(engine, script):
    batches = [Batch(group, 0) for group in ("tellers", "branches", "tellers")]
    loaded = list(worker.load_batches(engine, "bank", 1, {"branches": 1}, batches, 1))
    assert [(one.batch, one.rows) for one in loaded] == list(zip(batches, (10, 1, 10), strict=True))
    assert all(one.bytes > 0 for one in loaded)


def test_one_that_is_killed_after_its_last_batch_has_done_its_share(engine, script):
    hold = Hold()
    script.bulk("bank.branches", hold, Count(1))
    loading = worker.load_batches(engine, "bank", 1, {"branches": 1}, [Batch("tellers", 0), Batch("branches", 0)], 2)
    assert next(loading).batch.group == "tellers"
    done, _ = sorted(loaders_of(psutil.Process()), key=lambda loader: loader.create_time())
    done.kill()
    done.wait()
    hold.release()
    assert [one.batch.group for one in loading] == ["branches"]
