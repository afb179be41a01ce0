"""Event sessions of ours: made, read, and never left behind."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import published_waits as published
from support.collecting import opened, read
from support.mssql_server import Server, rows
from support.scripted_views import answered
from support.tds.answers import Error

from stallmark.collectors import collectors_for, drop_left_behind
from stallmark.collectors.mssql.io_latency import _OURS, SESSIONS, IoLatency, LogLatency, _rows
from stallmark.errors import StallmarkError
from stallmark.record.writer import Rows

COLUMNS = ["server_time", "epoch", "session", "dropped", "histogram"]


def histogram(counts: dict[int, int], slots: int = 4096) -> str:
    """In the form of the published one."""
    inside = "".join(f'<Slot count="{n}"><value>{value}</value></Slot>' for value, n in counts.items())
    return f'<HistogramTarget truncated="0" buckets="{slots}">{inside}</HistogramTarget>'


def session(name: str, text: str | None, dropped: int = 0) -> tuple:
    return (1.5, "session 2026-03-02T09:00:00", name, dropped, text)


def both(reads: str | None, writes: str | None = None) -> list[tuple]:
    return [session("stallmark_reads", reads), session("stallmark_log_writes", writes)]


def test_the_form_is_the_published_one() -> None:
    assert histogram({0: 9}, 256) == published.HISTOGRAM


def test_sessions_live_as_long_as_the_collector(server: Server) -> None:
    collector = answered(server, IoLatency)
    with opened(collector):
        made = server.asked("CREATE EVENT SESSION")
        assert len(made) == len(SESSIONS) and all("STATE = START" in text for text in made)
        assert "database_id = 7 AND file_id <> 2" in made[0] and "database_id = 7 AND file_id = 2" in made[1]
        collector.sample(0.0)
        asked = len(server.asked("server_event_sessions"))
    assert len(server.asked("server_event_sessions")) == asked + 1  # what is to be dropped


def test_log_writes_are_counted_by_default_and_reads_on_request(server: Server) -> None:
    kinds = {kind for (kind,) in [[type(c) for c in collectors_for(server.engine()) if c.name == "io_latency"]]}
    assert kinds == {LogLatency}
    asked_for = [type(c) for c in collectors_for(server.engine(), ["io_latency"]) if c.name == "io_latency"]
    assert asked_for == [IoLatency]
    found = read(answered(server, LogLatency))
    assert {row["operation"] for row in found} == {"log write"}
    [made] = server.asked("CREATE EVENT SESSION")
    assert "stallmark_log_writes" in made


def test_they_are_dropped_by_name(server: Server) -> None:
    server.script.sql("server_event_sessions", rows(["name"]), times=1)
    server.script.sql("server_event_sessions", rows(["name"], *[[name] for name in SESSIONS]))
    collector = answered(server, IoLatency)
    with opened(collector):
        collector.sample(0.0)
        assert not server.asked("DROP EVENT SESSION")
    assert server.asked("DROP EVENT SESSION") == [f"DROP EVENT SESSION {name} ON SERVER" for name in SESSIONS]


def test_a_histogram_becomes_a_row_for_each_duration(server: Server) -> None:
    found = read(answered(server, IoLatency, rows(COLUMNS, *both(histogram({7: 2, 0: 90, 16: 1}), histogram({1: 5})))))
    assert [(row["operation"], row["duration"], row["ios"]) for row in found] == [
        ("read", 0, 90),
        ("read", 7, 2),
        ("read", 16, 1),
        ("log write", 1, 5),
    ]
    assert {row["slots"] for row in found} == {4096} and {row["dropped"] for row in found} == {0}


def test_nothing_counted_yet_is_a_row_too(server: Server) -> None:
    found = read(answered(server, IoLatency, rows(COLUMNS, *both(histogram({}), None))))
    assert [(row["operation"], row["duration"], row["ios"], row["slots"]) for row in found] == [
        ("read", None, 0, 4096),
        ("log write", None, 0, None),
    ]


@given(counts=st.dictionaries(st.integers(0, 2**63 - 1), st.integers(1, 2**40), max_size=40))
def test_every_slot_is_read(counts: dict[int, int]) -> None:
    answer = dict(zip(COLUMNS, session("stallmark_reads", histogram(counts)), strict=True))
    found = Rows(IoLatency.columns.names, list(_rows(answer, "read", None)))
    assert {row["duration"]: row["ios"] for row in found} == (counts or {None: 0})
    assert [row["duration"] for row in found] == sorted(counts) or not counts


@pytest.mark.parametrize(
    "broken",
    [
        histogram({7: 2})[:-20],
        histogram({7: 2}).replace("<value>7</value>", "<value/>"),
        histogram({7: 2}).replace(' count="2"', ""),
        histogram({7: 2}).replace(' buckets="4096"', ""),
    ],
)
def test_a_histogram_that_cannot_be_read_is_counted_and_the_others_are_kept(server: Server, broken: str) -> None:
    collector = answered(server, IoLatency, rows(COLUMNS, *both(broken, histogram({1: 5}))))
    with opened(collector):
        for _ in range(2):
            [row] = collector.sample(0.0)
            assert (row["operation"], row["duration"], row["ios"]) == ("log write", 1, 5)
    assert collector.incomplete == "2 of its histograms could not be read"


def test_a_session_that_somebody_stopped_is_made_again(server: Server) -> None:
    server.script.sql("dm_xe_session_targets", rows(COLUMNS, session("stallmark_reads", None)), times=1)
    collector = answered(server, IoLatency)
    with opened(collector), pytest.raises(StallmarkError, match="someone stopped the event session stallmark_log_w"):
        collector.sample(0.0)
    with opened(collector):  # as the sampler does at its next turn
        assert collector.sample(5.0)
    assert len(server.asked("CREATE EVENT SESSION")) == 2 * len(SESSIONS)


def test_a_server_that_makes_none_says_why(server: Server) -> None:
    server.script.sql(
        "CREATE EVENT SESSION", Error(25623, "The event name is invalid, or the object could not be found.")
    )
    collector = answered(server, IoLatency)
    with pytest.raises(StallmarkError, match=r"the server made no event session \(The event name is invalid"):
        collector.open()


def test_without_permission_it_is_off(server: Server) -> None:
    server.script.sql("HAS_PERMS_BY_NAME.*ALTER ANY EVENT SESSION", rows(["may"], [0]))
    assert answered(server, IoLatency).unavailable() == (
        "The login [watcher] may not see this (it may make no event sessions): run USE master; GRANT ALTER ANY EVENT "
        "SESSION TO [watcher];"
    )
    assert not server.asked("CREATE EVENT SESSION")


def test_what_a_killed_run_left_is_dropped_and_nobody_else_s(server: Server) -> None:
    others = ["stallmark_reads_of_ann", "stallmark_blocking", "system_health"]
    server.script.sql("server_event_sessions", rows(["name"], *([name] for name in [*others, *SESSIONS])))
    server.script.sql("DROP EVENT SESSION")
    drop_left_behind(server.engine())
    assert server.asked("DROP EVENT SESSION") == [
        "DROP EVENT SESSION stallmark_reads ON SERVER",
        "DROP EVENT SESSION stallmark_log_writes ON SERVER",
    ]


def test_a_login_that_may_not_look_or_drop_can_still_run(server: Server) -> None:
    denied = Error(*published.DENIED[0][::2], severity=14)
    server.script.sql("server_event_sessions", denied, times=1)
    drop_left_behind(server.engine())
    assert not server.asked("DROP EVENT SESSION")
    server.script.sql("server_event_sessions", rows(["name"], ["stallmark_reads"]))
    server.script.sql("DROP EVENT SESSION", denied)
    drop_left_behind(server.engine())
    assert server.asked("DROP EVENT SESSION")


@pytest.mark.parametrize(
    "says",
    [
        {"edition": 5, "version": "12.0.2000.8"},
        {"banner": "Babelfish for PostgreSQL with SQL Server Compatibility - 4.4.0"},
    ],
)
def test_elsewhere_there_is_nothing_to_drop(new_server, says: dict) -> None:
    server = new_server(**says)
    drop_left_behind(server.engine())
    assert not server.asked("event_sessions")


# Tried before a run


def test_a_limit_of_the_server_is_met_before_a_run_and_not_at_every_interval(server: Server) -> None:
    """As on RDS, whose logins have the right and whose sessions have 4 MB unless that is raised."""
    server.script.sql("CREATE EVENT SESSION", Error(25600, "MAX_MEMORY is above the limit of this instance."))
    assert answered(server, IoLatency).unavailable() == (
        "The server made no event session (MAX_MEMORY is above the limit of this instance, error 25600)."
    )


def test_what_was_tried_is_gone_and_is_no_session_of_a_run(server: Server) -> None:
    assert answered(server, LogLatency).unavailable() is None
    made = [text.split("CREATE EVENT SESSION ")[1].split()[0] for text in server.asked("CREATE EVENT SESSION")]
    dropped = [text.split()[3] for text in server.asked("DROP EVENT SESSION")]
    assert made == dropped and len(made) == 1 and _OURS.fullmatch(made[0]) and made[0] not in SESSIONS
