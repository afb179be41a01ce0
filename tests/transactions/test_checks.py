"""Each condition finds the wrong row put in for it."""

import dataclasses
import random

import pytest
from support.injected import Injected, check, condition_files

from stallmark.engines.postgres.embedded.engine import EmbeddedEngine
from stallmark.loaders.load import build
from stallmark.transactions import checks
from stallmark.transactions.bank import WORKLOAD, Transfer
from stallmark.transactions.workload import Condition

DATABASE = "checked"
SCALE = {"branches": 2}
HISTORY = "INSERT INTO bank.history (tid, bid, aid, delta, mtime) VALUES"

# What is done to a good database; the conditions that must find it; rows the first of these reports.
INJECTIONS = {
    "a teller's balance": (
        "UPDATE bank.tellers SET tbalance = tbalance + 1 WHERE tid = 12",
        {"branch_tellers", "teller_history"},
        1,
    ),
    "a teller without a balance": (
        "UPDATE bank.tellers SET tbalance = NULL WHERE bid = 1",
        {"branch_tellers", "teller_history"},
        1,
    ),
    "a branch's balance": (
        "UPDATE bank.branches SET bbalance = bbalance - 1 WHERE bid = 2",
        {"branch_tellers", "branch_history"},
        1,
    ),
    "an account's balance": (
        "UPDATE bank.accounts SET abalance = abalance + 1 WHERE aid IN (77, 150000)",
        {"account_history"},
        2,
    ),
    "a lost history row": (
        "DELETE FROM bank.history WHERE ctid = (SELECT min(ctid) FROM bank.history WHERE delta <> 0)",
        {"branch_history", "teller_history", "account_history"},
        1,
    ),
    "a doubled history row": (
        "INSERT INTO bank.history SELECT * FROM (SELECT * FROM bank.history WHERE delta <> 0 LIMIT 1) one",
        {"branch_history", "teller_history", "account_history"},
        1,
    ),
    "history of nobody": (f"{HISTORY} (99, 1, 1, 0, now())", {"teller_history", "history_teller"}, 1),
    "history of an account of nobody": (f"{HISTORY} (1, 1, 900000, 0, now())", {"account_history"}, 1),
    "history without a branch": (f"{HISTORY} (1, NULL, 1, 0, now())", {"branch_history", "history_teller"}, 1),
    "history at another branch": (f"{HISTORY} (1, 2, 1, 0, now())", {"history_teller"}, 1),
    "a missing account": ("DELETE FROM bank.accounts WHERE aid = 5", {"rows"}, 1),
    "a missing teller": ("DELETE FROM bank.tellers WHERE tid = 5", {"rows"}, 1),
    "an account of another branch": ("UPDATE bank.accounts SET bid = 2 WHERE aid = 5", {"belongs"}, 1),
    "an account out of range": ("UPDATE bank.accounts SET aid = 200001, bid = 3 WHERE aid = 5", {"belongs"}, 1),
    "a teller of another branch": ("UPDATE bank.tellers SET bid = NULL WHERE tid = 5", {"belongs"}, 1),
    "a missing branch": ("DELETE FROM bank.branches WHERE bid = 2", {"branch_tellers", "rows"}, 1),
}
TABLES = ("accounts", "branches", "tellers")
FILES = condition_files(WORKLOAD)


@pytest.fixture(scope="module")
def used(embedded_server) -> EmbeddedEngine:
    """A bank on which some transfers have run."""
    bank = EmbeddedEngine(embedded_server, DATABASE)
    build(bank, WORKLOAD, SCALE, 1, workers=1)
    transfer, rng = Transfer(range(SCALE["branches"])), random.Random(1)
    with bank.cursor() as cursor:
        for _ in range(200):
            cursor.execute("SELECT bank.transfer(%s, %s, %s, %s)", transfer.inputs(rng))
    return bank


def test_every_condition_has_an_injection() -> None:
    assert set().union(*(found for _, found, _ in INJECTIONS.values())) == set(FILES.values())


def test_a_good_database_holds(used: EmbeddedEngine) -> None:
    findings = checks.run(used, WORKLOAD, SCALE, driven=True)
    assert [f.holds for f in findings] == [True] * len(WORKLOAD.conditions), findings
    assert all(f.offending == 0 and f.detail == "" for f in findings)


@pytest.mark.parametrize("wrong", INJECTIONS)
def test_a_wrong_row_is_found(used: EmbeddedEngine, wrong: str) -> None:
    statement, expected, offending = INJECTIONS[wrong]
    findings = check(Injected(used, DATABASE, statement), WORKLOAD, SCALE, driven=True)
    for file in expected:
        assert not findings[file].holds
        assert findings[file].offending >= offending
        assert findings[file].detail
    # Nothing else is accused of a change of a single balance.
    if "balance" in wrong:
        assert {file for file, found in findings.items() if not found.holds} == expected


