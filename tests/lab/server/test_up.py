"""A new server as the container engine is asked for it, and how it gets its password."""

import json
import re
import stat
from pathlib import Path
from typing import Any

import psutil
import pytest
from support.asking_docker import IMAGE, first_password_of, said, up
from support.command_line import stallmark
from support.docker_api import Container
from support.tds.answers import Error
from support.tds.responder import Responder
from support.tds.script import Script

from stallmark.experiment.target import server_url
from stallmark.lab.server import container, server
from stallmark.lab.server import order as server_order


def test_a_server_comes_up_and_its_url_opens_it(engine, sql_server, script):
    said(up("--port", sql_server.port), 0)
    credentials = server_order.CredentialFiles("stallmark")
    opened = server.MssqlEngine(server_url(f"@{credentials.url_file}"))
    assert opened.address.database == "stallmark" and opened.address.password == script.password
    opened.connect().close()
    assert [login.database for login in sql_server.logins][:2] == ["master", "master"]
    [made] = [it.text for it in sql_server.requests if "CREATE DATABASE" in it.text]
    assert "IF DB_ID('stallmark') IS NULL" in made and "SET RECOVERY SIMPLE" in made
    assert re.findall(r"NAME = (\w+), SIZE = (\d+)MB", made) == [("stallmark", "4096"), ("stallmark_log", "1024")]
    assert sql_server.faults == []


def test_the_request_that_makes_the_container(engine, sql_server):
    said(up("--port", sql_server.port, "--memory", "6GiB", "--cpus", "1.5"), 0)
    [asked] = engine.requests("POST /containers/create")
    assert asked.query == {"name": "stallmark", "platform": "linux/amd64"}
    assert asked.body["Image"] == IMAGE
    assert asked.body["Labels"] == {"stallmark.server": "stallmark", "stallmark.version": "2022"}
    password = first_password_of(engine.containers["stallmark"])
    assert sorted(asked.body["Env"]) == sorted(
        [
            "ACCEPT_EULA=Y",
            f"MSSQL_SA_PASSWORD={password}",
            "MSSQL_PID=Developer",
            "MSSQL_MEMORY_LIMIT_MB=4915",
            "MSSQL_DATA_DIR=/var/opt/mssql/data",
            "MSSQL_LOG_DIR=/var/opt/mssql/data",
        ]
    )
    host = asked.body["HostConfig"]
    assert host["Memory"] == host["MemorySwap"] == 6 * 1024**3
    assert host["NanoCpus"] == 1_500_000_000
    assert host["Binds"] == ["stallmark-data:/var/opt/mssql:rw"]
    assert host["PortBindings"] == {"1433/tcp": [{"HostIp": "127.0.0.1", "HostPort": str(sql_server.port)}]}
    assert engine.volumes == {"stallmark-data": {"stallmark.server": "stallmark"}}


def test_the_smallest_container_leaves_sql_server_the_2000_mb_it_starts_with(engine, sql_server):
    said(up("--port", sql_server.port, "--memory", "2560MiB"), 0)
    assert "MSSQL_MEMORY_LIMIT_MB=2048" in engine.containers["stallmark"].body["Env"]
    assert "raise --memory" in said(up("--memory", "2559MiB"))


@pytest.mark.parametrize(
    ("version", "edition"),
    [("2017", "Developer"), ("2019", "Developer"), ("2022", "Developer"), ("2025", "EnterpriseDeveloper")],
)
def test_every_version_has_its_image_and_edition(version, edition):
    order = server_order.ServerOrder(version=version)
    assert order.image == f"mcr.microsoft.com/mssql/server:{version}-latest"
    assert order.environment("x")["MSSQL_PID"] == edition
    assert server_order.ServerOrder(version=version, edition="Express").environment("x")["MSSQL_PID"] == "Express"


