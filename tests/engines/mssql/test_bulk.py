"""Bulk load and its ledger."""

import itertools
from collections.abc import Callable, Iterator

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.tds.answers import Count, Cut, Error, Rows
from support.tds.datatypes import BIGINT, BIT, DATE, FLOAT, INT, SMALLINT, char, datetime2, decimal, nvarchar, varchar
from support.tds.requests import Request
from support.tds.responder import Responder
from support.tds.script import Script
from support.tds.tokens import Column

from stallmark.engines.base import BulkWriter
from stallmark.engines.mssql.bulk import ROWS, try_bulk_copy
from stallmark.engines.mssql.engine import MssqlEngine
from stallmark.errors import CallFailed, StallmarkError
from stallmark.loaders import Batch
from stallmark.loaders.bank import LOADER
from stallmark.loaders.worker import AlreadyLoaded, load_batch

TELLERS = [Column("tid", INT), Column("bid", INT), Column("tbalance", INT), Column("filler", nvarchar(84))]


@pytest.fixture
def writer(engine: MssqlEngine, script: Script) -> Iterator[BulkWriter]:
    pytest.importorskip("mssql_python", reason="pip install mssql-python", exc_type=ImportError)
    script.table("bank.tellers", TELLERS)
    with engine.bulk_writer() as writer:
        yield writer


def ledger_words(server: Responder) -> list[str]:
    texts = [request.text for request in server.requests if request.kind == "batch" and "ledger" in request.text]
    return ["begin" if "sp_getapplock" in text else text.split()[0] for text in texts]


def test_a_batch_is_begun_in_the_ledger_before_its_first_row_and_ended_after_its_last(writer, server, script):
    script.sql("stallmark.ledger", Count(1))
    rows, size = load_batch(
        writer, LOADER, {"branches": 3}, Batch("tellers", 0), LOADER.batch(1, {"branches": 3}, Batch("tellers", 0))
    )
    kinds = ["bulk" if r.kind == "bulk" else "ledger" for r in server.requests
             if r.kind == "bulk" or (r.text and "stallmark.ledger" in r.text)]  # fmt: skip
    assert kinds == ["ledger", "bulk", "ledger"]
    [bulk] = [request for request in server.requests if request.kind == "bulk"]
    assert rows == len(bulk.rows) == 30 and size > 0
    assert [row[:3] for row in bulk.rows[:2]] == [(1, 1, 0), (2, 1, 0)]
    begun = next(r.text for r in server.requests if r.text and "sp_getapplock" in r.text)
    assert "DELETE FROM bank.tellers WHERE tid BETWEEN 1 AND 30;" in begun
    assert ledger_words(server) == ["begin", "UPDATE"]


def test_a_batch_that_another_loader_is_at_is_left_to_it(writer, server, script):
    script.sql("sp_getapplock", Error(50001, "Another loader is at this batch.", severity=16))
    with pytest.raises(AlreadyLoaded):
        load_batch(
            writer, LOADER, {"branches": 3}, Batch("tellers", 0), LOADER.batch(1, {"branches": 3}, Batch("tellers", 0))
        )
    assert not [request for request in server.requests if request.kind == "bulk"]


def test_a_bulk_copy_that_is_cut_leaves_its_batch_begun(writer, server, script):
    script.sql("stallmark.ledger", Count(1))
    script.bulk("bank.tellers", Cut(), after_bytes=10)
    with pytest.raises(CallFailed):
        load_batch(
            writer, LOADER, {"branches": 3}, Batch("tellers", 0), LOADER.batch(1, {"branches": 3}, Batch("tellers", 0))
        )
    assert ledger_words(server) == ["begin"]


def load(writer: BulkWriter) -> tuple[int, int]:
    batch = Batch("tellers", 0)
    return load_batch(writer, LOADER, {"branches": 3}, batch, LOADER.batch(1, {"branches": 3}, batch))


def test_all_pieces_come_by_one_login(writer, server, script):
    script.table("bank.branches", TELLERS[1:2])
    for table, column in (("bank.tellers", "tid"), ("bank.branches", "bid"), ("bank.tellers", "tid")):
        writer.write(table, pa.table({column: pa.array([1, 2], pa.int32())}))
    loads = [request for request in server.requests if request.kind == "bulk"]
    assert [each.table for each in loads] == ["bank.tellers", "bank.branches", "bank.tellers"]
    assert len({each.connection for each in loads}) == 1
    assert [login.library for login in server.logins].count("mssql-python") == 1


def by_url(server: Responder, options: str) -> MssqlEngine:
    return MssqlEngine(f"mssql://boss@127.0.0.1:{server.port}/bank?TrustServerCertificate=yes&{options}")


def test_options_of_the_odbc_driver_alone_do_not_disturb_it(engine, server, script):
    script.table("bank.tellers", TELLERS)
    script.sql("stallmark.ledger", Count(1))
    with by_url(server, "Language=us_english&encrypt=yes&KeepAlive=20").bulk_writer() as writer:
        assert writer.limited is None and load(writer)[0] == 30
    assert [len(request.rows) for request in server.requests if request.kind == "bulk"] == [30]


