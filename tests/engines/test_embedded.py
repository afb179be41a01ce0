"""The embedded server: made, moved, capped, restored; nobody else's is touched, and none is left behind."""

import json
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from support.embedded_servers import POOL, Make, alive, family, postmaster, rows
from support.remote import free_port
from support.waiting import eventually

from stallmark.cli.doctor import sweep
from stallmark.engines.postgres import MINIMUM_POOL_BYTES
from stallmark.engines.postgres import embedded_server as embedded
from stallmark.engines.postgres.embedded_engine import EmbeddedEngine
from stallmark.engines.postgres.embedded_ownership import leftover_servers
from stallmark.engines.postgres.embedded_server import EmbeddedServer, failure_message
from stallmark.engines.postgres.engine import PostgresEngine
from stallmark.errors import StallmarkError
from stallmark.processes import temporary_name
from stallmark.storage.emulator import ArrayModel

MB = 1024**2


# A server's life.


def test_a_new_folder_becomes_a_server_of_ours(make_server: Make):
    server = make_server("new", fresh=True)
    engine = EmbeddedEngine(server, "x")
    assert engine.identity().version[0] == embedded.MAJOR
    settings = engine.settings().configuration
    assert settings["debug_io_direct"] == "data"
    assert {settings[name] for name in ("fsync", "synchronous_commit", "track_io_timing")} == {"on"}
    assert {path.name for path in server.folder.iterdir()} == {
        "data", "lock", "password", "server.log", "stallmark-embedded.json",
    }  # fmt: skip
    assert (server.folder / "password").stat().st_mode & 0o077 == 0
    assert engine.backup.refusal() is None and engine.unexpected_end() is None
    assert 0 < engine.free_bytes() <= shutil.disk_usage("/").total + shutil.disk_usage(server.folder).total
    assert engine.directories() == {
        "data": server.data.resolve(), "wal": (server.data / "pg_wal").resolve(),
    }  # fmt: skip


def test_it_keeps_its_data_over_stop_and_start(table: EmbeddedEngine):
    before = rows(table)
    process = postmaster(table.server)
    table.server.stop()
    assert not alive(process) and not table.server.running
    table.server.stop()
    table.server.start()
    assert rows(table) == before
    table.server.start()  # a second time changes nothing
    assert rows(table) == before


def test_closing_leaves_no_process_no_socket_and_no_lock(server: EmbeddedServer, make_server: Make):
    process = postmaster(server)
    server.close()
    assert not alive(process)
    assert not server.socket_folder.exists()
    again = make_server()
    again.start()
    assert again.running


@pytest.mark.parametrize("size", [MINIMUM_POOL_BYTES, 24 * MB, 33_333_248])
def test_the_cap_is_reached_exactly(size, table: EmbeddedEngine):
    before = rows(table)
    assert table.memory.cap(size) == size == table.buffer_pool_bytes()
    assert rows(table) == before


def test_a_cap_below_the_minimum_is_refused_and_the_server_goes_on(table: EmbeddedEngine, make_server: Make):
    with pytest.raises(StallmarkError, match="8 MiB"):
        table.memory.cap(MINIMUM_POOL_BYTES - 1)
    assert table.buffer_pool_bytes() == POOL
    with pytest.raises(StallmarkError, match="8 MiB"):
        make_server("other", buffer_pool_bytes=MB).start()


def test_a_cold_start_reads_what_was_in_the_pool(table: EmbeddedEngine):
    def reads() -> int:
        with table.cursor() as cursor:
            cursor.execute("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT count(*) FROM t")
            return cursor.fetchall()[0][0][0]["Plan"]["Shared Read Blocks"]

    rows(table)
    assert reads() == 0
    table.caches.empty()
    assert reads() > 0


def test_a_server_that_ended_by_itself_is_noticed_and_starts_again(table: EmbeddedEngine):
    before = rows(table)
    postmaster(table.server).send_signal(signal.SIGQUIT)
    eventually(lambda: not table.server.running)
    assert "ended by itself" in str(table.unexpected_end())
    table.server.start()
    assert rows(table) == before and table.unexpected_end() is None


