"""A database of two workloads: built, killed, driven and checked as one, with the tool as a user has it."""

import json
import re
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.sql_server import database
from support.tool import Tool
from support.waiting import eventually

from stallmark.engines import open_engine
from stallmark.engines.base import Engine
from stallmark.engines.mssql.engine import MssqlEngine
from stallmark.engines.postgres.embedded_engine import EmbeddedEngine
from stallmark.engines.postgres.embedded_server import EmbeddedServer
from stallmark.errors import CallFailed, StallmarkError
from stallmark.record.reader import Record
from stallmark.transactions import find_workload

SCALE = {"branches": 2, "mailboxes": 100, "messages": 10}
"""Several batches of mail, so that a build can be killed between them."""
DATABASE = ("bank+mail", "--scale", ",".join(f"{measure}={value}" for measure, value in SCALE.items()))


def loads(branches: int, mailboxes: int, **more: Any) -> dict[str, Any]:
    """Return the changes that make two loads of the small scenario."""
    scales = {"bank": {"branches": branches}, "mail": {"mailboxes": mailboxes, "messages": 10}}
    users = {"users": 2, "think_time": {"mean": "20ms"}}
    both = {name: {"workload": name, "scale": scale, **users} for name, scale in scales.items()}
    return {"workload": None, "users": None, "think_time": None, "loads": both, **more}


def kill_build(tool: Tool) -> None:
    """Leave the database half built, by a kill between two batches."""
    command = tool.start("db", "build", *DATABASE)
    if not (engine := tool.server):
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


@pytest.fixture(scope="module")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Tool:
    tool = Tool(tmp_path_factory.mktemp("several"))
    kill_build(tool)
    return tool


@pytest.fixture(scope="module")
def on_sql_server(sql_server: MssqlEngine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tool]:
    with database(sql_server, "several") as url:
        tool = Tool.on_server(tmp_path_factory.mktemp("several-sqlserver"), url)
        kill_build(tool)
        yield tool
        tool.nothing_left()


@pytest.fixture(params=["embedded", pytest.param("on_sql_server", marks=pytest.mark.sqlserver("container"))])
def tool(request: pytest.FixtureRequest) -> Tool:
    return request.getfixturevalue(request.param)


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


def test_what_was_committed_is_there_and_holds_after_the_server_was_killed(tool):
    """On a server that is not ours to kill, an executor, which has the users of one load."""
    measure, reset = ("10s", "continue") if tool.server else ("600s", "restore")
    command, folder = tool.start_measuring(**loads(2, 100, measure=measure, reset=reset))
    eventually(lambda: committed(folder, "load").keys() == {"bank", "mail"}, "both loads have committed")
    if tool.server:
        tool.running("stallmark.driver.executor")[0].send_signal(signal.SIGKILL)
    else:
        [pid] = [int(path.read_text().split()[0]) for path in tool.home.glob("**/postmaster.pid")]
        [server] = [process for process in tool.processes() if process.pid == pid]
        server.kill()
    assert command.wait() == 4 and "Traceback" not in command.text, command.text
    tool.nothing_left()
    victim = "executor" if tool.server else "server"
    record = Record(folder)
    assert "Incomplete:" in command.text and record.incomplete_because and victim in record.incomplete_because
    assert (folder.parent / "report.html").exists()
    counts = {kind.name: sql for part in find_workload("bank+mail").parts for kind, sql in part.users.counted.items()}
    before = {name: one.before for load in record.manifest.loads for name, one in load.workload.counted.items()}
    recorded = committed(folder, "transaction")
    with opened(tool) as engine:
        for name, sql in counts.items():
            assert engine.query(sql)[0][0] - before[name] >= recorded.get(name, 0), name
    check_holds(tool)


def test_a_run_starts_from_the_database_as_loaded_and_a_cell_keeps_to_data_of_its_own(embedded):
    code, said = embedded.run("run", embedded.scenario(**loads(1, 50, cells=[1, 2], reset="restore")))
    assert code == 0, said
    [run] = embedded.manifests()
    assert [step.cells for step in run.steps] == [1, 2] and all(one.holds is not False for one in run.conditions)
    assert run.workload.scale.items() >= SCALE.items()  # built for both
    [before] = [one.workload.counted["transfer"].before for one in run.loads if one.name == "bank"]
    assert before == 0, "all that was committed before has been taken back"
    with opened(embedded) as engine:
        crossing = "SELECT count(*) FROM bank.history WHERE (aid - 1) / 100000 + 1 <> bid"
        assert engine.query(crossing) == [(0,)], "a cell has one branch, so all customers are at home"
        [(alone, together)] = engine.query(
            "SELECT count(*) FILTER (WHERE mtime < of_second), count(*) FILTER (WHERE mtime >= of_second)"
            " FROM bank.history, (SELECT min(mtime) AS of_second FROM bank.history WHERE bid = 2) AS began"
        )
        assert alone > 15 and together > 15
        changed = "SELECT DISTINCT mb_id > 50 FROM mail.mailbox WHERE mb_updates + mb_moves + mb_deletes > 0"
        assert sorted(engine.query(changed)) == [(False,), (True,)]
    embedded.nothing_left()


def test_it_is_listed_and_removed_whole(embedded):
    [folder] = embedded.home.glob("embedded/bank+mail-*")
    [[noted]] = [one["holds"] for one in json.loads(embedded.run("db", "list", "--json")[1])]
    assert noted["workload"] == "bank+mail" and noted["scale"].items() >= SCALE.items()
    code, said = embedded.run("db", "remove", folder.name, "--yes")
    assert code == 0 and not folder.exists(), said


def test_workloads_with_a_database_each_are_driven_checked_and_listed(embedded):
    several = loads(1, 20, databases={"bank": {}, "mail": {}}, reset="restore", variants=[{"name": "only"}])
    code, said = embedded.run("run", embedded.scenario(**several))
    assert code == 0, said
    [run] = embedded.manifests()
    assert {one.name.partition(":")[0] for one in run.conditions if one.holds} == {"bank", "mail"}
    assert run.workload.name == "bank,mail" and run.database.bytes_after > run.database.bytes_before > 0
    counted = {one.name: one.workload.counted for one in run.loads}
    assert counted["bank"]["transfer"].before == 0 < counted["bank"]["transfer"].after
    code, said = embedded.run("db", "check", "bank,mail", "--scale", "branches=1,mailboxes=20,messages=10", "--json")
    assert code == 0 and {one["name"].partition(":")[0] for one in json.loads(said)} >= {"bank", "mail"}, said
    [folder] = embedded.home.glob("embedded/bank,mail-*")
    [listed] = [one for one in json.loads(embedded.run("db", "list", "--json")[1]) if one["name"] == folder.name]
    assert [one["workload"] for one in listed["holds"]] == ["bank", "mail"]


@contextmanager
def opened(tool: Tool) -> Iterator[Engine]:
    """Yield the database, while nobody else has it."""
    if engine := tool.server:
        yield engine
        return
    [folder] = tool.home.glob("embedded/bank+mail-*")
    with closing(EmbeddedServer(folder)) as server:
        yield EmbeddedEngine(server, "bank+mail")


def committed(folder: Path, by: str) -> Counter[str]:
    """Return the committed transactions in a record by a column, without those that have none."""
    counts: Counter[str] = Counter()
    for row in Record(folder).table("transactions").to_pylist():
        counts[row[by]] += row["committed"]
    return +counts
