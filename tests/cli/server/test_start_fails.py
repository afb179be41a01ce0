"""A server that does not come up: why, and that nothing of it is left."""

import os
import signal

import pytest
from support.asking_docker import said, up
from support.docker_api import Container
from support.tds.answers import Error

from stallmark.cli.server import server


# The lines are from reports of users: microsoft/mssql-docker issues 776, 293, 869.
@pytest.mark.parametrize(
    ("log", "sentence"),
    [
        (
            "2022-08-14 17:37:38.25 spid30s     ERROR: Unable to set system administrator password: Password "
            "validation failed. The password does not meet SQL Server password policy requirements because it "
            "is too short. The password must be at least 8 characters..\n"
            "2022-08-14 17:37:38.29 spid66s     Starting up database 'msdb'.\n"
            "2022-08-14 17:37:38.32 spid30s     An error occurred during server setup. See previous errors for more "
            "information.\n"
            "2022-08-14 17:37:39.07 spid66s     Converting database 'msdb' from version 927 to 928.\n",
            "SQL Server ended while it started: ERROR: Unable to set system administrator password: Password "
            "validation failed.",
        ),
        (
            "sqlservr: This program requires a machine with at least 2000 megabytes of memory.\n",
            "SQL Server ended while it started: sqlservr: This program requires a machine with at least 2000 megabytes "
            "of memory.",
        ),
        (
            "SQL Server 2022 will run as non-root by default.\n"
            "/opt/mssql/bin/sqlservr: Error: The system directory [/.system] could not be created. File: "
            "LinuxDirectory.cpp:420 [Status: 0xC0000022 Access Denied errno = 0xD(13) Permission denied]\n",
            "could not be created. File: LinuxDirectory.cpp:420",
        ),
        ("Aborted\n", "SQL Server ended while it started: Aborted."),
        ("", "SQL Server ended while it started: it said nothing."),
    ],
    ids=["password", "memory", "folder", "last line", "nothing"],
)
def test_a_server_that_ends_while_it_starts_says_why_and_is_removed(engine, log, sentence):
    def end(made: Container) -> None:
        made.status, made.log = "exited", log

    engine.on_start = end
    assert sentence in said(up())
    assert engine.containers == {} and engine.volumes == {}


# From microsoft/mssql-docker #868.
ABORTED = """\
SQL Server 2022 will run as non-root by default.
This program has encountered a fatal error and cannot continue running at Mon Jan 15 18:19:00 2024
The following diagnostic information is available:

         Reason: 0x00000001
         Signal: SIGABRT - Aborted (6)
          Stack:
                 000064eb280a3ce1 std::__1::bad_function_call::~bad_function_call()+0x96661
Capturing core dump and information to /var/opt/mssql/log...
"""


@pytest.mark.parametrize(
    ("version", "kernel", "hint"),
    [
        ("2019", "6.8.0-31-generic", "take --version 2022"),
        ("2017", "6.12.3", "take --version 2022"),
        ("2022", "6.7.5-200.fc39.x86_64", "docker pull"),
        ("2019", "6.6.87", None),
        ("2019", "", None),
    ],
)
def test_an_image_that_does_not_run_on_a_newer_kernel(engine, version, kernel, hint):
    def end(made: Container) -> None:
        made.status, made.log = "exited", ABORTED

    engine.on_start, engine.kernel = end, kernel
    found = " ".join(said(up("--version", version)).split())
    assert "ended while it started: a fatal error (SIGABRT - Aborted (6))." in found
    assert ("and this is" in found) == (hint is not None) and (hint or "") in found


def test_a_server_that_was_killed_for_its_memory(engine):
    def kill(made: Container) -> None:
        made.status, made.out_of_memory = "exited", True

    engine.on_start = kill
    assert "needed more memory than its container has; raise --memory" in said(up())


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
