"""Servers that are refused before the container engine is asked."""

import sys

import pytest
from support.asking_docker import said, up
from support.command_line import stallmark
from support.docker_api import Container

from stallmark.lab.server import order as server_order


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
