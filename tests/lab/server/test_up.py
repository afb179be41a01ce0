"""A new server as the container engine is asked for it, and how it gets its password."""

import json
import os
import re
import signal
import stat
import sys
import time
from pathlib import Path
from queue import Queue
from typing import Any

import psutil
import pytest
from support.asking_docker import IMAGE, first_password_of, said, up
from support.command_line import stallmark
from support.docker_api import Asked, Container, Engine
from support.prepared import Prepared
from support.tds.answers import Error
from support.tds.responder import Responder
from support.tds.script import Script

from stallmark.errors import StallmarkError
from stallmark.experiment.target import server_url
from stallmark.lab import server_container, server_order
from stallmark.lab.server_order import DeviceLimits
from stallmark.storage.block_devices import BlockDevice

pytestmark = pytest.mark.thorough


def test_a_server_comes_up_and_its_url_opens_it(engine, sql_server, script):
    said(up("--port", sql_server.port), 0)
    credentials = server_order.CredentialFiles("stallmark")
    opened = server_container.MssqlEngine(server_url(f"@{credentials.url_file}"))
    assert opened.address.database == "stallmark" and opened.address.password == script.password
    opened.connect().close()
    assert [login.database for login in sql_server.logins][:2] == ["master", "master"]
    [made] = [it.text for it in sql_server.requests if "CREATE DATABASE" in it.text]
    assert "IF DB_ID('stallmark') IS NULL" in made and "SET RECOVERY SIMPLE" in made
    assert re.findall(r"NAME = (\w+), SIZE = (\d+)MB", made) == [("stallmark", "4096"), ("stallmark_log", "1024")]
    assert sql_server.faults == []


def test_the_requests_that_download_the_image_and_make_the_container(engine, sql_server):
    engine.images.clear()
    said(up("--port", sql_server.port, "--memory", "6GiB", "--cpus", "1.5"), 0)
    [asked] = engine.requests("POST /images/create")
    repository, _, tag = IMAGE.rpartition(":")
    assert asked.query == {"fromImage": repository, "tag": tag, "platform": "linux/amd64"}
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
    monkeypatch.setattr(server_order, "disk_beneath", disks.__getitem__)
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
    monkeypatch.setattr(server_container.up, "__kwdefaults__", {"ready_within_s": 0.0})
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


# Which servers there are, and their end


def test_the_list(engine, sql_server):
    assert said(stallmark("server", "list"), 0).startswith("None")
    said(up("--port", sql_server.port), 0)
    engine.containers["other"] = Container("other", {"Labels": {}})
    [listed] = json.loads(stallmark("server", "list", "--json").stdout)
    assert listed == {
        "name": "stallmark", "version": "2022", "state": "running", "port": sql_server.port,
        "memory_bytes": 4 * 1024**3, "data": "stallmark-data",
        "url_file": str(server_order.CredentialFiles("stallmark").url_file),
    }  # fmt: skip
    line = said(stallmark("server", "list"), 0)
    assert "SQL Server 2022, running" in line and f"127.0.0.1:{sql_server.port}" in line and "4 GiB" in line


def test_down_keeps_the_data_and_up_goes_on_with_it(engine, sql_server):
    said(up("--port", sql_server.port), 0)
    first = first_password_of(engine.containers["stallmark"])
    assert "Its data is kept" in said(stallmark("server", "down"), 0)
    [stopped] = engine.requests("POST /containers/stallmark/stop")
    assert stopped.query == {"t": "60"}
    assert engine.containers == {} and "stallmark-data" in engine.volumes
    said(up("--port", sql_server.port), 0)
    assert first_password_of(engine.containers["stallmark"]) == first


def test_down_removes_data_when_told(engine, sql_server):
    said(up("--port", sql_server.port), 0)
    assert "Its data is removed" in said(stallmark("server", "down", "--remove-data"), 0)
    assert engine.containers == {} and engine.volumes == {}
    assert not server_order.CredentialFiles("stallmark").exist
    assert "Unknown server 'stallmark'" in said(stallmark("server", "down"))


