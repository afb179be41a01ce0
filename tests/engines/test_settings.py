"""Settings that a variant chooses on PostgreSQL: embedded and by URL, judged by the server, read back, given back."""

import json
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest
from support.embedded_servers import copied
from support.remote import PASSWORD, Remote, remote

from stallmark import engines
from stallmark.engines.postgres import settings
from stallmark.engines.postgres.embedded_engine import EmbeddedEngine
from stallmark.engines.postgres.engine import PostgresEngine
from stallmark.errors import NotGivenBack, RunLockTaken, StallmarkError

__all__ = ["remote"]
pytestmark = pytest.mark.usefixtures("clean")


def asked(remote: Remote, *statements: str, database: str = "postgres") -> list[tuple]:
    """Rows of the last of these statements by a superuser."""
    with psycopg.connect(remote.url().replace("/work", f"/{database}"), autocommit=True) as connection:
        for statement in statements:
            rows = connection.execute(statement)
        return rows.fetchall() if rows.description else []


def there(remote: Remote, *names: str) -> list[str]:
    """The values that a new session has."""
    return list(asked(remote, "SELECT " + ", ".join(f"current_setting('{name}')" for name in names))[0])


def entries(remote: Remote) -> dict[str, str]:
    rows = asked(remote, "SELECT name, setting FROM pg_file_settings WHERE sourcefile LIKE '%auto.conf'")
    return dict(rows)


def notes(remote: Remote) -> list[dict]:
    """Notes that the server has."""
    rows = asked(
        remote,
        "SELECT obj_description(oid, 'pg_namespace') FROM pg_namespace "
        "WHERE nspname IN ('stallmark_settings', 'stallmark_memory') ORDER BY nspname",
    )
    return [json.loads(text) for (text,) in rows]


@pytest.fixture
def clean(remote: Remote, tmp_path, monkeypatch) -> Iterator[None]:
    monkeypatch.setenv("STALLMARK_STATE", str(tmp_path / "state"))
    yield
    schemas = "DROP SCHEMA IF EXISTS stallmark_settings, stallmark_memory"
    asked(remote, "ALTER SYSTEM RESET ALL", schemas, "SELECT pg_reload_conf()")


@pytest.fixture
def server(remote: Remote) -> PostgresEngine:
    return PostgresEngine(remote.url())


@contextmanager
def killed(server: PostgresEngine) -> Iterator[None]:
    """Let go of locks alone, as the end of our process would."""
    try:
        yield
    finally:
        for setting in server._given_back.values():
            setting.release()


WANTED = {"work_mem": "64MB", "synchronous_commit": "off", "checkpoint_timeout": "30min"}


def test_settings_are_made_read_back_and_given_back(remote, server):
    asked(remote, "ALTER SYSTEM SET work_mem = '8MB'", "SELECT pg_reload_conf()")
    before, chosen = entries(remote), server.variant_settings["settings"]
    with server.hold():
        chosen.check(WANTED)
        chosen.check({"random_page_cost": "1.1"})
        assert entries(remote) == before and not notes(remote), "to ask leaves nothing"
        chosen.make(WANTED)
        assert there(remote, *WANTED) == list(WANTED.values())
        recorded = engines.settings(server).configuration
        assert {name: recorded[name] for name in WANTED} == WANTED and recorded["random_page_cost"] == "4"
        assert notes(remote)[0]["work_mem"] == "8MB"
        chosen.make({"work_mem": "65536kB", "random_page_cost": "1.1"})
        assert there(remote, *WANTED, "random_page_cost") == ["64MB", "on", "5min", "1.1"]
        assert engines.settings(server).configuration["work_mem"] == "64MB", "as the server writes it"
        chosen.give_back()
        assert there(remote, "work_mem", "random_page_cost") == ["8MB", "4"]
        chosen.make(WANTED)
    assert entries(remote) == before and not notes(remote)
    assert there(remote, *WANTED) == ["8MB", "on", "5min"]


