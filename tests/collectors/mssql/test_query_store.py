"""Query Store is read where it is on, and left alone where it is off."""

from collections.abc import Callable

import pytest
from support.collecting import read
from support.mssql_server import Server, rows
from support.scripted_views import answered
from support.tds.answers import Rows

from stallmark.collectors.mssql.statements import QueryStore, QueryStoreState, QueryStoreWaits
from stallmark.record.query_store import how_to_resume, why_stopped

STATE = "current_storage_size_mb"
SET_ON = "run ALTER DATABASE CURRENT SET QUERY_STORE = ON (OPERATION_MODE = READ_WRITE);"


FULL = (
    " (it is full)",
    "enlarge it (ALTER DATABASE CURRENT SET QUERY_STORE (MAX_STORAGE_SIZE_MB = …);) or clear it (ALTER DATABASE "
    f"CURRENT SET QUERY_STORE CLEAR ALL; (which forgets all that it has)), and then {SET_ON}",
)


def states(*options: tuple[str, str, str, int | None]) -> Rows:
    """The answer of a database with this state, what it captures, if it counts waits, and why it is read-only."""
    told = [
        (1.5, "query store", state, reason, capture, waits, 12 << 20, 1000 << 20)
        for state, capture, waits, reason in options
    ]
    return rows(QueryStoreState.columns.names[:-1], *told)


@pytest.mark.parametrize(
    ("state", "reason", "said"),
    [
        ("OFF", 0, ("", SET_ON)),
        ("READ_ONLY", 0, ("", SET_ON)),  # somebody set it
        ("READ_ONLY", None, ("", SET_ON)),
        ("READ_ONLY", 65536, FULL),
        ("READ_ONLY", 8, (" (the database is a secondary replica)", "name the primary")),
        ("READ_CAPTURE_SECONDARY", 0, ("", "name the primary")),
    ],
)
@pytest.mark.parametrize("kind", [QueryStore, QueryStoreWaits, QueryStoreState])
def test_where_it_does_not_write_it_is_off(
    server: Server, kind: type[QueryStore], state: str, reason: int | None, said: tuple[str, str]
) -> None:
    server.script.sql(STATE, states((state, "ALL", "ON", reason)))
    collector = answered(server, kind)
    why, remedy = said
    assert collector.unavailable() == (
        f"Query Store is {state} in this database{why}, and Stallmark leaves it so: to have it, {remedy}"
    )
    assert not server.asked("ALTER DATABASE")


@pytest.mark.parametrize(
    ("reason", "words"),
    [(131072, "CLEAR ALL"), (262144, "wait:"), (524288, "enlarge the database"), (65536, "MAX_STO")],
)
def test_what_a_store_that_stopped_by_itself_needs_is_never_read_write_alone(reason: int, words: str) -> None:
    assert why_stopped(reason) and words in how_to_resume("READ_ONLY", reason)
    assert not how_to_resume("READ_ONLY", reason).startswith(SET_ON)
    assert why_stopped(0) is why_stopped(None) is None


def test_an_error_is_mended_by_the_check_of_its_consistency() -> None:
    assert "sp_query_store_consistency_check" in how_to_resume("ERROR", 0)


@pytest.mark.parametrize(
    ("lengths", "separate"),
    [((1, 8, 8), True), ((None, None, None), False), ((None, 8, 8), False), ((1, 8, None), False)],
)
@pytest.mark.parametrize("version", ["16.0.4105.2", "17.0.1000.7"])
@pytest.mark.parametrize("kind", [QueryStore, QueryStoreWaits])
def test_other_replicas_counts_are_left_out_if_the_server_has_the_columns(
    new_server: Callable[..., Server], kind: type[QueryStore], version: str, lengths: tuple[int | None], separate: bool
) -> None:
    server = new_server(version=version)
    server.script.sql("COL_LENGTH", rows(["role", "counts", "waits"], lengths))
    collector = answered(server, kind)
    assert collector.unavailable() is None
    assert ("role_type NOT IN (1, 3)" in collector.sql) is separate
    assert ("replica" in collector.sql) is separate


def test_a_database_that_has_none(server: Server) -> None:
    server.script.sql(STATE, states())
    assert str(answered(server, QueryStore).unavailable()).startswith("Query Store is OFF in this database")


def test_waits_that_it_does_not_count(server: Server) -> None:
    server.script.sql(STATE, states(("READ_WRITE", "ALL", "OFF", 0)))
    assert answered(server, QueryStore).unavailable() is None
    assert answered(server, QueryStoreWaits).unavailable() == (
        "Query Store counts no waits in this database (WAIT_STATS_CAPTURE_MODE = OFF)."
    )


@pytest.mark.parametrize("capture", ["AUTO", "NONE", "CUSTOM"])
def test_what_it_leaves_out_is_said(server: Server, capture: str) -> None:
    server.script.sql(STATE, states(("READ_WRITE", capture, "ON", 0)))
    assert answered(server, QueryStore).limited() == (
        f"Query Store captures {capture}, so it leaves out statements that it thinks do not matter."
    )
    assert answered(server, QueryStoreWaits).limited() is None


def test_totals_are_stored_as_they_come(server: Server) -> None:
    [row] = read(answered(server, QueryStore))
    assert (row["executions"], row["worker_us"], row["physical_reads"]) == (40, 9000.5, 129.5)
    assert answered(server, QueryStore).limited() is None
