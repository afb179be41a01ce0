"""Collectors that may not see what they read, or whose server has not got it: sentences."""

from collections.abc import Callable

import pytest
from support import published_waits as published
from support.collecting import read
from support.mssql_server import TYPES, Server, rows, runs_on
from support.scripted_views import ANSWERS, REQUESTS, answer_all, answered
from support.tds.answers import Error, Hold, Rows
from support.tds.tokens import Column

from stallmark.collectors import collectors_for
from stallmark.collectors.mssql import MssqlCollector, ask
from stallmark.collectors.mssql.counters import LoadIO, Procedures, Replicas, RowLocks, ServerIO, SessionWaits, TempDb
from stallmark.collectors.mssql.io_latency import LogLatency
from stallmark.collectors.mssql.moments import ErrorLog, PendingIO
from stallmark.collectors.mssql.statements import QueryStore, QueryStoreState, QueryStoreWaits
from stallmark.collectors.mssql.waits import Blocking, Deadlocks, UserWaits
from stallmark.record.schema import resume_command, stop_reason

pytestmark = pytest.mark.thorough


@pytest.mark.parametrize("kind", [kind for kind in ANSWERS if kind is not ErrorLog])
@pytest.mark.parametrize(("version", "permission"), [("15.0.4430.1", "VIEW SERVER STATE"),
                                                     ("16.0.4105.2", "VIEW SERVER PERFORMANCE STATE")])  # fmt: skip
def test_without_permission_it_is_off_and_says_what_to_grant(
    new_server: Callable[..., Server], kind: type[MssqlCollector], version: str, permission: str
) -> None:
    server = new_server(version=version)
    sentence = answered(
        server, kind, lambda request: [Error(n, text, s) for n, s, text in published.DENIED]
    ).unavailable()
    who, place = "login", "USE master; "
    if issubclass(kind, QueryStore | RowLocks):  # which belong to the database
        who, place, permission = "user", "", permission.replace("SERVER", "DATABASE")
    assert sentence == (
        f"The {who} [watcher] may not see this (VIEW SERVER STATE permission was denied on object 'server', database "
        f"'master'): run {place}GRANT {permission} TO [watcher];"
    )


def test_a_login_that_comes_in_by_a_windows_group_has_no_name_to_grant_to(new_server: Callable[..., Server]) -> None:
    server = new_server(login="CORP\\ann")
    sentence = answered(server, ErrorLog, Error(297, published.DENIED[1][2])).unavailable()
    assert sentence is not None and sentence.endswith(
        "run USE master; GRANT VIEW ANY ERROR LOG TO [CORP\\ann]; (or TO the Windows group that lets it in)"
    )


@pytest.mark.parametrize(
    ("error", "right"),
    [
        (Error(297, published.DENIED[1][2]), "VIEW ANY ERROR LOG"),
        (Error(300, published.DENIED_2022, severity=14), "VIEW SERVER PERFORMANCE STATE"),
        (Error(371, published.DENIED_371.format("SECURITY"), severity=14), "VIEW SERVER SECURITY STATE"),
        (Error(371, published.DENIED_371.format("PERFORMANCE"), severity=14), "VIEW SERVER PERFORMANCE STATE"),
        (Error(262, "VIEW DATABASE STATE permission denied in database 'master'.", severity=14), "VIEW ANY ERROR LOG"),
        (
            Error(229, "The EXECUTE permission was denied on the object 'sp_readerrorlog'.", severity=14),
            "VIEW ANY ERROR LOG",
        ),
        (Error(27219, "This login may not read the error log."), "VIEW ANY ERROR LOG"),
    ],
)
def test_every_way_to_be_refused(server: Server, error: Error, right: str) -> None:
    """A refusal that names a right of 2022 has the last word: the login may have the one that the page names."""
    sentence = answered(server, ErrorLog, error).unavailable()
    assert sentence is not None and sentence.endswith(f"run USE master; GRANT {right} TO [watcher];")
    assert error.text.rstrip(".") in sentence


def test_on_cloud_sql_a_right_is_granted_as_its_role(server: Server) -> None:
    runs_on(server.script, cloud_sql=True)
    denied = Error(371, published.DENIED_371.format("SECURITY"), severity=14)
    assert str(answered(server, Blocking, denied).unavailable()).endswith(
        "run USE master; GRANT VIEW SERVER SECURITY STATE TO [watcher] AS CustomerDbRootRole;"
    )


def test_where_azure_asks_for_a_right_on_the_server_a_role_gives_it(new_server: Callable[..., Server]) -> None:
    """Nobody has such rights there: in elastic pools and of Basic, S0 and S1 the views want a role instead."""
    server = new_server(version="12.0.2000.8", edition=5)
    sentence = answered(server, PendingIO, Error(300, published.DENIED_2022, severity=14)).unavailable()
    assert sentence is not None and sentence.endswith(
        "ALTER SERVER ROLE ##MS_ServerStateReader## ADD MEMBER its login."
    )
    assert "GRANT" not in sentence


def test_a_view_that_is_missing(server: Server) -> None:
    sentence = answered(
        server, PendingIO, Error(208, "Invalid object name 'sys.dm_io_pending_io_requests'.")
    ).unavailable()
    assert sentence == (
        "This server does not have the view it needs (Invalid object name 'sys.dm_io_pending_io_requests')."
    )