def test_data_is_removed_afterwards_too_and_nothing_else_with_it(engine, sql_server, folder, tmp_path):
    log = tmp_path / "log"
    log.mkdir()
    log.chmod(0o777)
    said(up("--port", sql_server.port, "--data", folder, "--log", log), 0)
    (folder / "data").mkdir()
    (folder / "data" / "master.mdf").touch()
    (log / "stallmark_log.ldf").touch()
    (folder / "thesis.doc").touch()
    said(stallmark("server", "down"), 0)
    assert (folder / "data" / "master.mdf").exists()
    said(stallmark("server", "down", "--remove-data"), 0)
    assert [path.name for path in folder.iterdir()] == ["thesis.doc"] and list(log.iterdir()) == []


def test_a_server_of_which_nothing_is_kept_here_goes_with_its_files(engine, sql_server, folder):
    said(up("--port", sql_server.port, "--data", folder), 0)
    server_order.CredentialFiles("stallmark").remove()
    (folder / "secrets").mkdir()
    engine.volumes["stallmark-data"] = {}  # of somebody else
    said(stallmark("server", "down", "--remove-data"), 0)
    assert list(folder.iterdir()) == [] and engine.volumes == {"stallmark-data": {}}


def test_files_that_we_may_not_remove(folder, monkeypatch):
    (folder / "data").mkdir()

    def refuse(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(server_container.shutil, "rmtree", refuse)
    with pytest.raises(StallmarkError, match=f"sudo rm -rf .*{folder}/data .*, then the same command again"):
        server_container._remove_files(folder, server_order.MADE["data"])


# The folders of a server, and limits on the disks under them


def test_a_folder_with_other_files_is_refused(engine, folder):
    (folder / "thesis.doc").touch()
    assert "holds files that are not of this server" in said(up("--data", folder))
    assert engine.containers == {}


def test_folders_in_each_other_are_refused(engine, folder):
    assert "are nested" in said(up("--data", folder, "--log", folder / "log"))
    assert "are nested" in said(up("--data", folder, "--log", folder))


@pytest.mark.skipif(os.getuid() != 0, reason="Only root gives folders away.")
def test_root_gives_the_folder_to_the_servers_user(engine, sql_server, tmp_path):
    said(up("--port", sql_server.port, "--data", tmp_path / "new" / "data"), 0)
    assert (tmp_path / "new" / "data").stat().st_uid == 10001


def test_anybody_else_is_told_what_to_do(engine, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "getuid", lambda: 1000)
    folder = tmp_path / "data"
    assert f"sudo chown 10001 {folder}" in said(up("--data", folder))


def test_limits_need_a_folder_and_a_disk(engine, tmp_path):
    assert "name it with --data" in said(up("--device-read-iops", 5))
    if Path("/dev/shm").is_dir():
        with pytest.raises(StallmarkError, match=r"No limit can be put on the device under /dev/shm.*in memory"):
            DeviceLimits(read_iops=5).options([Path("/dev/shm")])


@pytest.mark.parametrize(
    ("place", "is_partition", "disk"),
    [
        ("block/sda", False, "/dev/sda"),
        ("block/nvme0n1/nvme0n1p2", True, "/dev/nvme0n1"),
        ("virtual/block/dm-3", False, "/dev/dm-3"),
        ("block/cciss!c0d0/cciss!c0d0p1", True, "/dev/cciss/c0d0"),
    ],
)
def test_the_kernel_limits_whole_disks(tmp_path, monkeypatch, place, is_partition, disk):
    real = tmp_path / "devices" / place
    real.mkdir(parents=True)
    if is_partition:
        (real / "partition").touch()
    (tmp_path / "by-number").mkdir()
    (tmp_path / "by-number" / "8:1").symlink_to(real)
    monkeypatch.setattr(server_order, "SYS_BLOCK", tmp_path / "by-number")
    monkeypatch.setattr(server_order, "device_behind", lambda _: BlockDevice("8:1", real.name, True, ""))
    assert server_order.disk_beneath(tmp_path) == disk


# Servers that are refused before the container engine is asked


def test_nothing_is_asked_of_anybody_before_the_licence_is_accepted(engine):
    result = stallmark("server", "up")
    assert "https://go.microsoft.com/fwlink/?linkid=857698" in said(result) and "--accept-eula" in said(result)
    assert engine.asked == [] and not server_order.CredentialFiles("stallmark").exist


def test_without_the_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "docker", None)
    assert "pip install 'stallmark[container]'" in said(stallmark("server", "list"))


def test_without_an_engine_one_remedy_is_shown(monkeypatch, tmp_path):
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/docker.sock")
    shown = said(stallmark("server", "list"))
    assert "The container engine cannot be used: " in shown and "`docker info`" in shown