def test_folders_and_limits(engine, sql_server, folder, tmp_path, monkeypatch):
    log = tmp_path / "log"
    log.mkdir()
    log.chmod(0o777)
    disks = {folder: "/dev/nvme0n1", log: "/dev/sdb"}
    monkeypatch.setattr(container, "disk_beneath", disks.__getitem__)
    limits = ["--device-read-iops", 500, "--device-write-iops", 400, "--device-read-bps", "200MB"]
    limits += ["--device-write-bps", "100MiB"]
    said(up("--port", sql_server.port, "--data", folder, "--log", log, *limits), 0)
    body = engine.containers["stallmark"].body
    host = body["HostConfig"]
    assert sorted(host["Binds"]) == sorted([f"{folder}:/var/opt/mssql:rw,Z", f"{log}:/var/opt/mssql-log:rw,Z"])
    assert "MSSQL_LOG_DIR=/var/opt/mssql-log" in body["Env"] and engine.volumes == {}

    def on_both(rate: int) -> list[dict[str, Any]]:
        return [{"Path": "/dev/nvme0n1", "Rate": rate}, {"Path": "/dev/sdb", "Rate": rate}]

    assert host["BlkioDeviceReadIOps"] == on_both(500)
    assert host["BlkioDeviceWriteIOps"] == on_both(400)
    assert host["BlkioDeviceReadBps"] == on_both(200_000_000)
    assert host["BlkioDeviceWriteBps"] == on_both(100 * 1024**2)


def test_an_image_that_is_not_here_is_downloaded(engine, sql_server):
    engine.images.clear()
    said(up("--port", sql_server.port), 0)
    [asked] = engine.requests("POST /images/create")
    repository, _, tag = IMAGE.rpartition(":")
    assert asked.query == {"fromImage": repository, "tag": tag, "platform": "linux/amd64"}


# Secrets.


def test_what_the_container_shows_is_no_password_any_more(engine, sql_server, script):
    said(up("--port", sql_server.port), 0)
    shown = first_password_of(engine.containers["stallmark"])
    assert shown != script.password == server_order.CredentialFiles("stallmark").password()
    assert script.password not in str(engine.containers["stallmark"].body)
    first, *others = [login.has_password(shown) for login in sql_server.logins]
    assert not first and others.count(True) == 1, "tried as it is kept, then once as it was first"


def test_a_start_that_was_killed_before_the_first_login_is_gone_on_with(engine, sql_server, script):
    said(up("--port", sql_server.port), 0)
    said(stallmark("server", "down"), 0)
    script.password = server_order.CredentialFiles("stallmark").first_password()
    said(up("--port", sql_server.port), 0)
    assert script.password == server_order.CredentialFiles("stallmark").password()


def test_a_password_that_cannot_be_replaced_is_said(engine, sql_server, monkeypatch):
    refused = Script()
    refused.sql("ALTER LOGIN", Error(15151, "Cannot alter the login 'sa', because it does not exist."))
    refused.login(Error(18456, "Login failed for user 'sa'.", severity=14), times=1)
    monkeypatch.setattr(server.up, "__kwdefaults__", {"ready_within_s": 0.0})
    with Responder(refused) as responder:
        assert "first password could not be replaced (Cannot alter" in said(up("--port", responder.port))


def test_the_password_is_in_files_for_their_owner_alone_and_nowhere_else(engine, sql_server, script):
    lists: list[str] = []
    take_password = engine.on_start

    def look(made: Container) -> None:
        take_password(made)
        lists.extend(str(each.info["cmdline"]) for each in psutil.process_iter(["cmdline"]))

    engine.on_start = look
    result = up("--port", sql_server.port)
    password = script.password
    assert password not in said(result, 0)
    credentials = server_order.CredentialFiles("stallmark")
    assert credentials.password_file.read_text() == password + "\n"
    assert stat.S_IMODE(credentials.folder.stat().st_mode) == 0o700
    for path in credentials.folder.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
    assert str(credentials.password_file) in result.output.replace("\n", "")
    assert lists and not any(password in line for line in lists)


def test_passwords_are_what_the_policy_asks_for_and_never_the_same():
    made = {server_order.new_password() for _ in range(100)}
    assert len(made) == 100
    for password in made:
        assert 8 <= len(password) <= 128 and "sa" not in password.lower()
        kinds = [str.isupper, str.islower, str.isdigit, lambda letter: not letter.isalnum()]
        assert all(any(kind(letter) for letter in password) for kind in kinds)


def test_what_machines_are_told_holds_no_password(engine, sql_server, script):
    result = up("--port", sql_server.port, "--json")
    told = json.loads(result.stdout)
    assert told["url"] == f"mssql://sa@127.0.0.1:{sql_server.port}/stallmark?TrustServerCertificate=yes"
    assert Path(told["url_file"]).exists() and Path(told["password_file"]).exists()
    assert script.password not in result.stdout
