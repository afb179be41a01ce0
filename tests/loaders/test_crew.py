"""What is said of a batch that failed: it depends on what the writer can roll back."""

from collections.abc import Iterator

import pytest
from mssql_server import answering, engine_at, says_it_is
from tds.answers import Count, Cut, Error
from tds.datatypes import INT, nvarchar
from tds.script import Script
from tds.tokens import Column

from stallmark.driver.engines.base import Engine
from stallmark.driver.engines.embedded import EmbeddedEngine
from stallmark.driver.engines.errors import StallmarkError
from stallmark.driver.engines.mssql.engine import MssqlEngine
from stallmark.loaders import crew
from stallmark.loaders.plan import Batch

NOTHING = r"Nothing of this batch was kept; the same build again continues"
TELLERS = [Column("tid", INT), Column("bid", INT), Column("tbalance", INT), Column("filler", nvarchar(84))]


@pytest.fixture
def script() -> Script:
    script = Script(databases=["bank"])
    says_it_is(script)
    script.table("bank.tellers", TELLERS)
    script.sql("stallmark.ledger", Count(1))
    return script


@pytest.fixture
def engine(script: Script) -> Iterator[MssqlEngine]:
    pytest.importorskip("mssql_python", reason="pip install mssql-python", exc_type=ImportError)
    with answering(script) as server:
        yield engine_at(server)


def load(engine: Engine) -> None:
    list(crew.load(engine, "bank", 1, {"branches": 1}, [Batch("tellers", 0)], 1))


def test_what_is_rolled_back_is_not_kept(database: EmbeddedEngine):
    with pytest.raises(
        StallmarkError, match=rf"Loading tellers, batch 0, failed: .*does not exist\. {NOTHING}"
    ):
        load(database)  # into tables that are not there


def test_what_bulk_copy_has_written_may_be_kept(engine, script):
    script.bulk("bank.tellers", Cut(), after_bytes=10)
    with pytest.raises(StallmarkError, match=r"Rows of this batch may have been kept, .* again removes them"):
        load(engine)


def test_who_never_came_to_write_has_kept_nothing(engine, script):
    script.login(Error(18456, "Login failed for user 'tester'.", severity=14))
    with pytest.raises(StallmarkError, match=rf"the login was refused.*{NOTHING}"):
        load(engine)


def test_a_batch_that_is_whole_says_its_rows(engine):
    [loaded] = crew.load(engine, "bank", 1, {"branches": 1}, [Batch("tellers", 0)], 1)
    assert loaded.rows == 10 and loaded.bytes > 0
