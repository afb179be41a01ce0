"""The buffer pool, emptied or filled before a run."""

from collections.abc import Iterator

import pytest
from support.mssql_server import AZURE_DATABASE, answering, engine_at, rows, says_it_is
from support.tds.answers import Count, Cut, Error, Rows
from support.tds.datatypes import INT, nvarchar
from support.tds.responder import Responder
from support.tds.script import Script
from support.tds.tokens import Column

from stallmark.engines.mssql.engine import MssqlEngine
from stallmark.errors import CallFailed, StallmarkError

ROLE = {"has": 1}
DROP = "DBCC DROPCLEANBUFFERS WITH NO_INFOMSGS"


@pytest.fixture
def ours(engine: MssqlEngine, script: Script) -> MssqlEngine:
    """A server with two databases beside ours, whose caches may be emptied; into `closed` this login may not go."""
    script.sql("ALTER SERVER STATE", Rows([Column("may", INT)], [(1,)]))
    columns = [Column("name", nvarchar(128)), Column("may", INT)]
    script.sql("(?s)FROM sys.databases.*<> DB_ID", Rows(columns, [("odd]name", 1), ("closed", 0)]))
    engine.caches.allowed = True
    return engine


def said(server: Responder) -> list[str]:
    return [request.text for request in server.requests if "CHECKPOINT" in request.text or "DBCC" in request.text]


def test_caches_of_others_are_emptied_only_when_told_so(ours):
    assert ours.caches.refusal() is None
    ours.caches.allowed = False
    assert "caches of everybody on the server: add --drop-caches" in str(ours.caches.refusal())


def test_what_is_dirty_is_written_database_by_database(ours, server, script):
    script.sql("CHECKPOINT|DROPCLEANBUFFERS", Count(0))
    [left] = ours.caches.empty()
    assert said(server) == ["CHECKPOINT", "USE [odd]]name]; CHECKPOINT", DROP]
    assert left.endswith("CHECKPOINT failed: closed (this login may not enter it).")


@pytest.mark.parametrize(
    "refusal",
    [
        Error(262, "CHECKPOINT permission denied in database 'odd]name'.", severity=14),
        Error(916, "The server principal is not able to access the database.", severity=14),
        Error(924, "Database 'odd]name' is already open and can only have one user at a time.", severity=14),
        Error(976, "The target database is participating in an availability group.", severity=14),
        Error(823, "The operating system returned an error.", severity=16),
    ],
)
def test_a_database_of_others_in_which_it_fails_is_named_with_the_reason(ours, server, script, refusal):
    script.sql("odd.*CHECKPOINT", refusal)
    script.sql("CHECKPOINT|DROPCLEANBUFFERS", Count(0))
    [left] = ours.caches.empty()
    assert left.endswith(f"odd]name ({refusal.text.rstrip('.')}), closed (this login may not enter it).")
    assert said(server)[-1] == DROP


def test_a_refusal_that_comes_behind_the_first_result_is_seen(ours, script):
    script.sql("odd.*CHECKPOINT", Count(0), Error(262, "CHECKPOINT permission denied.", severity=14))
    script.sql("CHECKPOINT|DROPCLEANBUFFERS", Count(0))
    [left] = ours.caches.empty()
    assert "odd]name" in left


@pytest.mark.parametrize(
    ("where", "answer"),
    [("^CHECKPOINT", Error(823, "I/O error", severity=16)), ("odd.*CHECKPOINT", Cut())],
    ids=["our own database", "the connection"],
)
def test_what_concerns_us_is_no_note(ours, server, script, where, answer):
    script.sql(where, answer)
    script.sql("CHECKPOINT", Count(0))
    with pytest.raises(CallFailed):
        ours.caches.empty()
    assert DROP not in said(server)


# Azure SQL Database: one database is all that a connection can enter


@pytest.fixture
def azure() -> Iterator[Responder]:
    script = Script(databases=["bank"])
    says_it_is(script, "12.0.2000.8", edition=AZURE_DATABASE)
    script.sql("##MS_ServerStateManager##", lambda _: [Rows([Column("may", INT)], [(ROLE["has"],)])])
    script.sql("CHECKPOINT|DROPCLEANBUFFERS", Count(0))
    with answering(script) as server:
        yield server


def test_on_azure_our_own_database_alone_is_written_and_no_other_entered(azure):
    assert engine_at(azure).caches.empty() == []
    assert said(azure) == ["CHECKPOINT", DROP]
    assert not [request for request in azure.requests if request.text.startswith("USE [")]


def test_on_azure_it_needs_a_role_and_reaches_the_neighbours(azure, monkeypatch):
    engine = engine_at(azure)
    assert "every database of the same elastic pool" in str(engine.caches.refusal())
    engine.caches.allowed = True
    assert engine.caches.refusal() is None
    monkeypatch.setitem(ROLE, "has", 0)
    assert "##MS_ServerStateManager##" in str(engine.caches.refusal())


@pytest.mark.parametrize("number", [2571, 300])
def test_caches_that_cannot_be_emptied_are_a_sentence(ours, script, number):
    script.sql("CHECKPOINT", Count(0))
    script.sql("DROPCLEANBUFFERS", Error(number, "User does not have permission.", severity=14))
    with pytest.raises(StallmarkError, match=r"refused to empty its caches.*\(User does not have permission\)"):
        ours.caches.empty()


def test_prefilling_reads_texts_in_pages_of_their_own_and_the_segments_of_a_columnstore(engine, server, script):
    """COUNT(*) reads neither: a text without a limit lies in LOB_DATA pages ("Pages and extents architecture guide"),
    and a columnstore has its rows counted in sys.column_store_row_groups."""
    script.sql(
        "long_texts",
        rows(
            ["table_name", "index_id", "pages", "is_columnstore", "long_texts"],
            ("[b].[news_item]", 1, 100, 0, "CHARINDEX(CHAR(1), [ni_item])"),
            ("[b].[news_item]", 2, 5, 0, None),
            ("[b].[lineitem]", 1, 20, 1, None),
        ),
    )
    script.sql("TABLOCK", rows(["read"], (1,)))
    assert engine.prefill.fill("b") == 125 * 8192
    assert [request.text for request in server.requests if "TABLOCK" in (request.text or "")] == [
        "SELECT COUNT_BIG(*), SUM(CAST(CHARINDEX(CHAR(1), [ni_item]) AS bigint)) FROM [b].[news_item] "
        "WITH (INDEX(1), TABLOCK)",
        "SELECT COUNT_BIG(*) FROM [b].[news_item] WITH (INDEX(2), TABLOCK)",
        "SELECT CHECKSUM_AGG(BINARY_CHECKSUM(*)) FROM [b].[lineitem] WITH (INDEX(1), TABLOCK)",
    ]
