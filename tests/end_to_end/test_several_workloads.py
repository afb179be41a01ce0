"""A database of two workloads: built, killed, driven and checked as one, with the tool as a user has it."""

import json
import re
import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psutil
import pytest
from support.sql_server import database
from support.tool import Tool
from support.waiting import eventually

from stallmark.engines import open_engine
from stallmark.engines.mssql.engine import MssqlEngine
from stallmark.engines.postgres.embedded.engine import EmbeddedEngine
from stallmark.engines.postgres.embedded.server import EmbeddedServer
from stallmark.errors import CallFailed, StallmarkError
from stallmark.record.reader import Record

SCALE = {"branches": 2, "mailboxes": 100, "messages": 10}
"""Several batches of mail, so that a build can be killed between them."""
DATABASE = ("bank+mail", "--scale", ",".join(f"{measure}={value}" for measure, value in SCALE.items()))


def loads(branches: int, mailboxes: int, **more: Any) -> dict[str, Any]:
    """Return the changes that make two loads of the small scenario."""
    scales = {"bank": {"branches": branches}, "mail": {"mailboxes": mailboxes, "messages": 10}}
    users = {"users": 2, "think_time": {"mean": "20ms"}}
    both = {name: {"workload": name, "scale": scale, **users} for name, scale in scales.items()}
    return {"workload": None, "users": None, "think_time": None, "loads": both, **more}


@pytest.fixture(scope="module")
def tool(tmp_path_factory: pytest.TempPathFactory) -> Tool:
    """One in whose home the database was half built when the build was killed."""
    tool = Tool(tmp_path_factory.mktemp("several"))
    command = tool.start("db", "build", *DATABASE)
    home = eventually(lambda: next(tool.home.glob("embedded/bank+mail-*"), None), "a folder for the database")
    engine = open_engine(EmbeddedServer(home).url("bank+mail"))

    def batches_of_mail() -> int:
        try:
            return engine.query("SELECT COUNT(*) FROM stallmark.ledger WHERE table_group LIKE 'mail/%'")[0][0]
        except (CallFailed, StallmarkError):
            return 0

    eventually(batches_of_mail, "a batch of mail is in")
    command.process.kill()
    tool.nothing_left()
    return tool


@pytest.fixture(scope="module")
def on_sql_server(sql_server: MssqlEngine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tool]:
    with database(sql_server, "several") as url:
        tool = Tool.on_server(tmp_path_factory.mktemp("several-sqlserver"), url)
        code, said = tool.run("db", "build", *DATABASE)
        assert code == 0, said
        yield tool
        tool.nothing_left()


def check_holds(tool: Tool) -> None:
    code, said = tool.run("db", "check", *DATABASE, "--json")
    assert code == 0, said
    found = json.loads(said)
    assert {one["name"].partition(":")[0] for one in found} >= {"bank", "mail"}
    assert all(one["holds"] is not False and not one["refused"] for one in found)


def test_a_build_that_was_killed_is_completed(tool):
    code, said = tool.run("db", "check", *DATABASE)
    assert code == 3 and re.search(r"bank\+mail .* is half-loaded: \d+ of \d+ batches are in", said), said
    code, said = tool.run("db", "build", "mail+bank", *DATABASE[1:])  # in whatever order
    assert code == 0 and "continued" in said, said
    check_holds(tool)
    code, said = tool.run("db", "list", "--json")
    [[held]] = [one["holds"] for one in json.loads(said)]
    assert held["workload"] == "bank+mail" and held["scale"].items() >= SCALE.items()


def test_a_cell_keeps_to_data_of_its_own(tool):
    code, said = tool.run("run", tool.scenario(**loads(1, 50, cells=[1, 2], measure="2s", reset="restore")))
    assert code == 0, said
    [run] = tool.manifests()
    assert [step.cells for step in run.steps] == [1, 2] and all(one.holds is not False for one in run.conditions)
    [folder] = tool.home.glob("embedded/bank+mail-*")  # built for both
    with closing(EmbeddedServer(folder)) as server:
        engine = EmbeddedEngine(server, "bank+mail")
        crossing = "SELECT count(*) FROM bank.history WHERE (aid - 1) / 100000 + 1 <> bid"
        assert engine.query(crossing) == [(0,)], "a cell has one branch, so all customers are at home"
        [(alone, together)] = engine.query(
            "SELECT count(*) FILTER (WHERE mtime < of_second), count(*) FILTER (WHERE mtime >= of_second)"
            " FROM bank.history, (SELECT min(mtime) AS of_second FROM bank.history WHERE bid = 2) AS began"
        )
        assert alone > 15 and together > 15
    tool.nothing_left()


