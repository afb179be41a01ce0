"""A curve of memory on the embedded engine: sizes are chosen, a kill changes none, the report has the curve."""

import json

from support.tool import Tool

from stallmark.record.reader import find_records


def test_a_curve_that_was_killed_goes_on_with_the_same_choice(tool: Tool):
    curve = {"curve": "auto", "from": "8MiB", "to": "24MiB", "sizes": 5, "tolerance": "50 %"}
    changes = {"buffer_pool": curve, "measure": "2s", "think_time": {"mean": "20ms"}, "variants": [{"name": "memory"}]}
    command = tool.start("run", tool.scenario(**changes))
    command.wait_for("24 MiB: checking consistency: done")
    command.wait_for("[3/5]")
    command.process.kill()
    tool.nothing_left()
    folder = tool.newest()
    code, said = tool.run("run", "--resume", str(folder), "--json")
    assert code == 0, said
    made = [record.manifest for record in find_records([folder])]
    chosen = [one.memory.chosen for one in made]
    assert [one.why for one in chosen[:3]] == ["end", "end", "middle"] and 3 <= len(made) <= 5
    assert [one.bytes for one in chosen] == [one.memory.reached_bytes for one in made]
    assert chosen[2].between_bytes == (chosen[0].bytes, chosen[1].bytes)
    assert [one.sequence for one in made] == list(range(1, len(made) + 1))
    assert chosen[-1].last is (len(made) < 5)
    code, said = tool.run("status", "--json")
    assert json.loads(said)["state"] == "complete" and json.loads(said)["planned"] == len(made), said
    code, said = tool.run("run", "--resume", str(folder))
    assert code == 3 and "complete" in said
