"""The checks that the records of a selftest allow, and the memory that it may lower on a server of others."""

from typing import Any

import pytest
from support.manifests import a_manifest
from support.market_workload import WORKLOAD as MARKET

from stallmark.engines.postgres.embedded_engine import EmbeddedEngine
from stallmark.lab import selftest_checks
from stallmark.lab.selftest_checks import Trial
from stallmark.record.histogram import Histogram, columns
from stallmark.record.reader import Record
from stallmark.record.schema import TABLES
from stallmark.record.writer import RecordWriter

TOOK = Histogram(b"", b"")
RAN = {"second": 1, "load": "market", "retries": 0, "latency_us": 0, "service_us": 0}
RAN |= columns("latency", TOOK) | columns("service", TOOK)


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
    found = {check.subject: check for check in selftest_checks.transactions(Record(tmp_path / "run"), MARKET)}
    assert {what: (check.state, check.result) for what, check in found.items()} == {
        "transaction pay": ("works", "7 committed, 0 failed"),
        "transaction look": ("failed", "0 committed, 0 failed"),  # though users had time enough
        "transaction echo": ("off", "none was due in so short a time"),
        "transaction sweep": ("failed", "0 committed, 0 failed; other (42501): denied"),
        "transaction settle": ("works", "1,100 balance"),
    }
    assert found["transaction sweep"].exit_code == 3


@pytest.mark.parametrize(
    ("committed", "given_up", "state"),
    [
        (7, {"serialization": 1}, "works"),
        (40, {"deadlock": 3, "lock timeout": 1}, "works"),
        (40, {"deadlock": 3, "serialization": 2}, "failed"),
        (0, {"serialization": 1}, "failed"),
        (7, {"other": 1}, "failed"),
        (40, {"deadlock": 1, "timeout": 1}, "failed"),
    ],
)
def test_a_transaction_given_up_because_of_others_has_not_failed_unless_many_are(tmp_path, committed, given_up, state):
    writer = RecordWriter(tmp_path / "run", a_manifest())
    counts = {"committed": committed, "failed": sum(given_up.values()), "rolled_back": 0}
    writer.append("transactions", [{"transaction": "pay"} | counts | RAN])
    error = {"load": "market", "transaction": "pay", "code": "40001", "message": "lost", "second": 1, "attempts": 9}
    writer.append("errors", [error | {"error_class": kind, "given_up": count} for kind, count in given_up.items()])
    writer.close()
    check = next(selftest_checks.transactions(Record(tmp_path / "run"), MARKET))
    assert (check.subject, check.state, check.exit_code) == ("transaction pay", state, 3 if state == "failed" else 0)
    assert check.result.startswith(f"{committed} committed, {counts['failed']} failed")
    assert all(f"{kind} (40001): lost" in check.result for kind in given_up)


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
    found = {check.subject: check for check in selftest_checks.transactions(Record(tmp_path / "run"), MARKET)}
    look = found["transaction look"]
    assert (look.state, look.exit_code) == (state, 3 if state == "failed" else 0)
    assert ("not reached" in look.result) == (state == "off")


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
    found = {
        check.subject: (check.state, check.result) for check in selftest_checks.collectors(Record(tmp_path / "run"))
    }
    assert found == {
        "collectors waits, cpu": ("off", "GRANT VIEW SERVER STATE to this login."),
        "collector files": ("failed", "Files: nothing measured from 0 s to 9 s, because no answer."),
        "collector users": ("works", "1 rows. Names are not shown."),
        "collector transactions": ("off", "no rows: nothing of its kind was seen"),
    }


@pytest.mark.parametrize("may", [False, True])
def test_the_memory_of_a_server_of_others_is_lowered_only_when_told_so(database, may):
    class Remote(EmbeddedEngine):
        is_local = False

    trial = Trial(Remote(database.server, "remote"), selftest_checks.BANK, 1, True, may_cap_memory=may)
    why = trial.keeps_its_memory()
    assert why is None if may else "plan cache on many versions; add --cap-memory" in why
    assert Trial(database, selftest_checks.BANK, 1, True, may_cap_memory=False).keeps_its_memory() is None


def with_conditions(path: Any, *conditions: dict[str, Any]) -> Record:
    RecordWriter(path, a_manifest(conditions=list(conditions))).close()
    return Record(path)


def test_data_that_are_wrong_after_any_run_are_the_gravest(tmp_path):
    sums, keys = {"name": "sums agree", "holds": True}, {"name": "keys are there", "holds": True}
    records = [with_conditions(tmp_path / "1", sums, keys), with_conditions(tmp_path / "2", sums, keys)]
    [found] = selftest_checks.conditions(records)
    assert (found.state, found.result, found.exit_code) == ("works", "all 2 conditions hold", 0)
    records.append(with_conditions(tmp_path / "3", sums | {"holds": False, "offending": 3, "detail": "aid 1"}, keys))
    [found] = selftest_checks.conditions(records)
    assert (found.state, found.result, found.exit_code) == ("failed", "sums agree: 3 rows (aid 1)", 1)
    records.append(with_conditions(tmp_path / "4", sums | {"holds": None, "refused": "denied"}))
    [found] = selftest_checks.conditions(records)
    assert (found.state, found.exit_code) == ("failed", 3) and "sums agree (denied)" in found.result
    [found] = selftest_checks.conditions([with_conditions(tmp_path / "5")])
    assert found.state == "off"
