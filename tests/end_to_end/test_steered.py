"""A run of mail whose rate is steered by the server's own counters, from the scenario to the sentence of its report."""

import json

import pytest
from support.tool import Tool

from stallmark.record.reader import Record

MAILBOXES, WANTED = 100, 2.0
MAIL = {
    "workload": {"name": "mail", "scale": {"mailboxes": MAILBOXES, "messages": 10}}, "users": 8, "think_time": None,
    "profile": WANTED, "buffer_pool": "16 MiB", "warm_up": "40s", "measure": "10s",
}  # fmt: skip


@pytest.fixture(scope="module")
def tool(tmp_path_factory: pytest.TempPathFactory) -> Tool:
    return Tool(tmp_path_factory.mktemp("steered"))


def test_the_rate_follows_from_what_the_server_reads_and_writes(tool):
    code, said = tool.run("run", tool.scenario(**MAIL), "--json")
    assert code in (0, 5), said
    [folder] = [path.parent for path in tool.newest().glob("*/manifest.json")]
    [step] = Record(folder).manifest.steps
    steered = step.steered
    assert steered and (steered.wanted, steered.mailboxes, steered.limit_ms) == (WANTED, MAILBOXES, 20)
    assert steered.windows >= 2
    assert step.rate == steered.rate != WANTED * MAILBOXES / 20  # where it began
    arrived = Record(folder).table("transactions").to_pylist()
    measured = sum(
        row["committed"] + row["rolled_back"]
        for row in arrived
        if row["transaction"] != "background_scan" and step.measure_s <= row["second"] < step.end_s
    )
    assert measured == pytest.approx(steered.rate * 10, abs=5 * (steered.rate * 10) ** 0.5 + 5)
    own = Record(folder).table("transaction_io").to_pylist()
    assert sum(row["sampled"] for row in own if row["transaction"] == "background_scan") > 50
    [run] = json.loads(said.splitlines()[-1])["runs"]
    each = run["steps"][0]["io_per_mailbox"]
    assert each["mailboxes"] == MAILBOXES and each["iops_each"] > 0 and each["apart_iops"] > 0
