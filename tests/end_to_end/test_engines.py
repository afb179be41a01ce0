"""The same on every engine: the embedded one always, SQL Server where there is one.

STALLMARK_TEST_SQLSERVER holds the URL of a database for the tests alone: its schemas `bank` and `stallmark` are
dropped.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from end_to_end.tool import Tool
from mssql_server import empty

from stallmark.driver.engines.mssql.address import Address
from stallmark.driver.engines.mssql.engine import MssqlEngine
from stallmark.driver.record import Record
from stallmark.schema.bank import METADATA as BANK

SQL_SERVER = os.environ.get("STALLMARK_TEST_SQLSERVER")
DATABASE = ("bank", "--scale", "branches=1")


@pytest.fixture(scope="module", params=["embedded", "sqlserver"])
def tool(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tool]:
    tool = Tool(tmp_path_factory.mktemp(request.param))
    if request.param == "sqlserver":
        if not SQL_SERVER:
            pytest.skip("STALLMARK_TEST_SQLSERVER names no SQL Server to test against")
        empty(MssqlEngine(SQL_SERVER), BANK)
        tool.environment = {"STALLMARK_SERVER": SQL_SERVER, "STALLMARK_STATE": str(tool.folder / "state")}
    yield tool
    tool.nothing_left()
    if request.param == "sqlserver":
        empty(MssqlEngine(SQL_SERVER), BANK)


def committed(folder: Path) -> int:
    return sum(Record(folder).table("transactions")["committed"].to_pylist())


def test_a_database_is_built_recognised_driven_and_whole(tool):
    assert "created" in tool.run("build", *DATABASE)[1]
    code, said = tool.run("build", *DATABASE)
    assert code == 0 and "reused" in said
    code, said = tool.run("run", tool.scenario(measure="3s", warm_up="2s", users=3))
    assert code in (0, 4) and "Report:" in said, said
    [manifest] = tool.manifests()
    assert manifest["status"] == "complete", manifest["incomplete_because"]
    [folder] = [path for path in tool.newest().iterdir() if path.is_dir()]
    assert committed(folder) > 0
    assert manifest["conditions"] and all(condition["holds"] for condition in manifest["conditions"])
    assert all(value["unavailable"] or Record(folder).table(name).num_rows >= 0
               for name, value in manifest["collectors"].items())  # fmt: skip
    code, said = tool.run("check", *DATABASE)
    assert code == 0 and "BROKEN" not in said


def test_a_driver_that_is_killed_loses_nothing_and_the_next_run_is_complete(tool):
    command, folder = tool.start_measuring()
    command.process.kill()
    tool.nothing_left()
    assert committed(folder) > 0
    assert "was cut" in str(Record(folder).incomplete_because)
    code, said = tool.run("run", tool.scenario(measure="2s"))
    assert code == 0, said
    code, said = tool.run("check", *DATABASE)
    assert code == 0, said


def test_a_second_run_at_once_is_refused(tool):
    command, _ = tool.start_measuring()
    code, said = tool.run_beside("run", tool.scenario())
    assert code == 3 and ("Another Stallmark" in said or "another Stallmark" in said)
    command.press_ctrl_c()
    assert command.wait() == 130
    tool.nothing_left()


def test_the_password_is_in_no_file_that_is_left(tool):
    url = tool.environment.get("STALLMARK_SERVER")
    if url is None or not (password := Address.parse(url).password):
        pytest.skip("the embedded server needs no password")
    files = [path for path in tool.runs.rglob("*") if path.is_file()]
    assert files and [path for path in files if password.encode() in path.read_bytes()] == []


def test_a_wrong_password_is_one_sentence(tool):
    url = tool.environment.get("STALLMARK_SERVER")
    if url is None:
        pytest.skip("the embedded server needs no password")
    wrong = sa.make_url(url).set(password="wr0ng-h0rse").render_as_string(hide_password=False)
    other = Tool(tool.folder, {"STALLMARK_SERVER": wrong})
    code, said = other.run("run", other.scenario())
    assert code == 3 and "the login was refused" in said and "wr0ng" not in said