# Ports.


@pytest.fixture
def port() -> int:
    return free_port()


def test_over_tcp_a_password_is_asked_for(port, make_server: Make):
    server = make_server(port=port)
    server.start()
    assert PostgresEngine(server.url("postgres")).query("SELECT 1") == [(1,)]
    password = (server.folder / "password").read_text().strip()
    assert len(password) == 32
    url = "postgresql://stallmark{}@127.0.0.1:{}/postgres"
    assert PostgresEngine(url.format(f":{password}", port)).query("SELECT 1") == [(1,)]
    for wrong in ("", ":guess"):
        with pytest.raises(StallmarkError, match="password"):
            PostgresEngine(url.format(wrong, port)).connect()


def test_without_a_port_nothing_listens(server: EmbeddedServer):
    assert [c for p in family(server) for c in p.net_connections("inet")] == []


def test_a_port_in_use_is_named(make_server: Make, port):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", port))
        taken.listen()
        with pytest.raises(StallmarkError, match=f"Port {port} .*: choose another with --port"):
            make_server(port=port).start()


# Folders.


def test_a_folder_that_is_not_ours_is_refused_and_left_alone(make_server: Make, tmp_path: Path):
    folder = tmp_path / "server"
    folder.mkdir()
    (folder / "thesis.txt").write_text("mine")
    with pytest.raises(StallmarkError, match="did not make"):
        make_server(fresh=True).start()
    assert [path.name for path in folder.iterdir()] == ["thesis.txt"]


def test_a_folder_that_is_a_file_is_refused(make_server: Make, tmp_path: Path):
    (tmp_path / "server").write_text("a file")
    with pytest.raises(StallmarkError, match="cannot be used"):
        make_server(fresh=True).start()


def test_a_data_directory_of_another_version_is_refused(make_server: Make):
    server = make_server()
    (server.data / "PG_VERSION").write_text("17\n")
    with pytest.raises(StallmarkError, match="made by PostgreSQL 17, this Stallmark brings 18"):
        server.start()


def test_a_server_that_does_not_start_says_why(make_server: Make):
    server = make_server()
    (server.data / "postgresql.auto.conf").write_text("no_such_setting = 1\n")
    with pytest.raises(StallmarkError, match=r"did not start: .*Its log is .*server.log") as caught:
        server.start()
    assert len(str(caught.value).splitlines()) == 1
    assert not server.running


def test_a_disk_that_is_full_when_it_starts_is_said_with_what_to_do(make_server: Make):
    server = make_server()
    (server.data / "postmaster.opts").unlink(missing_ok=True)
    (server.data / "postmaster.opts").symlink_to("/dev/full")  # the server writes it as it starts
    with pytest.raises(StallmarkError, match=r"postmaster.opts.*No space left on device\. Free some space on"):
        server.start()
    (server.data / "postmaster.opts").unlink()
    server.start()
    assert server.running


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('initdb: error: could not write to file "pg_wal/xlogtemp.42": No space left on device',
         'could not write to file "pg_wal/xlogtemp.42": No space left on device. Free some'),
        ('2026-11-21 20:00:00 UTC [7] PANIC:  could not write to file "pg_wal/xlogtemp.7": No space left on device',
         'could not write to file "pg_wal/xlogtemp.7": No space left on device. Free some'),
        ("2026-11-21 20:00:00 UTC [7] FATAL:  the database system is starting up",
         "the database system is starting up."),
        ("", "it said nothing."),
    ],
)  # fmt: skip
def test_the_reason_in_a_log(line: str, said: str):
    reason = failure_message("the server", 1, f"LOG:  starting PostgreSQL\n{line}\nLOG:  shut down\n" if line else "")
    assert reason.startswith(said) and ("Free some" in said or reason == said)


