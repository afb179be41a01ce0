"""One folder, one tool: a second is refused, and whoever is killed, no server is left and nobody else's is ended."""

import os
import signal
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from support.embedded_servers import POOL, Make, alive, family, postmaster, rows
from support.waiting import eventually

from stallmark.cli.leftovers import sweep
from stallmark.engines.postgres.embedded.engine import EmbeddedEngine
from stallmark.engines.postgres.embedded.ownership import leftover_servers
from stallmark.engines.postgres.embedded.server import EmbeddedServer
from stallmark.engines.postgres.engine import PostgresEngine


def tool(folder: Path, rest: str = "time.sleep(600)") -> subprocess.Popen:
    """Another Stallmark that starts the server in `folder` and says so."""
    program = f"""
        import sys, time
        from pathlib import Path
        from stallmark.engines.postgres.embedded.engine import EmbeddedEngine
        from stallmark.engines.postgres.embedded.server import EmbeddedServer
        from stallmark.errors import StallmarkError
        server = EmbeddedServer(Path({str(folder)!r}), buffer_pool_bytes={POOL})
        try:
            engine = EmbeddedEngine(server, "x")
            print("started", server._guard.pid, flush=True)
            {rest}
        except StallmarkError as error:
            print(error, flush=True)
        finally:
            server.close()
    """
    return subprocess.Popen([sys.executable, "-c", textwrap.dedent(program)], stdout=subprocess.PIPE, text=True)


