"""A server that is not ours, by URL: what can be done there is done, the rest is refused, its password told nobody."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest
from support.command_line import stallmark
from support.poolers import pooler
from support.remote import PASSWORD, Remote, free_port
from support.tool import Tool

from stallmark.analysis.experiment import summarise
from stallmark.analysis.validity import ValidityKind
from stallmark.engines.postgres.engine import PostgresEngine
from stallmark.errors import CallFailed, ErrorClass, ServerLost, StallmarkError
from stallmark.experiment import any_run
from stallmark.experiment.runner import naming_loss
from stallmark.loaders import load
from stallmark.record.reader import Record

LIMITS = (
    "statement_timeout", "lock_timeout", "idle_session_timeout", "idle_in_transaction_session_timeout",
    "transaction_timeout",
)  # fmt: skip


@pytest.fixture
def tool(fresh: Tool, remote: Remote) -> Tool:
    """One that finds the server's URL in its environment, where no `ps` shows it."""
    fresh.environment["STALLMARK_SERVER"] = remote.url()
    return fresh


def refused(tool: Tool, *arguments: str) -> str:
    code, said = tool.run(*arguments)
    assert code == 3 and said.count("Error:") == 1, said
    return " ".join(said.split())


def connected(remote: Remote, options: str = "") -> psycopg.Connection:
    """Return a session of the server's owner, in a database beside that of the tests."""
    return psycopg.connect(remote.url().replace("/work", "/postgres"), autocommit=True, options=options)


def test_a_user_ramp_on_a_remote_server_and_the_password_is_nowhere(tool):
    command = tool.start("run", tool.scenario(users=[1, 3], ramp="1s"), "--json")
    seen: set[str] = set()
    while command.process.poll() is None:
        for process in tool.processes():
            try:
                seen.update(process.cmdline())
            except psutil.Error:
                continue
        time.sleep(0.5)  # executors are there for seconds
    assert command.wait() == 0, command.text
    tool.nothing_left()
    assert any("stallmark.driver.executor" in argument for argument in seen)
    assert not any(PASSWORD in argument for argument in seen)
    assert PASSWORD not in command.text
    files = [path for path in tool.folder.rglob("*") if path.is_file()]
    assert any(path.suffix == ".parquet" for path in files)
    assert [path for path in files if PASSWORD.encode() in path.read_bytes()] == []
    [manifest] = tool.manifests()
    assert manifest.status == "complete"
    steps = [(step.users, step.begin_s, step.measure_s, step.end_s) for step in manifest.steps]
    assert steps == [(1, 0, 1, 2), (3, 2, 3, 4)]
    [record] = (Record(path) for path in tool.newest().iterdir() if path.is_dir())
    running = {row["second"]: row["running"] for row in record.table("users").to_pylist()}
    assert 0 < running[1] < running[3] <= 3.5  # on a busy machine a report comes late, and counts for another second
    assert not tool.home.exists(), "no embedded server was needed"


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"buffer_pool": "64MiB"}, "asks for `buffer_pool`, but shared_buffers needs a restart"),
        ({"start_cache": "cold"}, "asks for `start_cache: cold`, but emptying the buffer pool needs a restart"),
        ({"reset": "restore"}, "asks for `reset: restore`, but the files of a server reached by URL cannot be copied"),
        (
            {"emulated_array": {"wal": {"spindles": 1, "read_ms": 1, "write_ms": 1, "sync_ms": 1, "mb_per_s": 9}}},
            "asks for `emulated_array`, but an emulated array works under the embedded server only",
        ),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_what_a_remote_server_cannot_is_refused(tool, changes, sentence):
    assert sentence in refused(tool, "run", tool.scenario(**changes))


def test_a_wrong_password_and_a_server_that_is_not_there(tool, remote):
    tool.environment["STALLMARK_SERVER"] = remote.url(password="wr0ng-h0rse")
    for arguments in (["run", tool.scenario()], ["doctor"], ["build", "bank", "--scale", "branches=1"]):
        code, said = tool.run(*arguments)
        assert code == 3 and "password authentication failed" in " ".join(said.split()), said
        assert "wr0ng-h0rse" not in said
    nowhere = f"postgresql://boss@127.0.0.1:{free_port()}/work"
    assert "Is the server running" in refused(tool, "run", tool.scenario(), "--server", nowhere)


def test_a_role_without_special_rights_whose_sessions_end_at_once_builds_and_drives(tool, remote):
    with connected(remote) as boss:
        boss.execute("CREATE DATABASE limited OWNER plain")
        for name in LIMITS:
            boss.execute(f"ALTER ROLE plain IN DATABASE limited SET {name} = '20ms'")
        tool.environment["STALLMARK_SERVER"] = remote.url("plain").replace("/work", "/limited")
        code, said = tool.run("doctor")
        assert code == 0 and "track_io_timing is off" in " ".join(said.split()), said
        path = tool.scenario(start_cache="prefilled")
        said = refused(tool, "run", path)
        assert "GRANT pg_checkpoint TO plain" in said and "Loading" not in said
        boss.execute("GRANT pg_checkpoint TO plain")
    code, said = tool.run("run", path)
    assert code == 0, said
    assert tool.manifests()[0].status == "complete"


