"""Cells of two loads in one database: each on its own part, and nothing that was committed is lost with the server."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from support.tool import Tool

from stallmark.engines.postgres.embedded.engine import EmbeddedEngine
from stallmark.engines.postgres.embedded.server import EmbeddedServer
from stallmark.record.reader import Record
from stallmark.transactions import find_workload

pytestmark = pytest.mark.thorough

NAME = "bank+mail"
USERS = {"users": 2, "think_time": {"mean": "20ms"}}
CELLS: dict[str, Any] = {
    "workload": None, "users": None, "think_time": None,
    "loads": {
        "bank": {"workload": "bank", "scale": {"branches": 1}, **USERS},
        "mail": {"workload": "mail", "scale": {"mailboxes": 10, "messages": 20}, **USERS},
    },
    "cells": [1, 2],
}  # fmt: skip


@pytest.fixture(scope="module")
def tool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tool]:
    tool = Tool(tmp_path_factory.mktemp("cells"))
    yield tool
    tool.nothing_left()


def asked(tool: Tool, *questions: str) -> list[list[tuple]]:
    """The answers of the database, while nobody else has it."""
    [folder] = tool.home.glob("embedded/bank+mail-*")
    engine = EmbeddedEngine(EmbeddedServer(folder), NAME)
    try:
        return [engine.query(question) for question in questions]
    finally:
        engine.close()
        tool.nothing_left()


def committed(folder: Path, before_s: float = float("inf")) -> Counter[str]:
    """Transactions by name, as the record has them."""
    found: Counter[str] = Counter()
    for row in Record(folder).table("transactions").to_pylist():
        found[row["transaction"]] += row["committed"] if row["second"] < before_s else 0
    return found


def test_a_cell_works_on_a_part_of_its_own(tool: Tool) -> None:
    code, said = tool.run("run", tool.scenario(**CELLS, measure="2s"))
    assert code == 0, said
    folder = tool.newest() / "01-only"
    manifest = Record(folder).manifest
    assert manifest.workload.scale.items() >= {"branches": 2, "mailboxes": 20}.items()
    assert [step.cells for step in manifest.steps] == [1, 2]
    assert manifest.conditions and all(one.holds for one in manifest.conditions)
    [history, mailboxes] = asked(
        tool,
        "SELECT bid, (aid - 1) / 100000 + 1 FROM bank.history ORDER BY ctid",
        "SELECT DISTINCT mb_id > 10 FROM mail.mailbox WHERE mb_updates + mb_moves + mb_deletes > 0",
    )
    first = committed(folder, manifest.steps[1].begin_s)["transfer"]
    assert first > 10 and set(history[:first]) == {(1, 1)}
    assert set(history) == {(1, 1), (2, 2)}, "of one branch each, a cell has no other"
    assert sorted(mailboxes) == [(False,), (True,)]


def test_what_cells_have_committed_is_there_when_the_server_is_killed(tool: Tool) -> None:
    counts = {kind.name: sql for part in find_workload(NAME).parts for kind, sql in part.users.counted.items()}
    before = asked(tool, *counts.values())
    command, folder = tool.start_measuring(**CELLS | {"cells": [2]})
    [pid] = [int(path.read_text().split()[0]) for path in tool.home.glob("**/postmaster.pid")]
    psutil.Process(pid).kill()
    assert command.wait() == 4 and "Traceback" not in command.text, command.text
    tool.nothing_left()
    recorded = committed(folder)
    assert recorded["transfer"] and recorded["deliver_message"]
    for name, [[then]], [[now]] in zip(counts, before, asked(tool, *counts.values()), strict=True):
        assert now - then >= recorded[name], name
    code, said = tool.run("check", NAME, "--scale", "branches=2,mailboxes=20,messages=20")
    assert code == 0 and "BROKEN" not in said, said