def test_another_scale_is_found(used: EmbeddedEngine) -> None:
    counts = check(used, WORKLOAD, {"branches": 3}, "rows", driven=True)["rows"]
    assert counts.offending == 3
    assert "accounts; expected 300000; present 200000" in counts.detail


def test_the_first_offenders_are_shown_and_the_rest_counted(used: EmbeddedEngine) -> None:
    wrong = Injected(used, DATABASE, "UPDATE bank.accounts SET bid = 2 WHERE aid <= 10")
    finding = check(wrong, WORKLOAD, SCALE, "belongs", driven=True)["belongs"]
    assert finding.offending == 10
    assert finding.detail.count(" | ") == 2
    assert finding.detail.endswith(" … and 7 more")


def test_quick_leaves_out_scans(used: EmbeddedEngine) -> None:
    names = [f.name for f in checks.run(used, WORKLOAD, SCALE, driven=True, scans=False)]
    assert names == [c.name for c in WORKLOAD.conditions if c.cost == "cheap"]
    assert 0 < len(names) < len(WORKLOAD.conditions)


def test_what_holds_for_a_fresh_database_is_left_out_of_a_used_one(used: EmbeddedEngine) -> None:
    conditions = (
        Condition("as loaded", "SELECT count(*) AS transfers FROM bank.history", statistical=True, fresh_only=True),
        Condition("always", "SELECT 1 AS one WHERE 1 = 0", "cheap"),
    )
    workload = dataclasses.replace(WORKLOAD, conditions=conditions)
    left_out, always = checks.run(used, workload, SCALE, driven=True)
    assert (left_out.name, left_out.holds, left_out.statistical) == ("as loaded", None, True)
    assert (left_out.cost, left_out.offending, left_out.seconds) == ("scan", 0, 0)
    assert (always.name, always.holds, always.statistical, always.cost) == ("always", True, False, "cheap")
    assert [f.holds for f in checks.run(used, workload, SCALE, driven=False)] == [False, True]


def test_a_condition_that_the_server_refuses_is_named_and_the_others_go_on(used: EmbeddedEngine) -> None:
    """As Babelfish does: CASE types char(1) and text could not be matched."""
    conditions = (
        Condition("refused", "SELECT no_such_function(1) AS one WHERE 1 = 1", "cheap"),
        Condition("always", "SELECT 1 AS one WHERE 1 = 0", "cheap"),
    )
    refused, always = checks.run(used, dataclasses.replace(WORKLOAD, conditions=conditions), SCALE, driven=True)
    assert refused.holds is None and "no_such_function" in refused.refused and not refused.detail
    assert always.holds and not always.refused


def test_the_numbers_of_a_workload_stand_in_its_conditions(used: EmbeddedEngine) -> None:
    condition = Condition("", "SELECT :shares AS shares WHERE 1 = 1")
    workload = dataclasses.replace(
        WORKLOAD, conditions=(condition,), numbers=lambda scale: {"shares": round(scale["days"] * 20)}
    )
    [finding] = checks.run(used, workload, {"days": 0.35}, driven=True)
    assert finding.detail == "shares 7"


MISSING = {
    "a primary key": (
        "ALTER TABLE bank.tellers DROP CONSTRAINT tellers_pkey CASCADE",
        "bank.tellers: tellers_pkey is missing",
    ),
    "a check never made": (
        "ALTER TABLE bank.branches ADD CONSTRAINT never CHECK (bid > 0) NOT VALID",
        "bank.branches: never is disabled or was never checked",
    ),
    "an index that is not valid": (
        "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'bank.accounts_pkey'::regclass",
        "bank.accounts: accounts_pkey is disabled or was never checked",
    ),
}


@pytest.mark.parametrize("wrong", MISSING)
def test_a_missing_part_of_the_schema_is_found(used: EmbeddedEngine, wrong: str) -> None:
    statement, detail = MISSING[wrong]
    finding = checks.keys(Injected(used, DATABASE, statement), WORKLOAD)
    assert (finding.holds, finding.offending, finding.detail) == (False, 1, detail)
    assert (finding.cost, finding.statistical) == ("cheap", False)
    assert checks.keys(used, WORKLOAD).holds


def test_all_missing_keys_are_counted_and_the_first_named(used: EmbeddedEngine) -> None:
    dropped = "".join(f"ALTER TABLE bank.{t} DROP CONSTRAINT {t}_pkey CASCADE;" for t in TABLES)
    finding = checks.keys(Injected(used, DATABASE, dropped), WORKLOAD)
    assert finding.offending == 3 and finding.detail.count("is missing") == 3


def test_numbers_in_a_condition() -> None:
    numbers = {"branches": 7, "n": 2}
    assert checks.with_numbers("a = :branches + x::int, :n", numbers) == "a = 7 + x::int, 2"
    with pytest.raises(KeyError):
        checks.with_numbers("a = :customers", numbers)