def test_after_a_kill_the_next_run_gives_back(remote, server):
    with killed(server):
        server.variant_settings["settings"].make(WANTED)
    assert notes(remote) and there(remote, "work_mem") == ["64MB"]
    with PostgresEngine(remote.url()).hold():
        assert there(remote, *WANTED) == ["4MB", "on", "5min"]
    assert not notes(remote) and not entries(remote)


def test_a_run_on_another_database_leaves_those_of_a_living_run_alone(remote, server):
    other = server.on_database("postgres")
    with server.hold():
        server.variant_settings["settings"].make(WANTED)
        with other.hold():
            assert there(remote, "work_mem") == ["64MB"]
            with pytest.raises(RunLockTaken):
                other.variant_settings["settings"].check({"work_mem": "5MB"})
        assert there(remote, "work_mem") == ["64MB"] and notes(remote)
    assert there(remote, "work_mem") == ["4MB"] and not notes(remote)


def test_a_run_whose_server_was_restarted_gives_back(remote, server):
    with pytest.raises(StallmarkError, match="the server was restarted"), server.hold() as check:
        server.variant_settings["settings"].make(WANTED)
        remote.stop()
        remote.start()
        assert there(remote, "work_mem") == ["64MB"]
        check()
    assert there(remote, "work_mem") == ["4MB"] and not notes(remote)


def test_a_server_that_is_away_at_the_end_is_said_and_put_right_later(remote, server):
    with pytest.raises(NotGivenBack, match="still as the variant had it") as left, server.hold():
        server.variant_settings["settings"].make(WANTED)
        remote.stop()
    assert PASSWORD not in str(left.value)
    remote.start()
    with PostgresEngine(remote.url()).hold():
        assert there(remote, "work_mem") == ["4MB"]


def test_the_note_is_on_this_machine_where_the_server_takes_none(remote, tmp_path):
    for statement in (
        "GRANT ALTER SYSTEM ON PARAMETER work_mem TO plain",
        "GRANT SELECT ON pg_file_settings TO plain",
        "GRANT EXECUTE ON FUNCTION pg_show_all_file_settings() TO plain",
        "GRANT EXECUTE ON FUNCTION pg_reload_conf() TO plain",
    ):
        asked(remote, statement, database="work")
    server = PostgresEngine(remote.url("plain"))
    with pytest.raises(StallmarkError, match="GRANT ALTER SYSTEM ON PARAMETER jit TO it"), server.hold():
        server.variant_settings["settings"].check({"jit": "off"})
    with killed(server):
        server.variant_settings["settings"].make({"work_mem": "64MB"})
    assert not notes(remote) and len(list((tmp_path / "state").rglob("*.json"))) == 1
    with PostgresEngine(remote.url()).hold():
        assert there(remote, "work_mem") == ["4MB"]
    assert not list((tmp_path / "state").rglob("*.json"))
    asked(remote, "REVOKE SELECT ON pg_file_settings FROM plain", database="work")
    with pytest.raises(StallmarkError, match="GRANT SELECT ON pg_file_settings"), server.hold():
        server.variant_settings["settings"].check({"work_mem": "5MB"})


# Settings that the server reads when it starts.

AT_START = {"max_wal_senders": "3", "work_mem": "64MB"}


@pytest.fixture
def restarting(remote, server) -> PostgresEngine:
    """A server that a command of its scenario restarts."""

    def restart() -> None:
        remote.stop()
        remote.start()

    server.restart = restart
    return server


def test_a_setting_that_needs_a_restart_is_made_and_given_back_by_the_scenarios_command(remote, restarting):
    chosen = restarting.variant_settings["settings"]
    before, [(started,)] = there(remote, *AT_START), asked(remote, "SELECT pg_postmaster_start_time()")
    with restarting.hold() as check:
        chosen.check(AT_START)
        assert asked(remote, "SELECT pg_postmaster_start_time()") == [(started,)], "to ask restarts nothing"
        chosen.make(AT_START)
        assert there(remote, *AT_START) == [*AT_START.values()] and "max_wal_senders" in notes(remote)[0]
        [(again,)] = asked(remote, "SELECT pg_postmaster_start_time()")
        assert again > started
        check()  # the run still holds the server
        with pytest.raises(RunLockTaken), PostgresEngine(remote.url()).hold():
            pass
        chosen.make(AT_START | {"work_mem": "32MB"})
        assert asked(remote, "SELECT pg_postmaster_start_time()") == [(again,)], "a reload is enough"
        chosen.give_back()
        assert there(remote, *AT_START) == before
        chosen.make(AT_START)
    assert there(remote, *AT_START) == before and not notes(remote) and not entries(remote)