@pytest.fixture
def own_place(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Servers listen where no command of another test looks for what was left behind."""
    with tempfile.TemporaryDirectory(prefix="own-") as place:
        monkeypatch.setenv("TMPDIR", place)
        monkeypatch.setattr(tempfile, "tempdir", place)
        yield


@pytest.fixture
def other_tool(own_place: None, make_server: Make) -> Iterator[tuple[EmbeddedServer, subprocess.Popen, psutil.Process]]:
    """The folder of a server, a tool of another process that has started it, and its guard."""
    server = make_server()
    with tool(server.folder) as process:
        assert process.stdout
        _, guard = process.stdout.readline().split()
        yield server, process, psutil.Process(int(guard))
        process.kill()


def test_a_server_is_not_told_the_passwords_of_others(make_server: Make, monkeypatch):
    monkeypatch.setenv("SQLCMDPASSWORD", "hunter2-and-more")
    monkeypatch.setenv("STALLMARK_SERVER", "postgresql://me:hunter2-and-more@db/x")
    server = make_server()
    server.start()
    assert server._guard
    told = psutil.Process(server._guard.pid).environ()
    assert "hunter2" not in str(told) and "PATH" in told


def test_a_second_tool_is_refused_by_the_number_of_the_first_which_goes_on(table: EmbeddedEngine):
    before = rows(table)
    with tool(table.server.folder) as second:
        assert second.stdout
        said = second.stdout.read()
    assert f"in use by another Stallmark (process {os.getpid()})" in said
    assert rows(table) == before  # over new connections: the socket is still there


def test_a_tool_that_is_killed_leaves_no_server(other_tool):
    server, process, guard = other_tool
    processes = [guard, *family(server)]
    process.kill()
    eventually(lambda: not any(alive(p) for p in processes))
    server.start()
    assert "shut down" in server.log.read_text()


def test_ctrl_c_at_the_terminal_is_the_tools_business_not_the_servers(other_tool):
    server, process, guard = other_tool
    guard.send_signal(signal.SIGINT)
    guard.send_signal(signal.SIGHUP)
    assert os.getsid(guard.pid) != os.getsid(process.pid)
    assert PostgresEngine(server.url("x")).query("SELECT 1") == [(1,)]


def test_a_guard_told_to_end_ends_its_server(other_tool):
    server, _, guard = other_tool
    processes = [guard, *family(server)]
    guard.send_signal(signal.SIGTERM)
    eventually(lambda: not any(alive(p) for p in processes))


def test_a_guard_that_is_killed_alone_leaves_no_server_when_its_tool_ends(table: EmbeddedEngine):
    processes = family(table.server)
    psutil.Process(table.server._guard.pid).kill()
    eventually(lambda: not table.server.running)
    assert table.gone()
    table.server.close()
    eventually(lambda: not any(alive(p) for p in processes))


def test_a_server_left_behind_is_ended_by_the_next_start_and_nobody_elses(other_tool, make_server: Make):
    other = make_server("other")
    other.start()
    server, process, guard = other_tool
    left = postmaster(server)
    PostgresEngine(server.url("x")).execute("CREATE TABLE t AS SELECT 1 AS i")
    guard.kill()
    process.kill()
    process.wait()
    eventually(lambda: not alive(guard))
    assert alive(left)
    server.start()
    assert not alive(left)
    assert postmaster(server).pid != left.pid
    assert rows(EmbeddedEngine(server, "x")) == [(1,)]
    assert other.running and alive(postmaster(other))  # a PostgreSQL of the same user in another folder


def test_a_server_left_behind_is_ended_by_whatever_command_comes_next_and_no_other(other_tool, make_server: Make):
    other = make_server("other")
    other.start()
    server, process, guard = other_tool
    left, sockets = postmaster(server), server.socket_folder
    assert list(leftover_servers()) == []  # as long as its tool lives
    guard.kill()
    process.kill()
    process.wait()
    eventually(lambda: not alive(guard))
    assert [one.place for one in leftover_servers()] == [sockets] and alive(left)
    sweep()
    assert not alive(left) and not sockets.exists() and list(leftover_servers()) == []
    assert other.running and alive(postmaster(other)) and other.socket_folder.exists()


def test_a_server_that_was_killed_with_everything_starts_and_is_ready(other_tool):
    """The old postmaster.pid still says `ready`: it is not the new server's word."""
    server, process, guard = other_tool
    processes = [guard, *family(server)]
    PostgresEngine(server.url("x")).execute("CREATE TABLE t AS SELECT 1 AS i")
    for victim in (guard, process, *processes):
        with suppress(psutil.NoSuchProcess):
            victim.kill()
    process.wait()
    eventually(lambda: not any(alive(p) for p in processes))
    assert "ready" in (server.data / "postmaster.pid").read_text()
    server.start()
    assert rows(PostgresEngine(server.url("x"))) == [(1,)]


@pytest.mark.parametrize("who", ["nobody", "this test", "a server of somebody else"])
def test_a_stale_number_harms_neither_the_start_nor_the_process_that_has_it_now(who, make_server: Make):
    server, other = make_server(), make_server("other")
    other.start()
    with subprocess.Popen(["true"]) as gone:
        pass
    number = {"nobody": gone.pid, "this test": os.getpid()}.get(who, postmaster(other).pid)
    stale = f"{number}\n{server.data}\n1700000000\n5432\n{server.socket_folder}\n\n 0 0\nready   \n"
    (server.data / "postmaster.pid").write_text(stale)
    server.socket_folder.mkdir(mode=0o700)
    (server.socket_folder / ".s.PGSQL.5432.lock").write_text(stale)
    server.start()
    assert PostgresEngine(server.url("postgres")).query("SELECT 1") == [(1,)]
    server.stop()
    assert alive(postmaster(other))
    assert PostgresEngine(other.url("postgres")).query("SELECT 1") == [(1,)]


GUARD = [sys.executable, "-m", "stallmark.guard", "test"]


def test_a_guard_whose_tool_has_gone_before_its_order_ends():
    ended = subprocess.run(GUARD, stdin=subprocess.DEVNULL, capture_output=True)
    assert (ended.returncode, ended.stderr) == (0, b"")


def test_a_guard_that_waits_for_its_order_ends_when_it_is_told_to():
    with subprocess.Popen(GUARD, stdin=subprocess.PIPE) as guard:
        with pytest.raises(subprocess.TimeoutExpired):
            guard.wait(timeout=1)  # it has begun to wait
        guard.terminate()
        assert guard.wait(timeout=60) == -signal.SIGTERM
