"""The checks of the campaign of faults: each fails on a state that it is there to find, and on no sound one."""

from collections import Counter
from pathlib import Path

import pytest
from benchmarks.faults import checks
from benchmarks.faults.checks import TRUTHS, Counts
from support.manifests import a_manifest

from stallmark.record.manifest.workload import Counted, Workload
from stallmark.record.reader import Record
from stallmark.record.writer import RecordWriter
from stallmark.transactions.checks import ConditionResult

TABLES = {"bank.history": (10, "123"), "bank.branches": (1, "7")}


def counts(**more) -> Counts:
    return Counts(Counter(transfer=100), before={"transfer": 1000}, **{"most": {"transfer": 20}, "seconds": 5, **more})


def record(folder: Path, status: str = "complete", because: str | None = None) -> Record:
    writer = RecordWriter(folder, a_manifest(workload=Workload(name="bank", counted={"transfer": Counted(before=5)})))
    row = dict.fromkeys(("rolled_back", "failed", "retries", "latency_us", "service_us"), 0)
    row |= {"load": "bank", "transaction": "transfer"}
    row |= {"latency_gaps": [], "latency_counts": [], "service_gaps": [], "service_counts": []}
    writer.append("transactions", [row | {"second": s, "committed": n} for s, n in ((0, 3), (1, 8), (1, 1))])
    lost = {"load": "bank", "transaction": "transfer", "error_class": "unknown outcome", "code": "", "message": ""}
    writer.append("errors", [lost | {"second": 1, "attempts": 2, "given_up": 2}])
    if status != "running":
        writer.close(because)
    return Record(folder)


def test_counts_are_read_from_a_record(tmp_path):
    found = Counts.of(record(tmp_path / "run"))
    assert (found.seen, found.doubtful) == ({"transfer": 12}, {"transfer": 2})
    assert (found.most, found.seconds, found.before) == ({"transfer": 9}, 2, {"transfer": 5})


@pytest.mark.parametrize(
    ("after", "more", "lost_s", "wrong"),
    [
        (1100, {}, 0, 0),
        (1099, {}, 0, 1),  # lost
        (1101, {}, 0, 1),  # doubled, or not recorded
        (1101, {"doubtful": Counter(transfer=1)}, 0, 0),
        (1102, {"doubtful": Counter(transfer=1)}, 0, 1),
        (1101, {"unfinished": 1}, 0, 0),
        (1165, {}, 2, 0),  # of an executor that was killed: 2 s of 20, and four deviations
        (1166, {}, 2, 1),
        (1999, {"most": {}, "seconds": 1}, 2, 0),  # too few seconds for a rate
        (1101, {"most": {}, "seconds": 1}, 0, 1),
        (1107, {"most": {}}, 2, 0),  # none yet, of a rare one
        (1108, {"most": {}}, 2, 1),
        (1099, {}, 2, 1),  # seen, and not there: no excuse
    ],
)
def test_commits_are_held_against_the_database(after, more, lost_s, wrong):
    assert len(list(checks.counted(counts(**more), {"transfer": after}, lost_s=lost_s))) == wrong


@pytest.mark.parametrize(
    "now",
    [{"bank.history": (10, "123")}, TABLES | {"bank.history": (9, "123")}, TABLES | {"bank.history": (10, "124")}],
    ids=["no table", "a row too few", "another row"],
)
def test_tables_are_held_against_those_as_built(now):
    assert not list(checks.tables(TABLES, TABLES))
    assert len(list(checks.tables(now, TABLES))) == 1


def test_conditions_that_do_not_hold_or_cannot_be_asked():
    def of(holds: bool | None, refused: str = "") -> ConditionResult:
        return ConditionResult("c", False, "cheap", holds, 0, 0.0, "", refused=refused)

    assert not list(checks.conditions([of(True), of(None)]))
    assert len(list(checks.conditions([of(True), of(False), of(None, "no right")]))) == 2