def test_after_a_kill_settings_of_the_start_are_given_back_by_a_run_that_may_restart(remote, restarting):
    with killed(restarting):
        restarting.variant_settings["settings"].make(AT_START)
    with pytest.raises(NotGivenBack, match="`max_wal_senders` takes effect when the server is restarted"):
        PostgresEngine(remote.url()).hold().__enter__()
    assert notes(remote), "until the server has been restarted"
    with restarting.hold():
        assert there(remote, *AT_START) == ["10", "4MB"]
    assert not notes(remote) and not entries(remote)


def test_every_setting_that_waits_for_a_restart_is_named(remote, restarting):
    with killed(restarting):
        restarting.variant_settings["settings"].make({"max_wal_senders": "3", "wal_buffers": "1MB", "work_mem": "9MB"})
    waits = "values of before again, and `max_wal_senders` and `wal_buffers` take effect when the server is restarted"
    with pytest.raises(NotGivenBack, match=waits):
        PostgresEngine(remote.url()).hold().__enter__()
    with restarting.hold():
        pass


@pytest.mark.parametrize(("made", "advice"), [(AT_START, r"\(\) and, for max_wal_senders, restart the server yourself"),
                                              ({"work_mem": "9MB"}, r"\(\) yourself, then")])  # fmt: skip
def test_settings_that_cannot_be_given_back_are_named_with_their_restart(remote, restarting, monkeypatch, made, advice):
    def refuse(values):
        raise StallmarkError("The server refuses.")

    with killed(restarting):
        restarting.variant_settings["settings"].make(made)
    other = PostgresEngine(remote.url())
    monkeypatch.setattr(other.variant_settings["settings"], "_enter", refuse)
    with pytest.raises(NotGivenBack, match=f"The server refuses. Or ALTER SYSTEM .*{advice}"):
        other.hold().__enter__()
    with restarting.hold():
        pass


MIB = 1024**2


def test_a_buffer_pool_is_capped_and_given_back_by_the_scenarios_restart(remote, restarting, server):
    before, chosen, memory = there(remote, "shared_buffers"), server.variant_settings["settings"], restarting.memory
    assert memory.refusal() is None and restarting.caches.refusal() is None
    with restarting.hold() as check:
        assert memory.cap(24 * MIB) == 24 * MIB and there(remote, "shared_buffers") == ["24MB"]
        chosen.make({"work_mem": "64MB"})
        chosen.give_back()
        assert there(remote, "shared_buffers") == ["24MB"], "a variant without settings keeps its pool"
        memory.give_back()
        assert there(remote, "shared_buffers") == before
        memory.cap(32 * MIB)
        chosen.make(AT_START)
        [note] = restarting.caches.empty()
        assert "page cache" in note and there(remote, "shared_buffers", *AT_START) == ["32MB", *AT_START.values()]
        check()
    assert there(remote, "shared_buffers") == before and not notes(remote) and not entries(remote)


def test_after_a_kill_a_buffer_pool_is_given_back_by_a_run_that_may_restart(remote, restarting):
    before = there(remote, "shared_buffers")
    with killed(restarting):
        restarting.memory.cap(24 * MIB)
    with pytest.raises(NotGivenBack, match="`shared_buffers` takes effect when the server is restarted"):
        PostgresEngine(remote.url()).hold().__enter__()
    with restarting.hold():
        assert there(remote, "shared_buffers") == before and not notes(remote)


