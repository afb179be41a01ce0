"""A server that is not ours, by URL: what can be done there is done, the rest is said, its password told nobody."""

import re
import signal
import time

import psutil
import psycopg
import pytest
from support.remote import PASSWORD, Remote, free_port
from support.tool import Tool

from stallmark.record.reader import Record


@pytest.fixture
def tool(fresh: Tool, remote: Remote) -> Tool:
    """One that finds the server's URL in its environment, where no `ps` shows it."""
    fresh.environment["STALLMARK_SERVER"] = remote.url()
    return fresh


def test_a_user_ramp_on_a_remote_server_and_the_password_is_nowhere(tool):
    command = tool.start_anew("run", tool.scenario(users=[1, 3], ramp="1s"), "--json")
    seen: set[str] = set()
    while command.process.poll() is None:
        for process in tool.processes():
            try:
                seen.update(process.cmdline())
            except psutil.Error:
                continue
        time.sleep(0.2)  # executors are there for seconds
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
    code, said = tool.run("run", tool.scenario(**changes))
    assert code == 3 and sentence in " ".join(said.split()), said


def test_a_wrong_password(fresh, remote):
    fresh.environment["STALLMARK_SERVER"] = remote.url(password="wr0ng-h0rse")
    for arguments in (["run", fresh.scenario()], ["doctor"], ["build", "bank", "--scale", "branches=1"]):
        code, said = fresh.run(*arguments)
        assert code == 3 and "password authentication failed" in " ".join(said.split()), said
        assert "wr0ng-h0rse" not in said


def test_a_user_without_special_rights_can_drive_and_see_its_own_sessions(fresh, remote):
    fresh.environment["STALLMARK_SERVER"] = remote.url("plain")
    code, said = fresh.run("doctor")
    assert code == 0 and "track_io_timing is off" in " ".join(said.split()), said
    with psycopg.connect(remote.url(), autocommit=True) as connection:
        connection.execute("DROP SCHEMA IF EXISTS bank CASCADE; DROP SCHEMA IF EXISTS stallmark CASCADE")
    path = fresh.scenario(start_cache="prefilled")
    code, said = fresh.run("run", path)
    assert code == 3 and "GRANT pg_checkpoint TO plain" in " ".join(said.split()), said
    assert "Loading" not in said
    with psycopg.connect(remote.url(), autocommit=True) as connection:
        connection.execute("GRANT pg_checkpoint TO plain")
    code, said = fresh.run("run", path)
    assert code == 0, said
    assert fresh.manifests()[0].status == "complete"


def test_a_server_that_is_not_there(fresh):
    code, said = fresh.run("run", fresh.scenario(), "--server", f"postgresql://boss@127.0.0.1:{free_port()}/work")
    assert code == 3 and "Is the server running" in " ".join(said.split()), said


def test_a_remote_server_that_goes_away_while_measuring(tool, remote):
    """The last test here: the server does not come back."""
    command, folder = tool.start_measuring()
    remote.process.send_signal(signal.SIGQUIT)
    remote.process.wait(60)
    assert command.wait() == 4, command.text
    tool.nothing_left()
    assert "Traceback" not in command.text and PASSWORD not in command.text
    # Whoever asks first: a user, or the session that holds the lock of the run.
    assert re.search(r"Incomplete: .*(lost the server|The lock on 127\.0\.0\.1.* is gone)", command.text), command.text
    assert Record(folder).incomplete_because
