"""`stallmark server`: what the real `docker` package asks of a container engine, and what the refusals become.

The engine's side of the HTTP API is ours (docker_api); the server that takes the login is the TDS responder. That
Microsoft's image does what its documentation says, no test here can know.
"""

import json
import os
import signal
import socket
import stat
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from click.testing import CliRunner, Result
from docker_api import Container, Engine
from tds import odbc
from tds.answers import Error, Rows
from tds.datatypes import INT, nvarchar
from tds.responder import Responder
from tds.script import Script
from tds.tokens import Column

from stallmark.driver.collectors.block_devices import BlockDevice
from stallmark.driver.engines.errors import StallmarkError
from stallmark.scenarios import container, server, server_order
from stallmark.scenarios.cli import main
from stallmark.scenarios.container import DeviceLimits
from stallmark.scenarios.target import server_url

pytestmark = [
    pytest.mark.skipif(odbc.missing() is not None, reason=odbc.missing() or ""),
    pytest.mark.skipif(
        not sys.platform.startswith("linux"), reason="The engine's socket is a Unix socket here."
    ),
]

IMAGE = "mcr.microsoft.com/mssql/server:2022-latest"


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Engine]:
    monkeypatch.setenv("STALLMARK_HOME", str(tmp_path / "home"))
    with tempfile.TemporaryDirectory() as short:  # the path of a Unix socket holds 107 bytes at most
        path = Path(short) / "docker.sock"
        monkeypatch.setenv("DOCKER_HOST", f"unix://{path}")
        with Engine(path, images={IMAGE}) as engine:
            yield engine


@pytest.fixture
def script() -> Script:
    script = Script()
    script.sql("CREATE DATABASE")
    columns = [Column(name, nvarchar(128)) for name in ("version", "level", "edition")]
    columns += [Column("engine", INT), Column("banner", nvarchar(400))]
    row = ("16.0.4085.2", "RTM", "Developer Edition (64-bit)", 3, "Microsoft SQL Server 2022")
    script.sql(r"SERVERPROPERTY\('ProductVersion'\)", Rows(columns, [row]))
    return script


@pytest.fixture
def sql_server(script: Script) -> Iterator[Responder]:
    with Responder(script) as responder:
        yield responder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """One that SQL Server may write to, whoever runs the tests."""
    folder = tmp_path / "data"
    folder.mkdir()
    folder.chmod(0o777)
    return folder


def stallmark(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(each) for each in arguments])


def up(*arguments: object) -> Result:
    return stallmark("server", "up", "--accept-eula", *arguments)


def said(result: Result, code: int = 3) -> str:
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    return " ".join(result.output.split())


def password_of(made: Container) -> str:
    [password] = [
        each.partition("=")[2] for each in made.body["Env"] if each.startswith("MSSQL_SA_PASSWORD=")
    ]
    return password


# What is asked of the engine.


def test_a_server_comes_up_and_its_url_opens_it(engine, sql_server):
    said(up("--port", sql_server.port), 0)
    [made] = engine.containers.values()
    papers = server_order.Papers("stallmark")
    opened = server.MssqlEngine(server_url(f"@{papers.url_file}"))
    assert opened.address.database == "stallmark" and opened.address.password == password_of(made)
    assert all(login.has_password(password_of(made)) for login in sql_server.logins)
    assert [login.database for login in sql_server.logins][:2] == ["master", "master"]
    assert "IF DB_ID('stallmark') IS NULL CREATE DATABASE stallmark" in [
        it.text for it in sql_server.requests
    ]
    assert sql_server.faults == []


def test_the_request_that_makes_the_container(engine, sql_server):
    said(up("--port", sql_server.port, "--memory", "6GiB", "--cpus", "1.5"), 0)
    [asked] = engine.requests("POST /containers/create")
    assert asked.query == {"name": "stallmark", "platform": "linux/amd64"}
    assert asked.body["Image"] == IMAGE
    assert asked.body["Labels"] == {"stallmark.server": "stallmark", "stallmark.version": "2022"}
    password = password_of(engine.containers["stallmark"])
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
    order = server_order.Order(version=version)
    assert order.image == f"mcr.microsoft.com/mssql/server:{version}-latest"
    assert order.environment("x")["MSSQL_PID"] == edition
    assert server_order.Order(version=version, edition="Express").environment("x")["MSSQL_PID"] == "Express"


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
    assert sorted(host["Binds"]) == sorted(
        [f"{folder}:/var/opt/mssql:rw,Z", f"{log}:/var/opt/mssql-log:rw,Z"]
    )
    assert "MSSQL_LOG_DIR=/var/opt/mssql-log" in body["Env"] and engine.volumes == {}

    def on_both(rate: int) -> list[dict[str, Any]]:
        return [{"Path": "/dev/nvme0n1", "Rate": rate}, {"Path": "/dev/sdb", "Rate": rate}]

    assert host["BlkioDeviceReadIOps"] == on_both(500)
    assert host["BlkioDeviceWriteIOps"] == on_both(400)
    assert host["BlkioDeviceReadBps"] == on_both(200_000_000)
    assert host["BlkioDeviceWriteBps"] == on_both(100 * 1024**2)


