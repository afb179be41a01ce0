"""A scenario's mix as a deck: what is asked for, as nearly as a deck that is soon dealt allows."""

import dataclasses
import random
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from fractions import Fraction
from math import sqrt
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.injected import Injected, check, condition_keys

from stallmark.engines import sql_file
from stallmark.engines.postgres.embedded_engine import EmbeddedEngine
from stallmark.errors import StallmarkError
from stallmark.loaders.load import build
from stallmark.schema.brokerage import price_second
from stallmark.transactions import checks, find_workload
from stallmark.transactions import workload as module
from stallmark.transactions.bank import WORKLOAD, Transfer
from stallmark.transactions.workload import (
    FEWEST,
    MOST_CARDS,
    Background,
    Condition,
    Outcome,
    Transaction,
    UserLoad,
    Workload,
    apportioned,
    background_per_user,
    deck_of,
)


def kind(name: str, reads: bool) -> type[Transaction]:
    class Kind(Transaction):
        frames: ClassVar = {}
        reads_only = reads

        def inputs(self, rng: random.Random) -> tuple:
            return ()

        def execute(self, session: Any, inputs: tuple) -> Outcome:
            return Outcome.COMMITTED

    Kind.name = name
    return Kind


BUY, FIX, LOOK, LIST, SENT = (
    kind(name, reads)
    for name, reads in (("buy", False), ("fix", False), ("look", True), ("list", True), ("sent", False))
)
DECK = {BUY: 30, FIX: 10, LOOK: 45, LIST: 15}
SHOP = Workload("shop", 1, "shop", "", "", users=UserLoad(DECK), background=Background({SENT: (BUY, 1.0)}))
NAMES = [each.name for each in DECK]
WEIGHTS = st.one_of(st.integers(1, 10**6), st.floats(1e-6, 1e6))


def test_without_a_mix_it_is_the_workloads_own():
    assert deck_of(SHOP, None) == {"buy": 30, "fix": 10, "look": 45, "list": 15}


@pytest.mark.parametrize(
    ("mix", "deck"),
    [
        ({"buy": 10, "look": 90}, {"buy": 1, "fix": 0, "look": 9, "list": 0}),
        ({"look": 0.5}, {"buy": 0, "fix": 0, "look": 1, "list": 0}),
        ({"buy": 10.1, "look": 19}, {"buy": 101, "fix": 0, "look": 190, "list": 0}),
        ({"buy": 1e-9, "look": 1}, {"buy": 1, "fix": 0, "look": 999, "list": 0}),
        ({"read_share": 1}, {"buy": 0, "fix": 0, "look": 3, "list": 1}),
        ({"read_share": 0}, {"buy": 3, "fix": 1, "look": 0, "list": 0}),
        ({"read_share": 0.5}, {"buy": 3, "fix": 1, "look": 3, "list": 1}),
        ({"read_share": 0.9}, {"buy": 3, "fix": 1, "look": 27, "list": 9}),
        ({"read_share": 0.9999}, {"buy": 1, "fix": 1, "look": 749, "list": 249}),
    ],
)
def test_the_smallest_deck_that_has_the_mix(mix, deck):
    assert {name: cards for name, cards in deck_of(SHOP, mix).items()} == deck


@given(mix=st.dictionaries(st.sampled_from(NAMES), WEIGHTS, min_size=1))
def test_weights_become_cards(mix):
    deck = deck_of(SHOP, mix)
    total = sum(deck.values())
    assert list(deck) == NAMES and total <= MOST_CARDS
    assert {name for name, cards in deck.items() if cards} == set(mix)
    exact = {name: Fraction(str(weight)) for name, weight in mix.items()}
    quotas = {name: weight / sum(exact.values()) * total for name, weight in exact.items()}
    raised = sum(1 for quota in quotas.values() if quota < 1)  # to the one card that each has
    for name, quota in quotas.items():
        assert abs(deck[name] - quota) <= 1 + raised


@given(share=st.floats(0, 1))
def test_a_read_share_keeps_the_proportions_of_what_reads_and_of_what_writes(share):
    deck = deck_of(SHOP, {"read_share": share})
    total, reads = sum(deck.values()), deck["look"] + deck["list"]
    assert total <= MOST_CARDS
    assert abs(reads / total - share) <= 2 / MOST_CARDS  # two types write, and two read
    if 0 < share < 1:
        assert all(deck.values())
    for many, few in (("look", "list"), ("buy", "fix")):
        assert abs(deck[many] - 3 * deck[few]) <= 3


