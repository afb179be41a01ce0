"""Query Store is read where it is on, and left alone where it is off."""

import pytest
from support.collecting import read
from support.mssql_server import Server, rows
from support.scripted_views import answered

from stallmark.collectors.mssql.query_store import QueryStore, QueryStoreWaits

OPTIONS = ["state", "capture", "waits"]


@pytest.mark.parametrize("state", ["OFF", "READ_ONLY", "ERROR", "READ_CAPTURE_SECONDARY"])
@pytest.mark.parametrize("kind", [QueryStore, QueryStoreWaits])
def test_where_it_does_not_write_it_is_off(server: Server, kind: type[QueryStore], state: str) -> None:
    server.script.sql("database_query_store_options", rows(OPTIONS, (state, "ALL", "ON")))
    assert answered(server, kind).unavailable() == (
        f"Query Store is {state} in this database, and Stallmark leaves it so: to have it, run ALTER DATABASE CURRENT "
        "SET QUERY_STORE = ON (OPERATION_MODE = READ_WRITE);"
    )
    assert not server.asked("ALTER DATABASE")


def test_a_database_that_has_none(server: Server) -> None:
    server.script.sql("database_query_store_options", rows(OPTIONS))
    assert str(answered(server, QueryStore).unavailable()).startswith("Query Store is OFF in this database")


def test_waits_that_it_does_not_count(server: Server) -> None:
    server.script.sql("database_query_store_options", rows(OPTIONS, ("READ_WRITE", "ALL", "OFF")))
    assert answered(server, QueryStore).unavailable() is None
    assert answered(server, QueryStoreWaits).unavailable() == (
        "Query Store counts no waits in this database (WAIT_STATS_CAPTURE_MODE = OFF)."
    )


@pytest.mark.parametrize("capture", ["AUTO", "NONE", "CUSTOM"])
def test_what_it_leaves_out_is_said(server: Server, capture: str) -> None:
    server.script.sql("database_query_store_options", rows(OPTIONS, ("READ_WRITE", capture, "ON")))
    assert answered(server, QueryStore).limited() == (
        f"Query Store captures {capture}, so it leaves out statements that it thinks do not matter."
    )
    assert answered(server, QueryStoreWaits).limited() is None


def test_totals_are_stored_as_they_come(server: Server) -> None:
    [row] = read(answered(server, QueryStore))
    assert (row["executions"], row["worker_us"], row["physical_reads"]) == (40, 9000.5, 129.5)
    assert answered(server, QueryStore).limited() is None
