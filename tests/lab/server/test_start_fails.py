"""A server that does not come up: why, and that nothing of it is left."""

import os
import signal

from support.asking_docker import said, up
from support.docker_api import Container
from support.tds.answers import Error

from stallmark.lab.server import server


def test_a_server_that_ends_while_it_starts_shows_its_last_lines_and_is_removed(engine):
    lines = [f"line {number}" for number in range(40)]

    def end(made: Container) -> None:
        made.status, made.log = "exited", "\n".join(lines)

    engine.on_start = end
    shown = said(up())
    assert "SQL Server ended while it started" in shown and "docs/sql-server.md" in shown
    assert "line 20 line 21" in shown and "line 39" in shown and "line 19" not in shown
    assert engine.containers == {} and engine.volumes == {}


def test_a_server_that_was_killed_for_its_memory(engine):
    def kill(made: Container) -> None:
        made.status, made.out_of_memory = "exited", True

    engine.on_start = kill
    assert "it needed more memory than its container has" in said(up())


def test_a_server_that_refuses_logins_at_first_is_waited_for(engine, sql_server, script):
    script.login(Error(18456, "Login failed for user 'sa'.", severity=14), times=1)
    said(up("--port", sql_server.port), 0)
    assert len(sql_server.logins) >= 3


def test_a_server_that_never_takes_a_login(engine, sql_server, script, monkeypatch):
    script.login(Error(18456, "Login failed for user 'sa'.", severity=14))
    monkeypatch.setattr(server.up, "__kwdefaults__", {"ready_within_s": 0.0})
    assert "SQL Server takes no login after 0 s." in said(up("--port", sql_server.port))
    assert engine.containers == {} and engine.volumes == {}


def test_ctrl_c_leaves_no_container(engine):
    engine.on_start = lambda made: os.kill(os.getpid(), signal.SIGINT)
    assert "Stopped by Ctrl-C" in said(up(), 130)
    assert engine.containers == {} and engine.volumes == {}