def test_nothing_is_built_through_a_pooler_and_nothing_of_it_is_left(tool, remote, tmp_path_factory):
    schemas = PostgresEngine(remote.url()).schemas_in_use
    before = schemas()
    with pooler(remote, tmp_path_factory.mktemp("pooler"), "transaction") as pooled:
        tool.environment["STALLMARK_SERVER"] = pooled.url()
        profile = ("profile", "--for", "1min", "--out", str(tool.folder / "profile"))
        build = ("build", "bank", "--scale", "branches=1")
        for command in (("run", tool.scenario()), build, ("db", "list"), profile):
            assert "is the address of a connection pooler, such as pgbouncer" in refused(tool, *command)
        code, said = tool.run("doctor")
        assert code == 3 and f"name the server's own address, 127.0.0.1:{remote.port}" in " ".join(said.split())
        assert schemas() == before
        tool.environment["STALLMARK_SERVER"] = remote.url()
        code, said = tool.run(*build)  # while the pooler still has its sessions
        assert code == 0 and "Waiting for a lock" not in said, said


def test_a_server_that_starts_again_in_mid_run_is_told_and_not_judged(tool, remote):
    command, folder = tool.start_measuring()
    restart(remote)
    assert command.wait() == 4, command.text
    tool.nothing_left()
    said = " ".join(command.text.split())
    assert "the server was restarted" in said and "Traceback" not in said and PASSWORD not in said
    [of_run] = summarise([Record(folder)]).runs
    step = of_run.steps[-1]
    assert {ValidityKind.SERVER_STARTED, ValidityKind.CONNECTIONS_LOST} & {one.kind for one in step.validity.invalid}
    assert step.bottleneck.device_verdict is None


# A server that is lost before there is a record: what became of it is named first, with an exit code of its own


LOST = "The lock is gone: the server was restarted."
FAILED = CallFailed(ErrorClass.CONNECTION_LOST, "57P01", "terminating connection")


def lost() -> None:
    raise ServerLost(LOST)


@pytest.mark.parametrize("failed", [FAILED, StallmarkError("The build failed."), OSError(28, "No space left")])
def test_what_became_of_the_server_comes_before_what_failed(failed: Exception):
    with pytest.raises(ServerLost) as caught, naming_loss(lost):
        raise failed
    words = "No space left" if isinstance(failed, OSError) else str(failed).rstrip(".")
    assert str(caught.value) == f"{LOST} {words}."


def test_an_error_that_no_loss_explains_stays_what_it_is():
    with pytest.raises(CallFailed) as caught, naming_loss(lambda: None):
        raise FAILED
    assert caught.value is FAILED
    with pytest.raises(ServerLost, match=r"^The first one\.$"), naming_loss(lost):
        raise ServerLost("The first one.")


def restart(remote: Remote) -> None:
    remote.stop()
    remote.start()


@pytest.fixture
def run_lost(remote: Remote, tool: Tool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[], str]:
    """Runs the small scenario in this process, in which the server is lost; returns the command's errors."""
    monkeypatch.setenv("STALLMARK_HOME", str(tool.home))
    monkeypatch.setenv("STALLMARK_SERVER", remote.url())
    monkeypatch.chdir(tmp_path)

    def run_it() -> str:
        done = stallmark("run", tool.scenario())
        assert done.exit_code == 4, done.output
        assert done.stderr.count("Error:") == 1 and "Traceback" not in done.output
        assert not list(tmp_path.glob("stallmark-runs/*/*/manifest.json"))
        return " ".join(done.stderr.split())

    return run_it


def test_a_server_that_starts_again_while_it_is_loaded(run_lost, remote, monkeypatch):
    finish = load._finish

    def lose_it(engine: Any, *others: Any) -> bool:
        with engine.cursor() as cursor:
            restart(remote)
            cursor.execute("SELECT 1")
        return finish(engine, *others)

    monkeypatch.setattr(load, "_finish", lose_it)
    with psycopg.connect(remote.url()) as boss:
        boss.execute("DROP SCHEMA IF EXISTS bank, stallmark CASCADE")
    said = run_lost()
    assert "every run takes is gone" in said and "the server was restarted" in said
    assert said.index("the server was restarted") < said.index("Finishing the database failed")


def test_a_server_that_starts_again_while_the_first_run_is_prepared(run_lost, remote, monkeypatch):
    def lose_it(engine: Any) -> None:
        with engine.cursor() as cursor:
            restart(remote)
            cursor.execute("SELECT 1")

    monkeypatch.setattr(any_run, "drop_left_behind", lose_it)
    assert "the server was restarted" in run_lost()


def test_a_server_that_becomes_read_only_before_the_first_run(run_lost, remote, monkeypatch):
    with connected(remote, options="-c default_transaction_read_only=off") as boss:

        def change(how: str) -> None:
            boss.execute(f"ALTER SYSTEM {how}")
            boss.execute("SELECT pg_reload_conf()")

        def lose_it(engine: Any) -> None:
            change("SET default_transaction_read_only = on")
            while engine.query("SHOW default_transaction_read_only") == [("off",)]:
                pass

        monkeypatch.setattr(any_run, "drop_left_behind", lose_it)
        try:
            said = run_lost()
        finally:
            change("RESET default_transaction_read_only")
    assert "has become read-only (default_transaction_read_only is on), so this run ends" in said
