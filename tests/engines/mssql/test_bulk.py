"""Bulk load and its ledger."""

import itertools
from collections.abc import Iterator

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.tds.answers import Count, Cut, Error
from support.tds.datatypes import INT, nvarchar
from support.tds.responder import Responder
from support.tds.script import Script
from support.tds.tokens import Column

from stallmark.engines.base import BulkWriter
from stallmark.engines.mssql.engine import MssqlEngine
from stallmark.errors import CallFailed
from stallmark.loaders.bank import LOADER
from stallmark.loaders.plan import Batch
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
