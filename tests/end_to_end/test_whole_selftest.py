"""`stallmark selftest` on the embedded engine: all that it has to try, and nothing of it left."""

import json
from pathlib import Path

from support.tool import Tool

from stallmark.record.reader import Record
from stallmark.transactions.bank import WORKLOAD as BANK
from stallmark.transactions.brokerage import WORKLOAD as BROKERAGE


def test_selftest_tries_everything(tmp_path: Path):
    tool = Tool(tmp_path)
    wal = tool.folder / "wal"

    def there() -> set[Path]:
        return {*tool.folder.iterdir(), *(tool.home / "embedded").glob("*")} - {wal, tool.home, tool.runs}

    before = there()
    code, said = tool.run("selftest", "--seconds", "1", "--json", "--wal-dir", str(wal))
    assert code == 0, said
    told = json.loads(next(line for line in said.splitlines() if line.startswith("{")))
    states = {check["what"]: check["state"] for check in told["checks"]}
    assert {
        f"{workload.name}: {what}" for workload in (BANK, BROKERAGE) for what in (
            "4 users", "collector server_io", "collector wal", "counted as committed, run 1",
            "consistency after the load", "report", *(f"transaction {each.name}" for each in workload.transactions),
        )
    } | {"bank: counted as committed, run 2", "bank: copy and restore", "bank: memory cap, and given back"} | {
        "removed what it made"
    } == {what for what in states if ": collector" not in what or what.endswith(("server_io", "wal"))}  # fmt: skip
    assert "failed" not in states.values(), told
    assert {states[what] for what in states if what.endswith(("given back", "restore"))} == {"works"}
    assert told["facts"]["server"].startswith("PostgreSQL 18")
    assert Record(tool.folder / told["record"]).manifest.status == "complete"
    said_in = {path for path in tool.folder.glob("said-*")}
    assert there() - said_in == before - said_in
    assert list(wal.iterdir()) == []
