"""Work in the database once before a run, and the state that the run is held against."""

from dataclasses import replace

import pytest
from support.market_workload import WORKLOAD as MARKET

from stallmark.engines.postgres.embedded_engine import EmbeddedEngine
from stallmark.errors import StallmarkError
from stallmark.experiment.any_run import commit_counts
from stallmark.experiment.work import _transactions
from stallmark.record.manifest.workload import Follows
from stallmark.scenarios.model import WorkloadChoice
from stallmark.transactions import find_workload, open_workload
from stallmark.transactions.workload import deck_of

SCALE = {"branches": 1}


def test_a_run_begins_with_what_opens_it_and_then_is_counted(bank: EmbeddedEngine):
    [(before,)] = bank.query("SELECT COUNT(*) FROM bank.history")
    [(balance,)] = bank.query("SELECT abalance FROM bank.accounts WHERE aid = 1")
    opened = open_workload(bank, MARKET, SCALE, 1)
    assert opened and (opened.name, opened.done) == ("settle", {"balance": balance + 100})
    assert commit_counts(bank, MARKET) == {"echo": before + 1}


def test_nothing_opens_the_bank(bank: EmbeddedEngine):
    assert open_workload(bank, find_workload("bank"), SCALE, 1) is None


def test_what_cannot_open_is_said(bank: EmbeddedEngine):
    broken = replace(MARKET, package="stallmark.transactions.brokerage")  # where there is no such call
    elsewhere = replace(broken, schema="brokerage", tables="stallmark.schema.brokerage.tables")
    with pytest.raises(
        StallmarkError, match=r"settle, which a run of support.market_workload begins with, failed: .*brokerage"
    ):
        open_workload(bank, elsewhere, SCALE, 1)


def test_a_number_that_is_not_there_yet_is_none_at_all(bank: EmbeddedEngine):
    asked = dict.fromkeys(MARKET.users.counted, "SELECT SUM(delta) FROM bank.history WHERE aid < 0")
    nothing = replace(MARKET, users=replace(MARKET.users, counted=asked))
    assert commit_counts(bank, nothing) == {"echo": 0}


def test_the_record_tells_what_may_happen_and_how_often():
    deck = deck_of(MARKET, {"pay": 3, "look": 1})
    pay, look, echo, sweep = _transactions(MARKET, deck)
    assert [one.name for one in (pay, look, echo, sweep)] == ["pay", "look", "echo", "sweep"]
    assert (pay.cards, pay.source, pay.reads_only) == (3, "users", False)
    assert (look.cards, look.source, look.reads_only) == (1, "users", True)
    assert (echo.cards, echo.source, echo.limit_s) == (3, "followers", 1.0)
    assert echo.follows == Follows(transaction="pay", each=1.0)
    assert (sweep.cards, sweep.source, sweep.every_s) == (0, "timer", 0.2)


def test_of_the_brokerage_as_well():
    brokerage = find_workload("brokerage")
    told = {one.name: one for one in _transactions(brokerage, deck_of(brokerage, None))}
    assert told.keys() == {kind.name for kind in brokerage.transactions} - {"trade_cleanup"}
    assert (told["trade_result"].cards, told["market_feed"].cards) == (100, 10)
    assert told["data_maintenance"].source == "timer"


def test_a_mix_and_a_locality_are_in_it_when_they_were_asked_for():
    choice = WorkloadChoice(name="brokerage", mix={"read_share": 0.9}, locality=0.5)
    assert sum(choice.deck().values()) <= 1_000
    assert choice.model_dump(mode="json")["mix"] == {"read_share": 0.9}