def test_an_image_that_is_not_here_is_downloaded(engine, sql_server):
    engine.images.clear()
    engine.pulls = [
        {"status": "Pulling from mssql/server", "id": "2022-latest"},
        {"status": "Downloading", "id": "a", "progressDetail": {"current": 5_000_000, "total": 9_000_000}},
        {"status": "Download complete", "id": "a", "progressDetail": {}},
        {"status": "Status: Downloaded newer image"},
    ]
    said(up("--port", sql_server.port), 0)
    [asked] = engine.requests("POST /images/create")
    repository, _, tag = IMAGE.rpartition(":")
    assert asked.query == {"fromImage": repository, "tag": tag, "platform": "linux/amd64"}


def test_progress_of_a_download_is_in_bytes_of_all_its_layers(engine):
    engine.pulls = [
        {"status": "Downloading", "id": "a", "progressDetail": {"current": 5, "total": 9}},
        {"status": "Downloading", "id": "b", "progressDetail": {"current": 1, "total": 2}},
        {"status": "Download complete", "id": "a"},
        {"status": "Pull complete", "id": "unknown"},
    ]
    told: list[tuple[int, int]] = []
    container.pull(container.engine(), IMAGE, lambda here, total: told.append((here, total)))
    assert told == [(5, 9), (6, 11), (10, 11), (10, 11)]


# Secrets.


def test_the_password_is_in_files_for_their_owner_alone_and_nowhere_else(engine, sql_server):
    lists: list[str] = []

    def look(made: Container) -> None:
        lists.extend(str(each.info["cmdline"]) for each in psutil.process_iter(["cmdline"]))

    engine.on_start = look
    result = up("--port", sql_server.port)
    password = password_of(engine.containers["stallmark"])
    assert password not in said(result, 0)
    assert lists and not any(password in line for line in lists)
    papers = server_order.Papers("stallmark")
    assert papers.password_file.read_text() == password + "\n"
    assert stat.S_IMODE(papers.folder.stat().st_mode) == 0o700
    for path in papers.folder.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
    assert str(papers.password_file) in result.output.replace("\n", "")


def test_passwords_are_what_the_policy_asks_for_and_never_the_same():
    made = {server_order.new_password() for _ in range(100)}
    assert len(made) == 100
    for password in made:
        assert 8 <= len(password) <= 128 and "sa" not in password.lower()
        kinds = [str.isupper, str.islower, str.isdigit, lambda letter: not letter.isalnum()]
        assert all(any(kind(letter) for letter in password) for kind in kinds)


def test_what_machines_are_told_holds_no_password(engine, sql_server):
    result = up("--port", sql_server.port, "--json")
    told = json.loads(result.stdout)
    assert told["url"] == f"mssql://sa@127.0.0.1:{sql_server.port}/stallmark?TrustServerCertificate=yes"
    assert Path(told["url_file"]).exists() and Path(told["password_file"]).exists()
    assert password_of(engine.containers["stallmark"]) not in result.stdout


# Refusals.


def test_nothing_is_asked_of_anybody_before_the_licence_is_accepted(engine):
    result = stallmark("server", "up")
    assert "https://go.microsoft.com/fwlink/?linkid=857698" in said(result) and "--accept-eula" in said(
        result
    )
    assert engine.asked == [] and not server_order.Papers("stallmark").exist


def test_without_the_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "docker", None)
    assert "pip install 'stallmark[container]'" in said(stallmark("server", "list"))


@pytest.mark.parametrize("kind", ["none", "left behind"])
def test_without_an_engine(monkeypatch, kind):
    with tempfile.TemporaryDirectory() as short:
        path = f"{short}/docker.sock"
        if kind == "left behind":
            with socket.socket(socket.AF_UNIX) as ended:
                ended.bind(path)
        monkeypatch.setenv("DOCKER_HOST", f"unix://{path}")
        assert "No container engine answers here" in said(stallmark("server", "list"))


def test_an_engine_that_is_not_for_us(engine):
    engine.socket.chmod(0o600 if os.getuid() == 0 else 0)
    engine.socket.parent.chmod(0o755)
    somebody = os.geteuid()
    if somebody == 0:
        os.seteuid(65534)
    try:
        with pytest.raises(StallmarkError, match=r"no permission on its socket.*group `docker`"):
            container.engine()
    finally:
        os.seteuid(somebody)


def test_the_engine_of_another_machine_is_refused(monkeypatch):
    import docker

    monkeypatch.setattr(
        docker, "from_env", lambda **_: docker.DockerClient("tcp://10.0.0.1:2375", version="1.47")
    )
    assert "the container engine of another machine" in said(stallmark("server", "list"))


