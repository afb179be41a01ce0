"""A server behind a pooler, with limits on its role, one that others use, one that starts again: by the whole tool."""

import psycopg
import pytest
from support.poolers import pooler
from support.remote import Remote
from support.tool import Tool

from stallmark.analysis.experiment import summarise
from stallmark.analysis.validity.invalid import ValidityKind
from stallmark.engines.postgres.engine import PostgresEngine
from stallmark.record.reader import Record

LIMITS = (
    "statement_timeout", "lock_timeout", "idle_session_timeout", "idle_in_transaction_session_timeout",
    "transaction_timeout",
)  # fmt: skip


@pytest.fixture
def tool(fresh: Tool, remote: Remote) -> Tool:
    fresh.environment["STALLMARK_SERVER"] = remote.url()
    return fresh


@pytest.fixture
def boss(remote: Remote):
    with psycopg.connect(remote.url().replace("/work", "/postgres"), autocommit=True) as connection:
        yield connection


def refused(tool: Tool, *arguments: str) -> str:
    code, said = tool.run(*arguments)
    assert code == 3 and said.count("Error:") == 1, said
    return " ".join(said.split())


def schemas(remote: Remote) -> set[str]:
    return set(PostgresEngine(remote.url()).schemas_in_use())


def test_nothing_is_built_through_a_pooler_and_nothing_of_it_is_left(tool: Tool, remote: Remote, tmp_path_factory):
    before = schemas(remote)
    with pooler(remote, tmp_path_factory.mktemp("pooler"), "transaction") as pooled:
        tool.environment["STALLMARK_SERVER"] = pooled.url()
        commands = (["run", tool.scenario()], ["build", "bank", "--scale", "branches=1"], ["db", "list"], ["doctor"])
        for command in commands[:3]:
            assert "is the address of a connection pooler, such as pgbouncer" in refused(tool, *command)
        code, said = tool.run(*commands[3])
        assert code == 3 and f"name the server's own address, 127.0.0.1:{remote.port}" in " ".join(said.split())
        profile = refused(tool, "profile", "--for", "1min", "--out", str(tool.folder / "profile"))
        assert "is the address of a connection pooler" in profile
        assert schemas(remote) == before
        tool.environment["STALLMARK_SERVER"] = remote.url()
        code, said = tool.run("run", tool.scenario())  # while the pooler still has its sessions
        assert code == 0 and "Waiting for the lock" not in said, said


def test_a_role_whose_sessions_end_at_once_builds_and_drives(tool: Tool, remote: Remote, boss: psycopg.Connection):
    boss.execute("DROP DATABASE IF EXISTS limited")
    boss.execute("CREATE DATABASE limited OWNER plain")
    boss.execute("GRANT pg_checkpoint TO plain")
    for name in LIMITS:
        boss.execute(f"ALTER ROLE plain IN DATABASE limited SET {name} = '20ms'")
    tool.environment["STALLMARK_SERVER"] = remote.url("plain").replace("/work", "/limited")
    code, said = tool.run("run", tool.scenario())
    assert code == 0, said
    assert tool.manifests()[0].status == "complete"


def test_load_on_a_database_of_others_needs_to_be_asked_for(tool: Tool, remote: Remote, boss: psycopg.Connection):
    boss.execute("DROP DATABASE IF EXISTS shop")
    boss.execute("CREATE DATABASE shop")
    url = remote.url().replace("/work", "/shop")
    with psycopg.connect(url, autocommit=True) as shop:
        shop.execute("CREATE TABLE pgbench_accounts (aid integer)")
    tool.environment["STALLMARK_SERVER"] = url
    assert "public.pgbench_accounts" in refused(tool, "run", tool.scenario())
    assert set(PostgresEngine(url).schemas_in_use()) == {"public"}
    code, said = tool.run("run", tool.scenario(), "--shared")
    assert code == 0, said


def test_a_server_that_starts_again_in_mid_run_is_told_and_not_judged(tool: Tool, remote: Remote):
    """The last test here: the server starts anew."""
    command, folder = tool.start_measuring()
    remote.stop()
    remote.start()
    assert command.wait() == 4, command.text
    tool.nothing_left()
    said = " ".join(command.text.split())
    assert "the server was restarted" in said and "Traceback" not in said
    [run] = summarise([Record(folder)]).runs
    step = run.steps[-1]
    assert {ValidityKind.SERVER_STARTED, ValidityKind.CONNECTIONS_LOST} & {one.kind for one in step.validity.invalid}
    assert step.bottleneck.device_verdict is None