@pytest.mark.parametrize(
    ("code", "text", "wrong"),
    [
        (0, "", 0),
        (3, "Error: no such file", 0),
        (-9, "", 0),
        (3, "", 1),
        (70, "Error: a bug", 1),
        (1, "Traceback (most recent call last):\nKeyboardInterrupt", 1),
    ],
)
def test_the_words_of_a_command(code, text, wrong):
    assert len(list(checks.said(code, text))) == wrong


def test_the_end_of_a_run_is_told_truly(tmp_path):
    whole = record(tmp_path / "whole")
    cut = record(tmp_path / "cut", "running")
    stopped = record(tmp_path / "stopped", because="stopped by Ctrl-C")
    executor = record(tmp_path / "executor", because="executor process 7 was killed, and its users with it")
    for victim, how, code, found in (
        ("command", "KILL", -9, cut),
        ("command", "KILL", -9, None),  # before there was a record
        ("command", "INT", 130, stopped),
        ("command", "INT", 130, whole),  # while its report was made
        ("executor", "KILL", 4, executor),
        ("executor", "KILL", 0, whole),
        ("executor", "STOP", 0, whole),
    ):
        assert not list(checks.reason(victim, how, code, "", found)), (victim, how, code)
    for victim, how, code, found in (
        ("executor", "KILL", 4, stopped),  # the reason of something else
        ("executor", "KILL", 4, whole),  # ended early, and complete
        ("executor", "KILL", 4, cut),  # ended by itself, and still running
        ("executor", "KILL", 0, executor),  # ended well, and incomplete
        ("executor", "KILL", 1, executor),  # a condition that does not hold is none of this
        ("executor", "STOP", 4, executor),  # it went on
        ("command", "INT", 0, cut),
    ):
        assert list(checks.reason(victim, how, code, "", found)), (victim, how, code)


def test_without_a_record_the_command_says_it():
    assert not list(checks.reason("loader", "KILL", 3, "Error: a loader process was\nkilled", None))
    assert list(checks.reason("loader", "KILL", 3, "Error: its message stands above", None))
    assert {victim for victim, how in TRUTHS if how == "KILL"} >= {"command", "executor", "conductor", "loader"}


def test_all_that_is_left_is_named():
    assert not list(checks.left())
    found = list(checks.left(processes=["7 (postgres)"], shared=["stallmark-x.devices"], temporary=["stallmark-0-1"]))
    assert len(found) == 3 and "7 (postgres)" in found[0] and "stallmark-x.devices" in found[1]


def test_drafts_and_logs_of_crashes_are_found(tmp_path):
    for name in ("data.new/file", "data.old/file", "logs/error-20261124-053000-1.log", "fine.log", "report.html"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert list(checks.drafts(tmp_path)) == ["data.new", "data.old", "logs/error-20261124-053000-1.log"]


def test_json_may_stand_behind_other_words():
    assert checks.in_json('words\n{"runs": []}') == ({"runs": []}, [])
    assert len(checks.in_json("Error: damaged")[1]) == 1


def test_settings_that_were_not_given_back():
    before = {"max server memory (MB)": 6000, "show advanced options": 0}
    assert not list(checks.settings(before, before))
    assert len(list(checks.settings(before | {"show advanced options": 1}, before))) == 1


def test_a_password_is_found(tmp_path):
    (tmp_path / "manifest.json").write_text("postgresql://boss:hunter2@db")
    assert len(list(checks.secrets(tmp_path, "hunter2"))) == 1
    assert not list(checks.secrets(tmp_path, "hunter3"))


@pytest.mark.parametrize(
    ("changed", "wrong"),
    [
        ({}, 0),
        ({"tps": 20.0}, 1),
        ({"tps": 20.0, "invalid": [{"kind": "clock_jumped"}]}, 0),  # marked
        ({"tps": None}, 0),  # unknown
        ({"measured_s": 3610}, 1),
        ({"data_io": {"seconds": 3600.0}}, 1),
    ],
)
def test_figures_are_right_or_marked(changed, wrong):
    step = {"tps": 10.0, "measured_s": 10, "invalid": [], "data_io": {"seconds": 10.1}} | changed
    assert len(list(checks.figures(step, counts(), 10))) == wrong