@pytest.mark.parametrize(
    ("program", "script", "said"),
    [
        ("initdb", "kill -9 $$", r"initdb was killed by signal 9 \(SIGKILL\)"),
        ("initdb", "echo 'child process was terminated by signal 9: Killed' >&2; exit 1", "the server that initdb had"),
        (
            "initdb",
            "echo 'child process exited with exit code 143' >&2; exit 1",
            r"started was killed by .*\(SIGTERM\)",
        ),
        ("postgres", "kill -9 $$", r"the server was killed by signal 9 \(SIGKILL\)"),
        ("postgres", "kill -9 $PPID; sleep 5", r"its guard was killed by signal 9 \(SIGKILL\)"),
        ("postgres", "kill -15 $PPID; sleep 5", r"its guard was killed by signal 15 \(SIGTERM\)"),
    ],
)
def test_who_is_killed_while_it_starts_is_said(make_server: Make, monkeypatch, tmp_path, program, script, said):
    stand_in = tmp_path / program
    stand_in.write_text(f"#!/bin/sh\n{script}\n")
    stand_in.chmod(0o755)
    real = embedded.binary
    monkeypatch.setattr(embedded, "binary", lambda name: stand_in if name == program else real(name))
    server = make_server("new", fresh=program == "initdb")
    with pytest.raises(StallmarkError, match=said):
        server.start()


def test_a_signal_that_initdb_ends_by_is_said(make_server: Make):
    server = make_server("new", fresh=True)
    draft = server.data.with_name("data.new")

    def stop_it() -> None:
        eventually((draft / "postgresql.conf").exists)
        [process] = [one for one in psutil.Process().children() if one.name() == "initdb"]
        process.send_signal(signal.SIGTERM)

    stopping = threading.Thread(target=stop_it)
    stopping.start()
    with pytest.raises(StallmarkError, match="initdb was stopped by a signal"):
        server.start()
    stopping.join()
    assert not draft.exists()
    server.start()
    assert server.running


def test_a_guard_that_is_killed_before_it_has_its_order_is_said(make_server: Make, monkeypatch):
    start = subprocess.Popen

    def start_killed(argv: list[str], **options) -> subprocess.Popen:
        if argv[-1] != "guard-of-postgres":
            return start(argv, **options)
        process = start(["/bin/sh", "-c", "kill -9 $$"], **options)
        process.wait()
        return process

    server = make_server("new")
    with monkeypatch.context() as patch:
        patch.setattr(embedded.subprocess, "Popen", start_killed)
        with pytest.raises(StallmarkError, match=r"its guard was killed by signal 9 \(SIGKILL\)"):
            server.start()
    server.start()
    assert server.running


def test_a_server_of_initdb_that_is_killed_leaves_no_shared_memory(make_server: Make):
    server, told = make_server("new", fresh=True), list[str]()
    begun = server.data.with_name("data.new") / "postmaster.pid"

    def has_shared_memory() -> bool:
        told[:] = begun.read_text().splitlines() if begun.exists() else []
        if len(told) < 7 or not told[6].strip():
            return False
        # Others only try how much memory it may have.
        return "--boot" in Path(f"/proc/{abs(int(told[0]))}/cmdline").read_text()

    def kill_it() -> None:
        eventually(has_shared_memory)
        pid = abs(int(told[0]))
        mapped.append(Path(f"/proc/{pid}/maps").read_text())
        os.kill(pid, signal.SIGKILL)

    mapped: list[str] = []
    killing = threading.Thread(target=kill_it)
    killing.start()
    with pytest.raises(StallmarkError, match=r"killed by signal 9"):
        server.start()
    killing.join()
    assert not re.search(r"/dev/shm/PostgreSQL", mapped[0])
    key = told[6].split()[0]
    segments = [line.split() for line in Path("/proc/sysvipc/shm").read_text().splitlines()[1:]]
    assert key not in [segment[0] for segment in segments]
    server.start()
    assert server.running


def test_a_disk_that_is_full_during_initdb_is_a_sentence_and_leaves_no_half_cluster(make_server: Make, monkeypatch):
    # A file size limit stands for the full disk: initdb cannot write its first WAL segment.
    real = subprocess.run

    def limited(argv, **options):
        if any(str(part).endswith("initdb") for part in argv):
            options["preexec_fn"] = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (MB, MB))
        return real(argv, **options)

    monkeypatch.setattr(subprocess, "run", limited)
    server = make_server("new", fresh=True)
    with pytest.raises(StallmarkError, match="could not make a data directory"):
        server.start()
    assert not server.data.exists()
    monkeypatch.undo()
    server.start()
    assert server.running