def test_the_engine_of_another_machine_is_refused(monkeypatch):
    import docker

    monkeypatch.setattr(docker, "from_env", lambda **_: docker.DockerClient("tcp://10.0.0.1:2375", version="1.47"))
    assert "the container engine of another machine" in said(stallmark("server", "list"))


@pytest.mark.parametrize("in_the_answer", [False, True])
def test_an_image_that_cannot_be_had(engine, in_the_answer):
    """Docker Engine 20.10 refuses in its answer, later ones in a line of the download."""
    engine.images.clear()
    if in_the_answer:
        engine.refusals["POST /images/create"] = 500, "no such host"
    else:
        engine.pulls = [{"status": "Pulling"}, {"error": "no such host"}]
    assert ": no such host. See that `docker info` works for you and this machine is online" in said(up())
    assert engine.containers == {} and engine.volumes == {}


def test_a_port_in_use(engine):
    message = "Bind for 127.0.0.1:1433 failed: port is already allocated"
    engine.refusals["POST /containers/stallmark/start"] = 500, message
    assert message in said(up())
    assert engine.containers == {} and engine.volumes == {}
    assert "Unknown server 'stallmark'" in said(stallmark("server", "down")), "it has never been"


def test_another_refusal_of_the_engine_is_shown_in_its_words(engine):
    engine.refusals["POST /containers/create"] = 400, "Minimum memory limit allowed is 6MB"
    assert "SQL Server 2022 could not be started: Minimum memory limit allowed is 6MB." in said(up())


def test_a_name_in_use(engine, sql_server):
    said(up("--port", sql_server.port), 0)
    made = engine.containers["stallmark"]
    assert "There is a server 'stallmark' already (running)" in said(up("--port", sql_server.port))
    assert engine.containers["stallmark"] is made
    engine.containers["other"] = Container("other", {"Labels": {}})
    assert "is not Stallmark's" in said(up("--name", "other"))
    assert "is not Stallmark's" in said(stallmark("server", "down", "other"))
    assert set(engine.containers) == {"stallmark", "other"}


def test_a_volume_of_somebody_else_is_left_alone(engine):
    engine.volumes["stallmark-data"] = {}
    assert "is not Stallmark's" in said(up())
    engine.volumes["stallmark-data"] = {"stallmark.server": "stallmark"}
    assert "whose password is not known here" in said(up())
    assert "stallmark-data" in engine.volumes and engine.containers == {}


@pytest.mark.parametrize("name", ["../..", "a b", "-x"])
def test_a_name_that_is_none(engine, name):
    assert "is not a name of a container" in said(stallmark("server", "down", "--", name))


# A server that does not come up: why, and that nothing of it is left


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
    monkeypatch.setattr(server_container.up, "__kwdefaults__", {"ready_within_s": 0.0})
    assert "SQL Server takes no login after 0 s." in said(up("--port", sql_server.port))
    assert engine.containers == {} and engine.volumes == {}


def test_ctrl_c_leaves_no_container(engine):
    engine.on_start = lambda made: os.kill(os.getpid(), signal.SIGINT)
    assert "Stopped by Ctrl-C" in said(up(), 130)
    assert engine.containers == {} and engine.volumes == {}


# A start that is cut, or that meets another one: the next works, and nothing of anybody else is touched


MAKES_VOLUME, MAKES, STARTS = "POST /volumes/create", "POST /containers/create", "POST /containers/stallmark/start"


def killed_at(engine: Engine, request: str, port: int) -> None:
    """Have the engine kill the command when it is asked for this. It does as asked all the same."""
    arguments = ("server", "up", "--accept-eula", "--port", str(port))
    started: Queue[Prepared] = Queue()

    def kill(asked: Asked) -> None:
        if str(asked) == request:
            started.get().kill()

    engine.before = kill
    with Path(os.devnull).open("w") as nowhere:
        command = Prepared(arguments, Path.cwd(), os.environ, nowhere.fileno(), nowhere.fileno())
    started.put(command)
    assert command.wait(60) == -signal.SIGKILL
    engine.before = lambda asked: None


def assert_it_opens() -> None:
    url_file = server_order.CredentialFiles("stallmark").url_file
    server_container.MssqlEngine(server_url(f"@{url_file}")).connect().close()


@pytest.mark.parametrize("request_", [MAKES, STARTS])
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
    with credentials.lock():
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
