"""The trials of a selftest, each by itself: transactions alone, the cap of the memory, and what a record says."""

import io
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from support.kept_databases import kept_database
from support.manifests import a_manifest
from support.market_workload import WORKLOAD as MARKET

from stallmark.cli.selftest import bench as selftest_bench
from stallmark.cli.selftest import database as selftest_database
from stallmark.cli.selftest import record as selftest_record
from stallmark.cli.selftest.bench import Bench
from stallmark.cli.selftest.check import Off, SelftestResult, Wrong, attempt
from stallmark.engines.base import Engine
from stallmark.engines.postgres.embedded.engine import EmbeddedEngine, EmbeddedMemory
from stallmark.experiment.progress import Show
from stallmark.loaders.load import build
from stallmark.record.histogram import Histogram, columns
from stallmark.record.manifest.workload import Counted
from stallmark.record.reader import Record
from stallmark.record.schema import TABLES
from stallmark.record.writer import RecordWriter
from stallmark.scenarios.model import WorkloadChoice
from stallmark.schema.deploy import batches
from stallmark.transactions.bank import WORKLOAD as BANK
from stallmark.transactions.brokerage import WORKLOAD as BROKERAGE

TOOK = Histogram(b"", b"")
RAN = {"second": 1, "load": "market", "retries": 0, "latency_us": 0, "service_us": 0}
RAN |= columns("latency", TOOK) | columns("service", TOOK)


def bench(engine: Engine, choice: WorkloadChoice, runs: Path, may_cap_memory: bool = False) -> Bench:
    return Bench(engine, choice, runs, Show(Console(file=io.StringIO())), 1, may_cap_memory)


def test_every_transaction_of_the_brokerage_alone(tmp_path):
    choice = WorkloadChoice(name="brokerage", scale=selftest_database.BROKERAGE.scale, seed=1)
    with kept_database(None, BROKERAGE, choice.scale, choice.seed) as engine:
        for batch in batches(BROKERAGE.procedures(engine.dialect)):
            engine.execute(batch)

        def execute() -> tuple[str, dict[str, SelftestResult]]:
            on = bench(engine, choice, tmp_path)
            said = attempt("alone", lambda: selftest_bench._execute_alone(on)).said
            assert on.alone
            return said, {check.what.split()[1].rstrip(","): check for check in on.alone.checks()}

        said, found = execute()
        names = [kind.name for kind in BROKERAGE.transactions if kind is not BROKERAGE.users.opening]
        assert list(found) == names and {check.state for check in found.values()} == {"works"}
        assert all(kind in said for kind in ("TLB", "TLS", "TSL")) and said.endswith("24 counted, 24 seen")
        assert found["data_maintenance"].said == "24 committed"

        engine.execute("DROP FUNCTION brokerage.data_maintenance_tweak")
        engine.execute("ALTER FUNCTION brokerage.trade_order_submit RENAME TO trade_order_submit_away")
        said, found = execute()
        assert {name for name, check in found.items() if check.state == "failed"} == {
            "trade_order", "data_maintenance",
        }  # fmt: skip
        assert found["data_maintenance"].exit_code == 3
        assert found["data_maintenance"].said.startswith("24 failed; other (42883): ")
        assert "data_maintenance_tweak" in found["data_maintenance"].said
        engine.execute("DELETE FROM brokerage.trade_request")
        alone = attempt("alone", lambda: selftest_bench._execute_alone(bench(engine, choice, tmp_path)))
        assert alone.said == "no limit order waits for its price"


def test_a_transaction_that_fails_alone_says_by_what(database, tmp_path, monkeypatch):
    """Whatever it is that a driver raises; and a session that was lost is of no concern to the next one."""
    opened: list[Any] = []
    open_session = database.session

    def session(call_timeout_s: float, application: str = "stallmark-user") -> Any:
        opened.append(open_session(call_timeout_s, application))
        return opened[-1]

    build(database, BANK, selftest_database.BANK.scale, selftest_database.BANK.seed, workers=1)
    [transfer] = BANK.users.deck
    execute = transfer.execute

    def first_kills(self: Any, session: Any, inputs: tuple) -> Any:
        if len(opened) == 1:
            database.query(f"SELECT pg_terminate_backend({session.server_pid})")
        elif inputs[0] % 2:
            raise ValueError("odd")
        return execute(self, session, inputs)

    monkeypatch.setattr(transfer, "execute", first_kills)
    monkeypatch.setattr(database, "session", session)
    on = bench(database, selftest_database.BANK, tmp_path)
    said = selftest_bench._execute_alone(on)
    assert said.endswith("counted, 13 seen and 1 of unknown outcome")
    assert on.alone and len(opened) == 2
    [check] = on.alone.checks()
    assert check.state == "failed" and " committed; " in check.said
    assert "unknown outcome (" in check.said and "ValueError in test_selftest_bench.py" in check.said
    assert "[(" in check.said or "[Inputs(" in check.said


def test_what_is_counted_is_what_was_committed():
    counted = {"pay": Counted(before=3, after=10)}
    assert selftest_bench._as_committed(counted, {"pay": 7}, {}) == "7 counted, 7 seen"
    with pytest.raises(Wrong, match="commits were lost") as wrong:
        selftest_bench._as_committed(counted, {"pay": 8}, {})
    assert wrong.value.exit_code == 1
    with pytest.raises(Off):
        selftest_bench._as_committed({"pay": Counted(before=3)}, {}, {})


