"""The buffer pool, emptied before a run."""

import pytest
from tds.answers import Count, Error, Rows
from tds.datatypes import INT, nvarchar
from tds.responder import Responder
from tds.script import Script
from tds.tokens import Column

from stallmark.driver.engines.errors import CallFailed, StallmarkError
from stallmark.driver.engines.mssql.engine import MssqlEngine

DROP = "DBCC DROPCLEANBUFFERS WITH NO_INFOMSGS"


@pytest.fixture
def ours(engine: MssqlEngine, script: Script) -> MssqlEngine:
    """A server with three databases, whose caches may be emptied; into `closed` this login may not go."""
    script.sql("ALTER SERVER STATE", Rows([Column("may", INT)], [(1,)]))
    columns = [Column("name", nvarchar(128)), Column("may", INT)]
    script.sql("FROM sys.databases", Rows(columns, [("bank", 1), ("odd]name", 1), ("closed", 0)]))
    engine.may_drop_caches = True
    return engine


def said(server: Responder) -> list[str]:
    return [
        request.text for request in server.requests if "CHECKPOINT" in request.text or "DBCC" in request.text
    ]


def test_caches_of_others_are_emptied_only_when_told_so(ours):
    assert ours.cannot("cold_cache") is None
    ours.may_drop_caches = False
    assert "--drop-caches" in str(ours.cannot("cold_cache"))


def test_what_is_dirty_is_written_database_by_database(ours, server, script):
    script.sql("CHECKPOINT|DROPCLEANBUFFERS", Count(0))
    [left] = ours.drop_caches()
    assert said(server) == ["USE [bank]; CHECKPOINT", "USE [odd]]name]; CHECKPOINT", DROP]
    assert left.endswith("may not CHECKPOINT: closed.")


@pytest.mark.parametrize(
    "refusal",
    [
        Error(262, "CHECKPOINT permission denied in database 'odd]name'.", severity=14),
        Error(916, "The server principal is not able to access the database.", severity=14),
    ],
)
def test_a_database_in_which_it_is_refused_is_named(ours, server, script, refusal):
    script.sql("odd.*CHECKPOINT", refusal)
    script.sql("CHECKPOINT|DROPCLEANBUFFERS", Count(0))
    [left] = ours.drop_caches()
    assert left.endswith("may not CHECKPOINT: odd]name, closed.")
    assert said(server)[-1] == DROP


def test_a_refusal_that_comes_behind_the_first_result_is_seen(ours, script):
    script.sql("odd.*CHECKPOINT", Count(0), Error(262, "CHECKPOINT permission denied.", severity=14))
    script.sql("CHECKPOINT|DROPCLEANBUFFERS", Count(0))
    [left] = ours.drop_caches()
    assert "odd]name" in left


def test_what_is_no_refusal_is_not_taken_for_one(ours, server, script):
    script.sql("CHECKPOINT", Error(823, "I/O error", severity=16))
    with pytest.raises(CallFailed, match="I/O error"):
        ours.drop_caches()
    assert DROP not in said(server)


@pytest.mark.parametrize("number", [2571, 300])
def test_caches_that_cannot_be_emptied_are_a_sentence(ours, script, number):
    script.sql("CHECKPOINT", Count(0))
    script.sql("DROPCLEANBUFFERS", Error(number, "User does not have permission.", severity=14))
    with pytest.raises(
        StallmarkError, match=r"refused to empty its caches.*\(User does not have permission\)"
    ):
        ours.drop_caches()
