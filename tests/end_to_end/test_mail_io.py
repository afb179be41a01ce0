"""A run of mail alone: its I/Os without those of the background scan, and the mailboxes that do as many."""

import json

from support.tool import Tool

MAIL = {
    "workload": {"name": "mail", "scale": {"mailboxes": 100, "messages": 10}}, "users": 8, "think_time": None,
    "arrivals": {"kind": "poisson", "rate": 20}, "buffer_pool": "16 MiB", "warm_up": "5s", "measure": "10s",
}  # fmt: skip


def test_mailboxes_follow_from_what_the_server_reads_and_writes(tmp_path):
    tool = Tool(tmp_path)
    code, said = tool.run("run", tool.scenario(**MAIL), "--json")
    assert code == 0, said
    io = json.loads(said.splitlines()[-1])["runs"][0]["steps"][0]["mail_io"]
    assert io["iops"] > 0 and io["apart_iops"] > 0 and io["mailboxes"] == int(io["iops"] / 0.12)