def test_a_buffer_pool_by_url_needs_a_way_to_restart(remote, server):
    for ability in (server.memory, server.caches):
        assert "needs a restart" in ability.refusal() and "`restart: {command: […]}`" in ability.refusal()
    asked(remote, "ALTER SYSTEM SET max_prepared_transactions = 7", "SELECT pg_reload_conf()")
    server.restart = lambda: None
    assert "`max_prepared_transactions` was changed and waits" in server.memory.refusal()


def test_after_a_kill_settings_of_the_start_are_given_back_by_an_operators_restart(remote, restarting):
    with killed(restarting):
        restarting.variant_settings["settings"].make(AT_START)
    other = PostgresEngine(remote.url())
    with pytest.raises(NotGivenBack):
        other.hold().__enter__()
    remote.stop()
    remote.start()
    with other.hold():
        assert there(remote, *AT_START) == ["10", "4MB"] and not notes(remote)


def test_a_command_that_does_not_restart_is_named_and_nothing_stays(remote, server, monkeypatch):
    monkeypatch.setattr("stallmark.engines.postgres.engine.RESTARTED_WITHIN_S", 1)
    server.restart = lambda: None
    late = r"was not restarted within 1 s: it runs since .* as before"
    with pytest.raises(StallmarkError, match=late), server.hold():
        server.variant_settings["settings"].make(AT_START)
    assert not entries(remote) and not notes(remote) and there(remote, *AT_START) == ["10", "4MB"]


def test_a_restart_would_bring_changes_of_others_into_effect(remote, restarting):
    server_of_others = PostgresEngine(remote.url())
    asked(remote, "ALTER SYSTEM SET max_prepared_transactions = 7", "SELECT pg_reload_conf()")
    with pytest.raises(StallmarkError, match="`max_prepared_transactions` was changed and waits"), restarting.hold():
        restarting.variant_settings["settings"].check(AT_START)
    with server_of_others.hold():
        server_of_others.variant_settings["settings"].check({"work_mem": "64MB"})
        server_of_others.variant_settings["settings"].make({"work_mem": "64MB"})
        assert there(remote, "work_mem") == ["64MB"], "it needs no restart"


REFUSED = [
    ({"work_mm": "1MB"}, "`work_mm` is not a setting of PostgreSQL 18.* did you mean work_mem"),
    ({"no_such_thing_at_all": "1"}, "is not a setting of PostgreSQL 18.*SHOW ALL"),
    ({"work_mem": "64XB"}, "invalid value for parameter .work_mem"),
    ({"work_mem": "5"}, "outside the valid range"),
    ({"random_page_cost": "cheap"}, "invalid value"),
    ({"synchronous_commit": "maybe"}, "invalid value"),
    ({"shared_buffers": "1GB"}, "is what `buffer_pool` sets"),
    ({"track_io_timing": "off"}, "is needed by what Stallmark measures"),
    ({"statement_timeout": "5s"}, "set by each session of Stallmark"),
    ({"search_path": "public"}, "set by each session of Stallmark"),
    ({"max_connections": "10"}, "connections of the users"),
    ({"block_size": "4096"}, "nobody can change it"),
    ({"data_directory": "/tmp"}, "keeps its files"),
    ({"session_replication_role": "replica"}, "keep transactions from writing"),
    ({"shared_preload_libraries": "auto_explain"}, "a list of names"),
]
OF_OTHERS = [
    ({"fsync": "off"}, "let a crash damage the database"),
    ({"full_page_writes": "off"}, "let a crash damage the database"),
    ({"max_wal_senders": "3"}, "needs a restart.*compare --between experiments"),
    ({"wal_buffers": "16MB"}, "needs a restart.*compare --varied wal_buffers"),
]


@pytest.mark.parametrize(("wanted", "why"), [*REFUSED, *OF_OTHERS])
def test_what_a_server_of_others_does_not_take_is_refused(remote, server, wanted, why):
    with pytest.raises(StallmarkError, match=f"(?s){why}"), server.hold():
        server.variant_settings["settings"].check({"jit": "off"} | wanted)
    assert not entries(remote) and not notes(remote) and there(remote, "jit") == ["on"]


