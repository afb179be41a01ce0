"""A load is traced on the embedded engine, and told of again from its record alone."""

import json

import pyarrow.compute as pc
from support.tool import Tool

from stallmark.record.reader import Record


def test_a_workload_is_traced_and_its_record_tells_the_same_again(fresh: Tool):
    options = ("--scale", "branches=2", "--users", "2", "--warm-up", "1s", "--measure", "4s", "--pool", "8MiB")
    code, said = fresh.run("characterise", "bank", *options, "--json")
    assert code == 0, said
    found = json.loads(said.splitlines()[-1])
    trace = found["trace"]
    assert found["workload"] == "bank" and found["published"] == [] and trace["lost"] == 0
    assert trace["reads"] > 30 and trace["writes"] > 0
    tables = {one["table"]: one for one in trace["tables"]}
    assert max(tables, key=lambda name: tables[name]["reads"]) == "bank.accounts" and None not in tables
    assert 0 < tables["bank.accounts"]["index_share"] < 1
    assert sum(one["share"] for one in trace["tables"]) == 1 or len(tables) > 1
    shares = [one["least"] for one in trace["flash"]]
    assert shares == sorted(shares) and all(one["least"] <= one["most"] for one in trace["flash"])
    [run] = fresh.newest().glob("01-*")
    table = Record(run).table("io_trace")
    assert pc.sum(pc.equal(table["op"], 0)).as_py() >= trace["reads"]
    assert (fresh.newest() / "locality.html").is_file()
    code, again = fresh.run("characterise", str(fresh.newest()), "--json")
    assert code == 0 and json.loads(again.splitlines()[-1]) == found | {"page": None}
    code, said = fresh.run("report", str(fresh.newest()))
    assert code == 0, said


def test_a_scenario_that_traces_may_have_an_emulated_array_and_several_sizes(tool: Tool):
    if why := tool.cannot("tracing"):
        code, said = tool.run("run", tool.scenario(observe=["io_trace"]))
        assert code == 3 and why in " ".join(said.split())
        return
    slow = {"data": {"spindles": 8, "read_ms": 1, "write_ms": 1, "sync_ms": 1, "mb_per_s": 150}}
    variants = [{"name": "8", "buffer_pool": "8MiB"}, {"name": "9", "buffer_pool": "9MiB", "emulated_array": slow}]
    code, said = tool.run("run", tool.scenario(observe=["io_trace"], reset="restore", measure="2s", variants=variants))
    assert code == 0, said
    tables = [Record(run).table("io_trace") for run in sorted(tool.newest().glob("0*"))]
    assert len(tables) == 2 and all(table.num_rows for table in tables)
    reads = tables[1].filter(pc.equal(tables[1]["op"], 0))["took_us"]
    assert pc.approximate_median(reads).as_py() >= 1000  # the trace sees what a caller waits for
    code, said = tool.run("characterise", str(tool.newest()), "--json")
    assert code == 0, said
    assert len(json.loads(said.splitlines()[-1])["runs"]) == 2