@pytest.mark.parametrize("killed", ["the tool", "an executor", "the server"])
def test_all_conditions_hold_after_a_run_that_was_killed(tool, killed):
    hold_after_a_kill(tool, killed)


@pytest.mark.sqlserver("container")
@pytest.mark.parametrize("killed", ["the tool", "an executor"])
def test_they_hold_on_sql_server_too(on_sql_server, killed):
    hold_after_a_kill(on_sql_server, killed)


def hold_after_a_kill(tool: Tool, killed: str) -> None:
    goes_on = killed == "an executor"  # which has the users of one load
    command, folder = tool.start_measuring(**loads(2, 100, measure="20s" if goes_on else "600s"))
    eventually(lambda: committed(folder).keys() == {"bank", "mail"}, "both loads have committed")
    if killed == "the tool":
        command.process.kill()
    elif killed == "an executor":
        tool.running("stallmark.driver.executor")[0].send_signal(signal.SIGKILL)
    else:
        [pid] = [int(path.read_text().split()[0]) for path in tool.home.glob("**/postmaster.pid")]
        [server] = [process for process in tool.processes() if process.pid == pid]
        server.kill()
    assert command.wait() != 0 and "Traceback" not in command.text, command.text
    tool.nothing_left()
    assert Record(folder).incomplete_because
    check_holds(tool)


def test_a_run_starts_from_the_database_as_it_was_loaded(tool):
    code, said = tool.run("run", tool.scenario(**loads(2, 100, reset="restore")))
    assert code == 0, said
    [run] = tool.manifests()
    [before] = [one.workload.counted["transfer"].before for one in run.loads if one.name == "bank"]
    assert before == 0, "all that was committed before has been taken back"
    check_holds(tool)


def test_it_is_removed_whole(tool):
    [folder] = tool.home.glob("embedded/bank+mail-*")
    code, said = tool.run("db", "remove", folder.name, "--yes")
    assert code == 0 and not folder.exists(), said


def test_workloads_with_a_database_each_are_driven_killed_and_checked(tool):
    several = loads(1, 20, databases={"bank": {}, "mail": {}}, reset="restore", variants=[{"name": "only"}])
    code, said = tool.run("run", tool.scenario(**several))
    assert code == 0, said
    [run] = tool.manifests()
    assert {one.name.partition(":")[0] for one in run.conditions if one.holds} == {"bank", "mail"}
    assert run.workload.name == "bank,mail" and run.database.bytes_after > run.database.bytes_before > 0
    counted = {one.name: one.workload.counted for one in run.loads}
    assert counted["bank"]["transfer"].before == 0 < counted["bank"]["transfer"].after
    command, folder = tool.start_measuring(**several | {"measure": "600s"})
    eventually(lambda: committed(folder).keys() == {"bank", "mail"}, "both loads have committed")
    [pid] = [int(path.read_text().split()[0]) for path in tool.home.glob("embedded/bank,mail-*/**/postmaster.pid")]
    psutil.Process(pid).kill()
    assert command.wait() != 0 and "Traceback" not in command.text, command.text
    tool.nothing_left()
    code, said = tool.run("db", "check", "bank,mail", "--scale", "branches=1,mailboxes=20,messages=10", "--json")
    assert code == 0 and {one["name"].partition(":")[0] for one in json.loads(said)} >= {"bank", "mail"}, said
    [folder] = tool.home.glob("embedded/bank,mail-*")
    code, said = tool.run("db", "list", "--json")
    [found] = [one for one in json.loads(said) if one["name"] == folder.name]
    assert [one["workload"] for one in found["holds"]] == ["bank", "mail"]


def committed(folder: Path) -> dict[str, int]:
    rows = Record(folder).table("transactions").to_pylist()
    loads = {row["load"] for row in rows if row["committed"]}
    return {load: sum(row["committed"] for row in rows if row["load"] == load) for load in loads}