def test_transactions_that_no_user_starts_need_not_have_come(tmp_path):
    workload = {"opening": {"name": "settle", "done": {"balance": 1_100}}}
    writer = RecordWriter(tmp_path / "run", a_manifest(workload=workload))
    ran = {"rolled_back": 0} | RAN
    writer.append("transactions", [{"transaction": "pay", "committed": 7, "failed": 0} | ran])
    failed = {
        "load": "market",
        "transaction": "sweep",
        "error_class": "other",
        "code": "42501",
        "message": "denied",
        "second": 1,
    }
    writer.append("errors", [failed | {"attempts": 1, "given_up": 1}])
    writer.close()
    found = {check.what: check for check in selftest_record.transactions(Record(tmp_path / "run"), MARKET)}
    assert {what: (check.state, check.said) for what, check in found.items()} == {
        "transaction pay": ("works", "7 committed, 0 failed"),
        "transaction look": ("failed", "0 committed, 0 failed"),  # though users had time enough
        "transaction echo": ("off", "none was due in so short a time"),
        "transaction sweep": ("failed", "0 committed, 0 failed; other (42501): denied"),
        "transaction settle": ("works", "1,100 balance"),
    }
    assert found["transaction sweep"].exit_code == 3


@pytest.mark.parametrize(("cards", "state"), [(1, "failed"), (2, "failed"), (50, "off")])
def test_a_transaction_whose_turn_had_not_come_has_not_failed(tmp_path, cards, state):
    """Seven were made: less than the decks of two users, each of which has the other transaction once."""
    known = [{"name": "pay", "cards": cards - 1}, {"name": "look", "cards": 1}, {"name": "echo", "cards": 40}]
    known[2]["source"] = "followers"
    steps = [{"name": "", "users": 2, "begin_s": 0, "measure_s": 1, "end_s": 5}]
    writer = RecordWriter(tmp_path / "run", a_manifest(workload={"transactions": known}, steps=steps))
    ran = {"rolled_back": 3} | RAN
    writer.append("transactions", [{"transaction": "pay", "committed": 4, "failed": 0} | ran])
    writer.close()
    found = {check.what: check for check in selftest_record.transactions(Record(tmp_path / "run"), MARKET)}
    look = found["transaction look"]
    assert (look.state, look.exit_code) == (state, 3 if state == "failed" else 0)
    assert ("not reached" in look.said) == (state == "off")


def test_collectors_say_what_they_gave(tmp_path):
    def about(title: str, **more: Any) -> dict[str, Any]:
        return {"title": title} | more

    collectors = {
        "waits": about("Waits", unavailable="GRANT VIEW SERVER STATE to this login."),
        "cpu": about("CPU", unavailable="GRANT VIEW SERVER STATE to this login."),
        "files": about("Files", outages=[{"since_s": 0.0, "until_s": 9.0, "reason": "no answer"}]),
        "users": about("Users", limited="Names are not shown."),
        "transactions": about("Transactions"),
    }
    writer = RecordWriter(tmp_path / "run", a_manifest(collectors=collectors))
    of_users = dict.fromkeys(TABLES["users"].names, 0) | {"second": 1, "load": "market"}
    writer.append("users", [of_users])
    writer.close()
    found = {check.what: (check.state, check.said) for check in selftest_record.collectors(Record(tmp_path / "run"))}
    assert found == {
        "collectors waits, cpu": ("off", "GRANT VIEW SERVER STATE to this login."),
        "collector files": ("failed", "Files: nothing measured from 0 s to 9 s, because no answer."),
        "collector users": ("works", "1 rows. Names are not shown."),
        "collector transactions": ("off", "no rows: nothing of its kind was seen"),
    }


@pytest.mark.parametrize("may", [False, True])
def test_the_memory_of_a_server_of_others_is_capped_only_when_told_so(database, tmp_path, monkeypatch, may):
    class Remote(EmbeddedEngine):
        is_local = False

    capped: list[int] = []
    monkeypatch.setattr(EmbeddedMemory, "cap", lambda self, size_bytes: capped.append(size_bytes) or size_bytes)
    engine = Remote(database.server, "remote")
    on = bench(engine, selftest_database.BANK, tmp_path, may_cap_memory=may)
    if may:
        assert "then as before" in selftest_bench._cap_memory(on)
    else:
        with pytest.raises(Off, match="plan cache on many versions; add --cap-memory"):
            selftest_bench._cap_memory(on)
    assert len(capped) == may


@pytest.mark.parametrize("name", ["max server memory (MB)", "shared_buffers"])
def test_what_a_cap_changes_is_compared_and_nothing_else(name):
    before = {name: "8192", "database log reuse wait": "NOTHING"}
    assert selftest_bench._given_back(before, before | {"database log reuse wait": "CHECKPOINT"}) == "then as before"
    with pytest.raises(Wrong, match=r"was 8192, and is 7372$"):
        selftest_bench._given_back(before, before | {name: "7372"})
    with pytest.raises(Wrong, match=r"and is not told$"):
        selftest_bench._given_back(before, {})


def test_a_server_that_does_not_tell_its_cap_is_no_failure():
    assert "does not tell" in selftest_bench._given_back({"database collation": "x"}, {})
