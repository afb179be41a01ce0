"""Power runs that are killed, stopped or too slow, on the command line: said, kept, and put right by the next run.

A query is held up by a lock on a table that no refresh function touches: Q2 is the second of a power run that reads it.
"""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from support.remote import Remote
from support.tool import Command, Tool
from support.waiting import eventually

from stallmark.record.reader import Record

READERS_OF_REGION = ("Q2", "Q5", "Q8")
WAREHOUSE = {"name": "warehouse", "scale": {"factor": 0.01}}


@pytest.fixture(scope="module")
def tool(remote: Remote, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tool]:
    tool = Tool(tmp_path_factory.mktemp("queries"), {"STALLMARK_SERVER": remote.url()})
    code, said = tool.run("build", "warehouse", "--scale", "factor=0.01")
    assert code == 0, said
    yield tool
    tool.nothing_left()


@pytest.fixture
def held_up(remote: Remote) -> Iterator[psycopg.Connection]:
    with closing(psycopg.connect(remote.url())) as connection:
        connection.execute("LOCK TABLE warehouse.region")
        yield connection


def scenario(tool: Tool, timeout: str = "100s") -> str:
    users = dict.fromkeys(("users", "think_time", "warm_up", "measure"))
    return tool.scenario(workload=WAREHOUSE, queries={"run": "power", "timeout": timeout}, **users)


def queries_of(folder: Path) -> list[str]:
    return Record(folder).table("queries")["query"].to_pylist()


def started_until_it_waits(tool: Tool, **changes: str) -> tuple[Command, Path]:
    """RF1 has inserted then, and RF2 is far away."""
    before = set(tool.runs.glob("*/*/manifest.json"))
    command = tool.start("run", scenario(tool, **changes), "--shared")

    def first_query() -> Path | None:
        assert command.process.poll() is None, command.text
        for manifest in set(tool.runs.glob("*/*/manifest.json")) - before:
            if "Q14" in queries_of(manifest.parent):
                return manifest.parent
        return None

    folder = eventually(first_query, "a record with the first query")
    return command, folder


def says_that_it_put_right_a_refresh(tool: Tool) -> bool:
    [manifest] = tool.manifests()
    return any("A run ended between the two functions of refresh set" in note for note in manifest.notes)


def test_killed_between_the_refresh_functions(tool, held_up):
    command, folder = started_until_it_waits(tool)
    command.process.kill()
    tool.nothing_left()
    assert "killed before it could close the record" in str(Record(folder).incomplete_because)
    held_up.rollback()
    code, said = tool.run("check", "warehouse", "--scale", "factor=0.01", "--quick")
    assert code != 0 and "no refresh set is half done" in " ".join(said.split()), said


def test_ctrl_c_in_the_run_after_it_which_has_put_right_what_it_left(tool, held_up):
    command, folder = started_until_it_waits(tool)
    assert says_that_it_put_right_a_refresh(tool)
    command.press_ctrl_c()
    assert command.wait() == 130 and "Traceback" not in command.text, command.text
    tool.nothing_left()
    assert "Ctrl-C" in str(Record(folder).incomplete_because)
    assert set(queries_of(folder)) == {"RF1", "Q14"}
    said = " ".join(command.text.split())
    assert "not computed, because the power run was not finished" in said
    assert (folder.parent / "report.html").exists()


def test_a_query_that_takes_too_long_after_it(tool, held_up):
    command, folder = started_until_it_waits(tool, timeout="1s")
    eventually(lambda: "Q5" in queries_of(folder), "the last reader of region given up")
    held_up.rollback()  # the conditions read it as well
    assert command.wait() == 0, command.text
    tool.nothing_left()
    assert says_that_it_put_right_a_refresh(tool)
    [manifest] = tool.manifests()
    assert all(condition.holds for condition in manifest.conditions)
    rows = Record(folder).table("queries").to_pylist()
    assert {row["query"] for row in rows if row["error_class"]} == set(READERS_OF_REGION)
    assert {row["error_class"] for row in rows if row["error_class"]} == {"timeout"}
    assert len(rows) == 24 and rows[-1]["query"] == "RF2"
    said = " ".join(command.text.split())
    assert "Q2 took longer than its timeout (and 2 more)" in said