PARTS = st.lists(st.tuples(st.integers(1, 10**9), st.integers(0, 30)), min_size=1, max_size=12)


@given(parts=PARTS, more=st.integers(0, 1_000))
def test_all_cards_are_apportioned_and_everybody_has_the_least(parts, more):
    weights = {number: Fraction(weight) for number, (weight, _) in enumerate(parts)}
    least = {number: few for number, (_, few) in enumerate(parts)}
    cards = sum(least.values()) + more
    dealt = apportioned(weights, cards, least)
    assert sum(dealt.values()) == cards
    assert all(dealt[number] >= few for number, few in least.items())
    # Who has more than the least has no more than one card beyond the proportion.
    total = sum(weights.values())
    assert all(dealt[n] <= weights[n] / total * cards + 1 for n in weights if dealt[n] > least[n])


def test_nine_of_ten_only_read_the_brokerage():
    brokerage = find_workload("brokerage")
    deck = deck_of(brokerage, {"read_share": 0.9})
    reads = sum(deck[each.name] for each in brokerage.users.deck if each.reads_only)
    assert reads / sum(deck.values()) == 0.9
    assert deck["trade_order"] / deck["trade_update"] == pytest.approx(101 / 20, rel=0.04)


@pytest.mark.parametrize(
    ("mix", "times"), [(None, 1), ({"buy": 1}, sqrt(1 / 0.3)), ({"buy": 3, "look": 7}, 1), ({"look": 1}, FEWEST)]
)
def test_more_sessions_where_more_follows(mix, times):
    shop = replace(SHOP, background=replace(SHOP.background, sessions_per_user=2.0))
    assert background_per_user(shop, deck_of(shop, mix)) == pytest.approx(2.0 * times)


def test_the_bank_has_no_background_sessions():
    bank = find_workload("bank")
    assert background_per_user(bank, deck_of(bank, None)) == 0


@pytest.mark.parametrize(
    ("mix", "sentence"),
    [
        ({"by": 1}, "by is no transaction of shop: there are buy, fix, look, list, or read_share alone"),
        ({"sent": 1}, "sent is not started by users: there are buy, fix, look, list, or read_share alone"),
        ({"buy": 0}, "buy has the weight 0: give it more than 0, or leave it out to have none started"),
        ({"look": 1, "buy": -2.5}, "buy has the weight -2.5: give it more than 0, or leave it out"),
        ({"read_share": 0.5, "buy": 1}, "read_share excludes weights: remove one or the other"),
        ({"read_share": 1.5}, r"read_share is 0 to 1 \(0.9: nine of ten only read\), not 1.5"),
        ({"read_share": -0.1}, "not -0.1"),
    ],
)
def test_what_cannot_be(mix, sentence):
    with pytest.raises(StallmarkError, match=sentence):
        deck_of(SHOP, mix)


def test_where_nothing_reads_or_nothing_writes():
    with pytest.raises(StallmarkError, match=r"read_share cannot be 0.9: no transaction of bank reads only"):
        deck_of(find_workload("bank"), {"read_share": 0.9})
    assert deck_of(find_workload("bank"), {"read_share": 0}) == {"transfer": 1}
    looks = Workload("looks", 1, "looks", "", "", users=UserLoad({LOOK: 1}))
    with pytest.raises(StallmarkError, match=r"read_share cannot be 0.9: no transaction of looks writes"):
        deck_of(looks, {"read_share": 0.9})


@pytest.mark.parametrize("mix", [None, {"q1": 1}, {"read_share": 1}])
def test_users_start_nothing_in_the_warehouse(mix):
    with pytest.raises(
        StallmarkError, match=r"users start no transactions of warehouse, .* write queries instead of users"
    ):
        deck_of(find_workload("warehouse"), mix)


# Time of a workload goes on, whatever is done to the clock on the wall


