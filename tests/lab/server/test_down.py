"""Which servers there are, and their end."""

import json
from pathlib import Path

import pytest
from support.asking_docker import first_password_of, said, up
from support.command_line import stallmark
from support.docker_api import Container

from stallmark.errors import StallmarkError
from stallmark.lab.server import order as server_order
from stallmark.lab.server import server


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
    server_order.CredentialFiles("stallmark").remove()
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