# Emulated devices.

SLOW = ArrayModel(spindles=1, read_ms=0, write_ms=0, sync_ms=0, mb_per_s=10_000)


@pytest.mark.skipif(sys.platform != "linux" or not shutil.which("cc"), reason="an emulated device needs Linux and cc")
def test_devices_are_emulated_slow_when_engaged_and_gone_when_relaxed(table: EmbeddedEngine):
    before = rows(table)
    assert table.devices.models == {}
    for models in ({"data": SLOW, "wal": SLOW}, {"data": SLOW}, {"wal": SLOW}):
        table.devices.use(models)
        assert table.devices.models == models
        devices = table.devices.array
        assert devices is not None
        start = devices.counters()
        assert start.keys() == models.keys()
        state = devices._state_file
        assert state.exists() and state.name.startswith(temporary_name("devices"))
        for step in ("relaxed", "engaged", "relaxed again"):
            table.devices.engage() if step == "engaged" else table.devices.relax()
            for name in models:
                assert devices._device(name).model.spindles == (1 if step == "engaged" else 0)
            table.execute("INSERT INTO t VALUES (0, 'x'); DELETE FROM t WHERE i = 0; CHECKPOINT")
            assert rows(table) == before
        now = devices.counters()
        for name in models:  # counted all the time
            assert now[name].syncs > start[name].syncs
            assert now[name].busy_ns >= start[name].busy_ns
    table.caches.empty()
    assert table.devices.array is devices  # as real ones, they outlive a restart
    table.devices.use(None)
    assert table.devices.models == {} and table.devices.array is None
    table.devices.engage()
    table.devices.relax()
    assert rows(table) == before
    assert not state.exists()


# One folder, one tool: a second is refused, and whoever is killed, no server is left and nobody else's is ended


def tool(folder: Path, rest: str = "time.sleep(600)") -> subprocess.Popen:
    """Another Stallmark that starts the server in `folder` and says so."""
    program = f"""
        import sys, time
        from pathlib import Path
        from stallmark.engines.postgres.embedded_engine import EmbeddedEngine
        from stallmark.engines.postgres.embedded_server import EmbeddedServer
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
    assert table.unexpected_end()
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
    sweep(elsewhere=False)
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


GUARD = [sys.executable, "-m", "stallmark.child_guard", "test"]


def test_a_guard_whose_tool_has_gone_before_its_order_ends():
    ended = subprocess.run(GUARD, stdin=subprocess.DEVNULL, capture_output=True)
    assert (ended.returncode, ended.stderr) == (0, b"")


@pytest.mark.thorough
def test_a_guard_that_waits_for_its_order_ends_when_it_is_told_to():
    with subprocess.Popen(GUARD, stdin=subprocess.PIPE) as guard:
        with pytest.raises(subprocess.TimeoutExpired):
            guard.wait(timeout=1)  # it has begun to wait
        guard.terminate()
        assert guard.wait(timeout=60) == -signal.SIGTERM


def test_a_guard_ends_a_program_that_was_stopped():
    ends = [(signal.SIGINT, 30), (signal.SIGQUIT, None)]
    order = {"argv": ["sleep", "600"], "environment": {}, "log": None, "ends": ends}
    with subprocess.Popen(GUARD, stdin=subprocess.PIPE) as guard:
        assert guard.stdin
        guard.stdin.write(json.dumps(order).encode() + b"\n")
        guard.stdin.flush()

        def started() -> psutil.Process | None:
            return next((child for child in psutil.Process(guard.pid).children() if child.name() == "sleep"), None)

        (program := eventually(started, "the program")).suspend()
        guard.stdin.close()
        try:
            assert guard.wait(timeout=40) == 128 + signal.SIGINT
        finally:
            with suppress(psutil.NoSuchProcess):
                program.kill()