def test_it_begins_with_the_wall_in_utc(monkeypatch: pytest.MonkeyPatch) -> None:
    class Wall(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:
            return datetime(2026, 1, 2, 3, tzinfo=UTC).astimezone(tz or timezone(timedelta(hours=5)))

    monkeypatch.setattr(module, "datetime", Wall)
    monkeypatch.setattr(module.time, "monotonic_ns", lambda: 7)
    assert module.RunClock().now() == datetime(2026, 1, 2, 3)


def test_a_wall_clock_set_back_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monotonic_ns = 5_000_000_000
    monkeypatch.setattr(module.time, "monotonic_ns", lambda: monotonic_ns)
    run = module.RunClock()
    began = run.now()
    monkeypatch.setattr(module, "datetime", None)  # the wall is not looked at again
    monotonic_ns += 1_500_000_999
    assert run.now() == began + timedelta(microseconds=1_500_000)


def test_texts_have_milliseconds() -> None:
    assert module.as_text(datetime(2026, 1, 2, 3, 4, 5)) == "2026-01-02T03:04:05.000"
    assert module.as_text(datetime(2026, 1, 2, 3, 4, 5, 6_999)) == "2026-01-02T03:04:05.006"


@given(st.datetimes(datetime(2005, 1, 3), datetime(2100, 1, 1)), st.integers(0, 10**9), st.sampled_from([1, 1_000]))
def test_texts_and_seconds_are_in_the_order_of_the_moments(moment: datetime, later: int, unit: int) -> None:
    after = moment + timedelta(microseconds=later * unit)
    assert module.as_text(moment) <= module.as_text(after)
    assert price_second(after) - price_second(moment) == pytest.approx(later * unit / 1e6, abs=1e-5)


def test_prices_begin_with_the_first_day() -> None:
    assert price_second(datetime(2005, 1, 3)) == 0
    assert price_second(datetime(2005, 1, 4, 0, 0, 1, 500_000)) == 86_401.5


# The SQL files of all workloads: each transaction has twins, which neither begin nor commit. PostgreSQL's are
# deployed and called by other tests, T-SQL is parsed by engines/mssql/test_every_text.py


DIALECTS = ("postgresql", "mssql")
WORKLOADS = [find_workload(name) for name in ("bank", "brokerage", "mail")]
ALL = [(workload, kind) for workload in WORKLOADS for kind in workload.transactions]
NAMED = {"argvalues": ALL, "ids": [f"{workload.name} {kind.name}" for workload, kind in ALL]}
IN_BRACKETS = r"\(((?:[^()]|\([^()]*\))*)\)"


def code(workload: Workload, kind: type[Transaction], dialect: str) -> str:
    """Without comments."""
    text = sql_file.read(workload.package, f"{kind.name}.{dialect}")
    return re.sub(r"--.*|/\*(?s:.*?)\*/", "", text)


def test_calls_of_frames_have_their_parameters():
    for workload, kind in ALL:
        for frame, parameters in kind.frames.items():
            assert workload.call(kind, frame, "mssql").count("?") == parameters


@pytest.mark.parametrize(("workload", "kind"), **NAMED)
def test_twins_define_the_frames_with_their_parameters(workload, kind):
    schema = workload.schema
    postgresql, mssql = (code(workload, kind, dialect) for dialect in DIALECTS)
    functions = {
        name: len(re.findall(r"(?:^|,)\s*(?!OUT\b)\w+ ", re.sub(IN_BRACKETS, "", given)))
        for name, given in re.findall(rf"CREATE OR REPLACE FUNCTION {schema}\.(\w+)\s*{IN_BRACKETS}", postgresql)
    }
    procedures = {
        name: len(re.findall(r"@\w+", given))
        for name, given in re.findall(rf"(?s)CREATE PROCEDURE {schema}\.(\w+)(.*?)\bAS\b", mssql)
    }
    assert functions == procedures == dict(kind.frames)
    assert set(re.findall(rf"DROP PROCEDURE IF EXISTS {schema}\.(\w+)", mssql)) == set(procedures)


@pytest.mark.parametrize(("workload", "kind"), **NAMED)
def test_procedures_neither_begin_nor_commit(workload, kind):
    for dialect in DIALECTS:
        found = re.findall(
            r"\b(COMMIT|ROLLBACK|BEGIN TRAN\w*|SET TRANSACTION)\b", code(workload, kind, dialect).upper()
        )
        assert not found


def test_the_banks_twins_do_the_same_in_the_same_order():
    workload = find_workload("bank")
    for dialect in DIALECTS:
        text = code(workload, *workload.users.deck, dialect)
        assert re.findall(r"(UPDATE bank\.\w+|FROM bank\.\w+|INSERT INTO bank\.\w+)", text) == [
            "UPDATE bank.accounts",
            "FROM bank.accounts",
            "UPDATE bank.tellers",
            "UPDATE bank.branches",
            "INSERT INTO bank.history",
        ]


# Each condition finds the wrong row put in for it


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
FILES = condition_keys(WORKLOAD)


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