@pytest.mark.parametrize(
    ("statement", "back", "why"),
    [
        ("ALTER ROLE boss SET work_mem = '9MB'", "ALTER ROLE boss RESET ALL", "ALTER ROLE boss SET"),
        ("ALTER DATABASE work SET work_mem = '9MB'", "ALTER DATABASE work RESET ALL", "ALTER DATABASE work SET"),
    ],
)
def test_a_setting_that_counts_more_is_named(remote, server, statement, back, why):
    asked(remote, statement)
    try:
        with pytest.raises(StallmarkError, match=f"given by {why}.*more than ALTER SYSTEM"), server.hold():
            server.variant_settings["settings"].check({"work_mem": "64MB"})
    finally:
        asked(remote, back)


def test_settings_of_the_command_line_stay(remote, server):
    """An `fsync` of a scenario is refused for another reason; on the command line is nothing else that is not."""
    [asked_for] = settings.read(server, ["fsync"]).values()
    with pytest.raises(StallmarkError, match="given by the server's command line"):
        server.variant_settings["settings"]._refuse_ineffective(asked_for)


def test_an_edit_that_the_server_has_not_read_is_not_installed(remote, server, tmp_path):
    path = remote.folder / "data" / "postgresql.conf"
    before = path.read_text()
    try:
        asked(remote, "SELECT pg_sleep(1.1)")  # a file's time is in whole seconds
        path.write_text(before + "\nwork_mem = '99MB'\n")
        with pytest.raises(StallmarkError, match=r"Someone has changed .*postgresql\.conf.*pg_reload"), server.hold():
            server.variant_settings["settings"].check({"jit": "off"})
        assert there(remote, "work_mem") == ["4MB"]
    finally:
        path.write_text(before)


# The embedded server: on its command line, so that nothing is left whatever happens.


@pytest.fixture(scope="module")
def embedded(template) -> Iterator[EmbeddedEngine]:
    with copied(template) as server:
        yield EmbeddedEngine(server, "bank")


def test_the_embedded_server_is_restarted_with_them(embedded):
    chosen = embedded.variant_settings["settings"]
    wanted = {"work_mem": "64MB", "max_wal_size": "1GB", "io_method": "worker", "fsync": "off"}
    own = [embedded.query(f"SHOW {name}")[0][0] for name in wanted]
    chosen.check(wanted)
    assert [embedded.query(f"SHOW {name}")[0][0] for name in wanted] == own, "to ask leaves nothing"
    chosen.make(wanted)
    started = embedded.process()
    chosen.make(dict(wanted))
    assert embedded.process() == started, "what is so already is not touched"
    recorded = engines.settings(embedded).configuration
    assert {name: recorded[name] for name in wanted} == wanted
    embedded.memory.cap(64 << 20)
    assert embedded.query("SHOW work_mem") == [("64MB",)], "it outlives a change of the pool"
    chosen.give_back()
    assert [embedded.query(f"SHOW {name}")[0][0] for name in wanted] == own


@pytest.mark.parametrize(
    ("wanted", "why"),
    [
        *REFUSED,
        ({"debug_io_direct": ""}, "page cache"),
        ({"max_wal_senders": "3"}, "max_wal_senders: 3.*requires"),  # which only a start judges
    ],
)
def test_what_the_embedded_server_does_not_take_is_refused(embedded, wanted, why):
    with pytest.raises(StallmarkError, match=f"(?s){why}"):
        embedded.variant_settings["settings"].check({"work_mem": "5MB"} | wanted)
    assert embedded.query("SHOW work_mem") == [("4MB",)], "it answers as before"


def test_every_reserved_setting_is_one(server):
    known = {name for (name,) in server.query("SELECT name FROM pg_settings")}
    reserved = {name for names in (settings.RESERVED | settings.RESERVED_OF_OTHERS).values() for name in names}
    assert reserved <= known