@pytest.mark.parametrize(
    "line",
    [
        {"error": "manifest unknown", "errorDetail": {"message": "manifest unknown"}},
        {"error": 'Get "https://mcr.microsoft.com/v2/": dial tcp: lookup mcr.microsoft.com: no such host'},
    ],
    ids=["unknown", "offline"],
)
def test_an_image_that_cannot_be_had(engine, line):
    engine.images.clear()
    engine.pulls = [{"status": "Pulling"}, line]
    sentence = said(up())
    assert f"{IMAGE} cannot be downloaded: {line['error']}" in sentence
    assert engine.containers == {} and engine.volumes == {}


@pytest.mark.parametrize(
    "message",
    [
        "driver failed programming external connectivity on endpoint stallmark (1f): Bind for 127.0.0.1:1433 failed: "
        "port is already allocated",
        "failed to set up container networking: driver failed programming external connectivity on endpoint stallmark: "
        "failed to bind host port for 127.0.0.1:1433:172.17.0.2:1433/tcp: address already in use",
    ],
)
def test_a_port_in_use(engine, message):
    engine.refusals["POST /containers/stallmark/start"] = 500, message
    assert "Port 1433 of 127.0.0.1 is in use: choose another with --port." in said(up())
    assert engine.containers == {} and engine.volumes == {}


def test_another_refusal_of_the_engine_is_shown_in_its_words(engine):
    engine.refusals["POST /containers/create"] = 400, "Minimum memory limit allowed is 6MB"
    assert "SQL Server 2022 could not be started: Minimum memory limit allowed is 6MB." in said(up())


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


def test_a_name_in_use(engine, sql_server):
    said(up("--port", sql_server.port), 0)
    assert "There is a server 'stallmark' already (running)" in said(up("--port", sql_server.port))
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


@pytest.mark.parametrize("name", ["../..", "a b", "", "-x"])
def test_a_name_that_is_none(engine, name):
    assert "is no name of a container" in said(stallmark("server", "down", "--", name))


# Folders and devices.


def test_a_folder_with_other_files_is_refused(engine, folder):
    (folder / "thesis.doc").touch()
    assert "holds files that are not of this server" in said(up("--data", folder))
    assert engine.containers == {}


def test_folders_in_each_other_are_refused(engine, folder):
    assert "lie in each other" in said(up("--data", folder, "--log", folder / "log"))
    assert "lie in each other" in said(up("--data", folder, "--log", folder))


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
        with pytest.raises(
            StallmarkError, match=r"No limit can be put on the device under /dev/shm.*in memory"
        ):
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
    monkeypatch.setattr(container, "SYS_BLOCK", tmp_path / "by-number")
    monkeypatch.setattr(container, "device_behind", lambda _: BlockDevice("8:1", real.name, True, ""))
    assert container.disk_beneath(tmp_path) == disk


# What is there, and its end.


def test_the_list(engine, sql_server):
    assert said(stallmark("server", "list"), 0).startswith("None")
    said(up("--port", sql_server.port), 0)
    engine.containers["other"] = Container("other", {"Labels": {}})
    [listed] = json.loads(stallmark("server", "list", "--json").stdout)
    assert listed == {
        "name": "stallmark", "version": "2022", "state": "running", "port": sql_server.port,
        "memory_bytes": 4 * 1024**3, "data": "stallmark-data",
        "url_file": str(server_order.Papers("stallmark").url_file),
    }  # fmt: skip
    line = said(stallmark("server", "list"), 0)
    assert "SQL Server 2022, running" in line and f"127.0.0.1:{sql_server.port}" in line and "4.0 GiB" in line


def test_down_keeps_the_data_and_up_goes_on_with_it(engine, sql_server):
    said(up("--port", sql_server.port), 0)
    first = password_of(engine.containers["stallmark"])
    assert "Its data is kept" in said(stallmark("server", "down"), 0)
    [stopped] = engine.requests("POST /containers/stallmark/stop")
    assert stopped.query == {"t": "60"}
    assert engine.containers == {} and "stallmark-data" in engine.volumes
    said(up("--port", sql_server.port), 0)
    assert password_of(engine.containers["stallmark"]) == first


def test_down_removes_data_when_told(engine, sql_server):
    said(up("--port", sql_server.port), 0)
    assert "Its data is removed" in said(stallmark("server", "down", "--remove-data"), 0)
    assert engine.containers == {} and engine.volumes == {}
    assert not server_order.Papers("stallmark").exist
    assert "There is no server 'stallmark'" in said(stallmark("server", "down"))


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
    server_order.Papers("stallmark").remove()
    (folder / "secrets").mkdir()
    engine.volumes["stallmark-data"] = {}  # of somebody else
    said(stallmark("server", "down", "--remove-data"), 0)
    assert list(folder.iterdir()) == [] and engine.volumes == {"stallmark-data": {}}


def test_files_that_we_may_not_remove(folder, monkeypatch):
    (folder / "data").mkdir()

    def refuse(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(server.shutil, "rmtree", refuse)
    with pytest.raises(StallmarkError, match=f"sudo rm -rf .*{folder}/data .*, then the same command again"):
        server._remove_files(folder, server_order.MADE["data"])