@pytest.mark.parametrize("options", ["BulkCopy=no", "Encrypt=yes"])
def test_without_bulk_copy_rows_are_inserted_into_the_batch_that_one_had_begun(engine, server, script, options):
    """SQL Server 2019 closes the login of the bulk copy, and no other (microsoft/mssql-python #750)."""
    pytest.importorskip("mssql_python", reason="pip install mssql-python", exc_type=ImportError)
    script.sql("stallmark.ledger", Count(1))
    script.sql("INSERT INTO bank.tellers", Count(30))
    script.login(Cut(), library="mssql-python")
    with by_url(server, options).bulk_writer() as writer:
        writer.fast_executemany = False  # which holds the lock of this process, in which the responder is
        assert load(writer)[0] == 30
    assert (writer.limited is None) == (options == "BulkCopy=no")
    assert ledger_words(server) == ["begin", "UPDATE"]
    inserted = [request.values for request in server.requests if "INSERT INTO bank.tellers" in request.text]
    assert sum(map(len, inserted)) == 30 * 4 and not [request for request in server.requests if request.kind == "bulk"]


def test_the_switch_reaches_the_loaders(server):
    assert not MssqlEngine(by_url(server, "bulkcopy=No").spec()).address.bulk_copy
    with pytest.raises(StallmarkError, match="neither yes nor no"):
        by_url(server, "BulkCopy=maybe")


@pytest.mark.thorough
@given(branches=st.integers(1, 30), data=st.data())
def test_the_rows_of_a_batch_are_told_from_all_others(branches, data):
    groups = LOADER.groups({"branches": branches})
    group = data.draw(st.sampled_from(groups))
    ranges = []
    for number in range(group.batches):
        [(table, condition)] = LOADER.rows_of({"branches": branches}, Batch(group.name, number)).items()
        column, _, first, _, last = condition.split()
        [(written, rows)] = LOADER.batch(1, {"branches": branches}, Batch(group.name, number))
        keys = rows[column]
        assert (table, int(first), int(last)) == (written, keys[0].as_py(), keys[-1].as_py())
        ranges.append((int(first), int(last)))
    assert isinstance(rows, pa.Table)
    assert all(before[1] < after[0] for before, after in itertools.pairwise(ranges))


# The doctor's trial of bulk copy, when rows come back as they were written, and when not


TYPES = [
    INT, BIGINT, SMALLINT, BIT, FLOAT, decimal(15, 2), decimal(6, 5), DATE, datetime2(3), datetime2(7), char(10),
    varchar(40), varchar(),
]  # fmt: skip
COLUMNS = [Column(name, kind) for name, kind in zip(ROWS.column_names, TYPES, strict=True)]


CREATE = "CREATE TABLE ##stallmark_57 .* article varchar"


def scripted(script: Script, change: Callable[[list], list] = list, **fails: Error) -> list[tuple]:
    """The table of the trial, which gives back the rows that came after a `change`; what came."""
    pytest.importorskip("mssql_python", reason="pip install mssql-python", exc_type=ImportError)
    came: list[tuple] = []

    def arrive(request: Request) -> list:
        came.extend(request.rows)
        return [fails["bulk"]] if "bulk" in fails else []

    script.sql(f"(?s){CREATE}", *([fails["create"]] if "create" in fails else []))
    script.table("tempdb..##stallmark_57", COLUMNS)
    script.bulk("##stallmark_57", arrive)
    script.sql("SELECT .* FROM ##stallmark_57", lambda _: [Rows(COLUMNS, change(came))])
    return came


def test_rows_of_every_type_come_back(engine, script):
    came = scripted(script)
    assert try_bulk_copy(engine).state == "ok"
    assert len(came) == 3 and came[1][1:] == (None,) * 12


def test_a_value_that_is_changed_on_the_way_is_said_by_its_column(engine, script):
    scripted(script, lambda rows: [(*row[:4], 0.5, *row[5:]) for row in rows])
    found = try_bulk_copy(engine)
    assert found.state == "missing" and "(ratio)" in found.sentence and "?BulkCopy=no" in found.sentence


@pytest.mark.parametrize(
    ("at", "error"),
    [
        ("create", Error(262, "CREATE TABLE permission denied in database 'tempdb'.")),
        ("bulk", Error(4815, "Received an invalid column length from the bcp client.")),
    ],
)
def test_a_trial_that_fails_says_why(engine, script, at, error):
    scripted(script, **{at: error})
    found = try_bulk_copy(engine)
    assert found.state == "missing" and error.text.rstrip(".") in found.sentence


def test_without_a_login_of_its_own_rows_are_inserted(engine, script):
    scripted(script)
    script.login(Cut(), library="mssql-python")
    assert try_bulk_copy(engine).state == "limited"
