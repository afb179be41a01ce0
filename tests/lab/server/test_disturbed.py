"""A start that is cut, or that meets another one: the next works, and nothing of anybody else is touched."""

import os
import signal
import subprocess
import sys
import time

import pytest
from support.asking_docker import said, up
from support.command_line import stallmark
from support.docker_api import Asked, Container, Engine

from stallmark.experiment.target import server_url
from stallmark.lab.server import order as server_order
from stallmark.lab.server import server

MAKES_VOLUME, MAKES, STARTS = "POST /volumes/create", "POST /containers/create", "POST /containers/stallmark/start"


def killed_at(engine: Engine, request: str, port: int) -> None:
    """Have the engine kill the command when it is asked for this. It does as asked all the same."""
    arguments = ["server", "up", "--accept-eula", "--port", str(port)]

    def kill(asked: Asked) -> None:
        if str(asked) == request:
            command.kill()
            command.wait()

    engine.before = kill
    command = subprocess.Popen([sys.executable, "-m", "stallmark.cli.entry", *arguments])
    assert command.wait(60) == -signal.SIGKILL
    engine.before = lambda asked: None


def assert_it_opens() -> None:
    url_file = server_order.CredentialFiles("stallmark").url_file
    server.MssqlEngine(server_url(f"@{url_file}")).connect().close()


@pytest.mark.parametrize("request_", [MAKES_VOLUME, MAKES, STARTS])
def test_after_a_start_that_was_killed_down_and_up_go_on(engine, sql_server, request_):
    killed_at(engine, request_, sql_server.port)
    if engine.containers:
        assert "`stallmark server down stallmark` removes it" in said(up("--port", sql_server.port))
    said(stallmark("server", "down"), 0)
    said(up("--port", sql_server.port), 0)
    assert_it_opens()
    assert engine.containers["stallmark"].status == "running"
    said(stallmark("server", "down", "--remove-data"), 0)
    assert engine.containers == {} and engine.volumes == {}


def test_a_server_that_is_up_is_never_taken_over(engine, sql_server):
    said(up("--port", sql_server.port), 0)
    made = engine.containers["stallmark"]
    assert "There is a server 'stallmark' already" in said(up("--port", sql_server.port))
    assert engine.containers["stallmark"] is made


@pytest.mark.parametrize("request_", [MAKES_VOLUME, MAKES])
def test_ctrl_c_while_the_engine_makes_a_part_of_it_leaves_nothing(engine, request_):
    """The engine makes it also when nobody waits for it any more."""

    def interrupt(asked: Asked) -> None:
        if str(asked) == request_:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.5)

    engine.before = interrupt
    assert "Stopped by Ctrl-C" in said(up(), 130)
    time.sleep(0.6)
    assert engine.containers == {} and engine.volumes == {}
    assert not server_order.CredentialFiles("stallmark").exist


def test_two_never_work_on_one_server(engine, sql_server):
    said(up("--port", sql_server.port), 0)
    credentials = server_order.CredentialFiles("stallmark")
    with credentials.held():
        for command in ("up", "--accept-eula"), ("down",):
            assert "Another Stallmark starts or stops the server 'stallmark'" in said(stallmark("server", *command))
    assert_it_opens()


def test_the_container_of_one_that_was_faster_stays(engine, sql_server):
    """One with another STALLMARK_HOME, which no lock keeps apart."""

    def be_faster(asked: Asked) -> None:
        if str(asked) == MAKES and not engine.containers:
            engine.containers["stallmark"] = Container("stallmark", {"Labels": {"theirs": "1"}}, "running")

    engine.before = be_faster
    assert "SQL Server 2022 could not be started: Conflict" in said(up("--port", sql_server.port))
    assert engine.containers["stallmark"].body["Labels"] == {"theirs": "1"}
    assert not server_order.CredentialFiles("stallmark").exist


def test_what_a_failed_start_has_written_into_a_folder_keeps_its_passwords(engine, folder):
    def end(made: Container) -> None:
        made.status = "exited"

    engine.on_start = end
    said(up("--data", folder))
    assert server_order.CredentialFiles("stallmark").first_password()
