"""Servers that are refused before the container engine is asked."""

import os
import socket
import sys
import tempfile

import pytest
from support.asking_docker import IMAGE, said, up
from support.command_line import stallmark
from support.docker_api import Container

from stallmark.cli.server import container
from stallmark.cli.server import order as server_order
from stallmark.errors import StallmarkError


def test_nothing_is_asked_of_anybody_before_the_licence_is_accepted(engine):
    result = stallmark("server", "up")
    assert "https://go.microsoft.com/fwlink/?linkid=857698" in said(result) and "--accept-eula" in said(result)
    assert engine.asked == [] and not server_order.CredentialFiles("stallmark").exist


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


@pytest.mark.parametrize("kind", ["gone", "left behind"])
def test_an_engine_that_ends_meanwhile(kind):
    import docker

    with tempfile.TemporaryDirectory() as short:
        path = f"{short}/docker.sock"
        if kind == "left behind":
            with socket.socket(socket.AF_UNIX) as former:
                former.bind(path)
        client = docker.DockerClient(f"unix://{path}", version="1.47")
        ended = pytest.raises(StallmarkError, match=r"^It was asked: the container engine has ended\.$")
        with ended, container.asked("It was asked"):
            client.containers.list()


def test_the_engine_of_another_machine_is_refused(monkeypatch):
    import docker

    monkeypatch.setattr(docker, "from_env", lambda **_: docker.DockerClient("tcp://10.0.0.1:2375", version="1.47"))
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


def test_an_engine_that_reaches_no_registry(engine):
    """Docker Engine 20.10 says so in its answer, not in a line of the download."""
    engine.images.clear()
    engine.refusals["POST /images/create"] = (
        500, 'Get "https://mcr.microsoft.com/v2/": dial tcp: lookup mcr.microsoft.com on 10.0.0.1:53: no such host',
    )  # fmt: skip
    assert "on 10.0.0.1:53: no such host. Is this machine online?" in said(up())


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
    assert "There is no server 'stallmark'" in said(stallmark("server", "down")), "it has never been"


def test_another_refusal_of_the_engine_is_shown_in_its_words(engine):
    engine.refusals["POST /containers/create"] = 400, "Minimum memory limit allowed is 6MB"
    assert "SQL Server 2022 could not be started: Minimum memory limit allowed is 6MB." in said(up())


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
