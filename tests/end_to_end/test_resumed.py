"""An experiment that was killed goes on: whole runs stay, the others are made, and the gap is in the record. The run
that was killed had its database in folders of its own."""

import json
from pathlib import Path

import pytest
from support.tool import Tool
from support.waiting import eventually

from stallmark.experiment.status import State, status
from stallmark.record.reader import Record, find_records

pytestmark = pytest.mark.thorough


def test_an_experiment_that_was_killed_goes_on(tool: Tool):
    told = tool.folder / "told"
    at_end = {"command": ["sh", "-c", 'echo "$1" > "$0"', str(told), "{state} {folder}"]}
    place = {name: str(tool.folder / "elsewhere" / name) for name in ("data", "log")}
    (tool.folder / "elsewhere").mkdir()
    variants = [{"name": "one"}, {"name": "two", "place": place}, {"name": "three"}]
    changes = {
        "reset": "restore",
        "measure": "2s",
        "think_time": {"mean": "20ms"},
        "variants": variants,
        "at_end": at_end,
    }
    command = tool.start("run", tool.scenario(**changes))
    command.wait_for("one: checking consistency: done")

    def second() -> bool:
        found = list(tool.newest().glob("02-*/manifest.json"))
        return bool(found) and Record(found[0].parent).table("transactions").num_rows > 0

    eventually(second, "a second run with transactions")
    found = status(tool.newest())
    assert (found.state, found.planned, found.whole) == (State.RUNNING, 3, 1)
    assert found.now and found.now.variant == "two" and found.left_s is not None
    assert found.refined and "3 runs, " in command.text and "it takes about" in command.text
    first_took = Record(tool.newest() / "01-one").manifest.took
    assert first_took and first_took.seconds and first_took.load_s and first_took.load_s >= 4
    assert found.left_s <= 2 * first_took.seconds
    command.process.kill()
    tool.nothing_left()
    assert (Path(place["data"]) / "data").exists()  # as the server that was killed left it
    folder = tool.newest()
    first = next(folder.glob("01-*/manifest.json"))
    as_it_was = first.read_bytes()

    code, said = tool.run("run", "--resume", str(folder))
    assert code == 0, said
    code, said = tool.run("status", "--json")
    assert code == 0 and json.loads(said)["state"] == "complete", said
    assert told.read_text().split() == ["complete", str(folder)]
    made = [record.manifest for record in find_records([folder])]
    assert [(one.sequence, one.variant.name, one.status) for one in made] == [
        (1, "one", "complete"), (2, "two", "complete"), (3, "three", "complete"),
    ]  # fmt: skip
    assert first.read_bytes() == as_it_was
    assert [one.resumed_after_s is not None for one in made] == [False, True, False]
    assert len({one.workload.seed for one in made}) == len({one.experiment for one in made}) == 1
    lay = [one.devices.folders for one in made]
    assert lay[1] == {"data": f"{place['data']}/data", "wal": place["log"]} and lay[0] == lay[2] != lay[1]
    assert not [path for name in place.values() for path in Path(name).iterdir()]
    [interrupted] = folder.glob("interrupted/02-*")
    assert Record(interrupted).table("transactions").num_rows

    code, said = tool.run("run", "--resume", str(folder))
    assert code == 3 and "complete" in said