def test_another_error_is_told_as_it_is(server: Server) -> None:
    sentence = answered(server, TempDb, Error(8134, "Divide by zero error encountered.")).unavailable()
    assert sentence == "The server refused its query (Divide by zero error encountered, error 8134)."


@pytest.mark.parametrize("kind", [UserWaits, LoadIO, SessionWaits])
@pytest.mark.parametrize("may", [0, None])
def test_users_hidden_from_the_login_turn_their_figures_off(
    server: Server, kind: type[MssqlCollector], may: int | None
) -> None:
    """The views of sessions show a login without the right its own session, and give no error."""
    server.script.sql("is_user_process = 0", Rows([Column("may", TYPES[int])], [(may,)]))
    sentence = answered(server, kind).unavailable()
    assert sentence == (
        "The login [watcher] may not see this (the sessions of the virtual users are hidden from it): run USE master; "
        "GRANT VIEW SERVER STATE TO [watcher];"
    )


def test_babelfish_has_none(new_server: Callable[..., Server]) -> None:
    server = new_server(version="12.0.2000.8", banner="Babelfish for PostgreSQL with SQL Server Compatibility - 4.4.0")
    for collector in collectors_for(server.engine(), REQUESTS):
        if isinstance(collector, MssqlCollector):
            assert collector.unavailable() == "Babelfish has none of SQL Server's management views."


def test_azure_sql_database_has_some(new_server: Callable[..., Server]) -> None:
    server = new_server(version="12.0.2000.8", edition=5)
    answer_all(server)
    reasons = {
        c.name: c.unavailable() for c in collectors_for(server.engine(), REQUESTS) if isinstance(c, MssqlCollector)
    }
    off = {"cpu", "server_cpu", "deadlocks", "error_log", "io_latency", "replicas", "tempdb"}
    assert {name for name, why in reasons.items() if why} == off
    assert "Azure SQL Database" in str(reasons["tempdb"])
    assert server.asked("dm_db_wait_stats") and not server.asked("dm_os_wait_stats")
    assert not server.asked("master_files")
    assert server.asked("total_spills")  # as new as any server


def test_azure_sql_database_grants_by_database(new_server: Callable[..., Server]) -> None:
    server = new_server(version="12.0.2000.8", edition=5)
    denied = Error(262, "VIEW DATABASE STATE permission denied in database 'bank'.", severity=14)
    assert answered(server, ServerIO, denied).unavailable() == (
        "The user [watcher] may not see this (VIEW DATABASE STATE permission denied in database 'bank'): run GRANT "
        "VIEW DATABASE STATE TO [watcher];"
    )


@pytest.mark.parametrize(
    ("version", "has_spills"), [("14.0.3456.2", False), ("15.0.4430.1", True), ("17.0.700.9", True)]
)
def test_the_query_is_the_versions(new_server: Callable[..., Server], version: str, has_spills: bool) -> None:
    server = new_server(version=version)
    read(answered(server, Procedures))
    assert bool(server.asked("cached.total_spills")) is has_spills


@pytest.mark.parametrize(
    ("replicas", "said"), [(2, "GRANT VIEW ANY DEFINITION TO [watcher]"), (0, "no other replicas")]
)
def test_replicas_that_are_hidden_are_not_taken_for_none(server: Server, replicas: int, said: str) -> None:
    """Zabbix ZBX-26626: sys.availability_replicas is empty without VIEW ANY DEFINITION, the states are not."""
    server.script.sql("dm_hadr_database_replica_states AS hidden", rows(["replicas"], [replicas]))
    assert said in str(answered(server, Replicas, rows(Replicas.columns.names)).unavailable())


@pytest.mark.parametrize("kind", [Deadlocks, ServerIO, LogLatency])
def test_a_server_that_does_not_answer_is_not_waited_for(
    server: Server, kind: type[MssqlCollector], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stallmark.collectors.mssql.ANSWER_WITHIN_S", 1)
    hold = Hold()
    assert answered(server, kind, hold).unavailable() == "The server did not answer its query within 1 s."
    hold.release()


def test_the_time_limit_of_a_question_is_not_left_to_others(server: Server) -> None:
    """A connection that is used again may be asked for what takes long, as a restore does."""
    engine = server.engine()
    with engine.few_logins():
        assert ask(engine, "SELECT QUOTENAME(SUSER_SNAME())") == [("[watcher]",)]
        with engine.cursor() as cursor:
            assert cursor.connection.timeout == 0
    assert len(server.responder.logins) == 1


# Query Store is read where it is on, and left alone where it is off


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
    assert stop_reason(reason) and words in resume_command("READ_ONLY", reason)
    assert not resume_command("READ_ONLY", reason).startswith(SET_ON)
    assert stop_reason(0) is stop_reason(None) is None


def test_an_error_is_mended_by_the_check_of_its_consistency() -> None:
    assert "sp_query_store_consistency_check" in resume_command("ERROR", 0)


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
    assert answered(server, QueryStore).limitation() == (
        f"Query Store captures {capture}, so it leaves out statements that it thinks do not matter."
    )
    assert answered(server, QueryStoreWaits).limitation() is None


def test_totals_are_stored_as_they_come(server: Server) -> None:
    [row] = read(answered(server, QueryStore))
    assert (row["executions"], row["worker_us"], row["physical_reads"]) == (40, 9000.5, 129.5)
    assert answered(server, QueryStore).limitation() is None
