"""An address that leads to a pooler is refused by name; limits of role or database do not end our sessions."""

from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from support.clusters import Cluster, ClusterEngine
from support.poolers import pooler
from support.remote import Remote, remote

from stallmark.engines.postgres import address
from stallmark.engines.postgres.engine import PostgresEngine
from stallmark.errors import NoConnection, StallmarkError

__all__ = ["remote"]

LIMITS = (*address.ENDING, address.SINCE_17)


@pytest.mark.parametrize(
    ("mode", "ignored", "why"),
    [
        ("transaction", "extra_float_digits", "unsupported startup parameter: options"),
        ("session", "extra_float_digits", "unsupported startup parameter: options"),
        ("transaction", "options", "two connections had the same session of the server"),
        ("statement", "options", "two connections had the same session of the server"),
        ("session", "options", "it drops the start-up parameter `options`"),
    ],
)
def test_a_pooler_is_named_with_the_address_of_its_server(remote: Remote, tmp_path: Path, mode, ignored, why):
    with pooler(remote, tmp_path, mode, ignored) as pooled:
        engine = PostgresEngine(pooled.url())
        with pytest.raises(StallmarkError) as caught:
            engine.identity()
    said = str(caught.value)
    assert said.startswith(f"127.0.0.1:{pooled.port}/work is the address of a connection pooler, such as pgbouncer:")
    assert why in said
    assert said.endswith(f", so name the server's own address, 127.0.0.1:{remote.port} as the server calls it.")
    # A pooler may keep a session for each of its clients, and refuse the options all the same.
    assert ("are not kept there" in said) is ("the same session" in why)
    assert ("Our sessions set their time limits by `options`" in said) is ("the same session" not in why)


def test_the_server_itself_is_none(remote: Remote):
    assert PostgresEngine(remote.url()).identity().product == "PostgreSQL"


def test_what_a_server_refuses_otherwise_is_no_pooler(remote: Remote):
    with pytest.raises(NoConnection) as caught:
        PostgresEngine(f"{remote.url()}?options=-c%20no_such_setting%3D1").connect()
    assert "no_such_setting" in str(caught.value) and "pooler" not in str(caught.value)


@pytest.mark.parametrize(
    ("error", "is_pooler"),
    [
        ("FATAL:  unsupported startup parameter: options", True),
        ("FATAL:  unsupported startup parameter in options: statement_timeout", True),
        ("FATAL:  Feature not supported: RDS Proxy currently doesn't support command-line options.", True),
        ("FATAL:  Feature not supported: RDS Proxy currently doesn’t support command-line options.", True),
        ("FATAL:  invalid command-line argument for server process: -x", False),
        ("FATAL:  unsupported startup parameter: client_flags", False),
        ('FATAL:  unrecognized configuration parameter "x"', False),
        ("password authentication failed", False),
    ],
)
def test_a_pooler_is_known_by_what_it_refuses(error, is_pooler):
    assert address.refused_by_pooler(error) is is_pooler


def test_a_limit_that_our_sessions_cannot_lift_is_named_with_its_role(remote: Remote, tmp_path: Path):
    with psycopg.connect(remote.url(), autocommit=True) as boss:
        boss.execute("ALTER ROLE plain IN DATABASE work SET idle_session_timeout = '500ms'")
        boss.execute("ALTER DATABASE work SET idle_session_timeout = '9s'")
        try:
            assert PostgresEngine(remote.url("plain")).identity().product == "PostgreSQL"
            with pooler(remote, tmp_path, "session", "options") as pooled, pytest.raises(StallmarkError) as caught:
                PostgresEngine(pooled.url("plain")).identity()
        finally:
            boss.execute("ALTER ROLE plain IN DATABASE work RESET ALL")
            boss.execute("ALTER DATABASE work RESET ALL")
    assert "idle_session_timeout is 500ms for plain" in str(caught.value)
    assert "would end them: ALTER ROLE plain IN DATABASE work SET idle_session_timeout = 0." in str(caught.value)


@pytest.fixture
def limited(cluster: Cluster, engine: ClusterEngine) -> Iterator[PostgresEngine]:
    """The engine of a role whose sessions end at once, and find other schemas first."""
    limits = [name for name in LIMITS if cluster.major >= 17 or name != address.SINCE_17]
    engine.execute("CREATE ROLE hurried LOGIN")
    try:
        for name in limits:
            engine.execute(f"ALTER ROLE hurried SET {name} = '1ms'")
        for name, value in {"search_path": "hidden, pg_catalog", "DateStyle": "'German'", "work_mem": "'3MB'"}.items():
            engine.execute(f"ALTER ROLE hurried IN DATABASE postgres SET {name} = {value}")
        engine.execute("ALTER ROLE hurried SET app.secret = 'hush'")
        yield PostgresEngine(cluster.url("hurried"))
    finally:
        engine.execute("DROP ROLE hurried")


def test_limits_of_a_role_hold_for_none_of_our_sessions(limited: PostgresEngine, cluster: Cluster):
    with limited.cursor() as cursor:
        shown = {name: cursor.execute(f"SHOW {name}").fetchone() for name in address.ENDING}
        assert set(shown.values()) == {("0",)}
        cursor.execute("SELECT pg_sleep(0.05)")
        assert cursor.execute("SHOW search_path").fetchone() == ('"$user",public',)
        if cluster.major >= 17:
            assert cursor.execute("SHOW transaction_timeout").fetchone() == ("0",)
    session = limited.session(12)
    session.prepare("ask", "SELECT pg_sleep(0.05), current_setting('statement_timeout'), date '2026-11-28'")
    assert session.call("ask", []) == [("", "12s", "2026-11-28")]
    session.close()


def test_a_user_that_connects_beside_another_keeps_an_older_server(clusters: Callable[[int], Cluster]):
    engine = PostgresEngine(f"{clusters(16).url()}/")  # as no other test writes this address

    def connect_beside_another(text: str) -> psycopg.Connection:
        engine.connect().close()  # as another thread does, and so learns of the version
        return psycopg.connect(text)

    engine.open(connect_beside_another, "stallmark-user").close()


def test_what_a_role_sets_beside_limits_is_recorded_and_told(limited: PostgresEngine):
    settings = limited.settings().configuration
    assert settings["work_mem"] == "3MB" and "app.secret" not in settings and "hush" not in settings.values()
    told = [one.sentence for one in limited.examine() if one.subject == "settings of the role"]
    assert "work_mem = 3MB (ALTER ROLE hurried IN DATABASE postgres): it holds in our sessions as well." in told
    assert "statement_timeout = 1ms (ALTER ROLE hurried): our sessions set their own." in told
    assert not any("secret" in one for one in told)


def test_options_of_the_environment_stay(engine: ClusterEngine, monkeypatch):
    monkeypatch.setenv("PGOPTIONS", "-c work_mem=5MB -c statement_timeout=1ms")
    with engine.cursor() as cursor:
        assert cursor.execute("SHOW work_mem").fetchone() == ("5MB",)
        assert cursor.execute("SHOW statement_timeout").fetchone() == ("0",)
