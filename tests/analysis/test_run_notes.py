"""Findings about a run beside its figures, from manifest and tables."""

from pathlib import Path

import pytest
from support.manifests import a_manifest

from stallmark.analysis.compare.settings import OF_A_VARIANT
from stallmark.analysis.finding import EndKind, early_ends
from stallmark.analysis.run import RunKind, run_notes
from stallmark.record.reader import Record
from stallmark.record.schema import MAINTENANCE
from stallmark.record.writer import RecordWriter

BENT = {
    RunKind.CLOCKS_APART: {"load_machines": [{"number": 1, "executors": 1, "clock_within_ms": 80.0}]},
    RunKind.ARRIVALS_WAITED: {"left_waiting": {"arrivals": 7}},
    RunKind.QUERIES_LEFT: {
        "loads": [{"name": "reports", "kind": "streams", "counts": [], "arrivals": "poisson", "given_up": 2}]
    },
    RunKind.DEFERRED_WAITED: {"left_waiting": {"deferred": 3}},
    RunKind.UNFINISHED: {"unheard": {"unfinished": 2}},
    RunKind.EXECUTORS_SILENT: {"unheard": {"silent": 1}},
    RunKind.EXECUTORS_LOST: {"unheard": {"lost": 1}},
    RunKind.COLLECTOR_OUTAGE: {"collectors": {"io": {"title": "I/O", "outages": [{"since_s": 2.0, "reason": "fire"}]}}},
    RunKind.SAMPLES_MISSED: {"collectors": {"io": {"title": "I/O", "missed": 4}}},
    RunKind.SAMPLES_INCOMPLETE: {"collectors": {"io": {"title": "I/O", "incomplete": "3 lines could not be read"}}},
}


def noted(folder: Path, rows=(), **fields):
    writer = RecordWriter(folder, a_manifest(**fields))
    writer.add_table("maintenance", MAINTENANCE)
    writer.append("maintenance", rows)
    writer.close()
    return [(one.kind, dict(one.facts)) for one in run_notes(Record(folder))]


@pytest.mark.parametrize("kind", BENT)
def test_each_is_said_of_a_run_in_which_it_happened(kind, tmp_path):
    assert [kind for kind, _ in noted(tmp_path / "run", **BENT[kind])] == [kind]


@pytest.mark.parametrize(("after", "unreported"), [(None, None), (107, {"transfer": 2})])
def test_of_executors_that_were_lost_it_is_said_how_many_commits_went_with_them(tmp_path, after, unreported):
    counted = {"transfer": {"before": 100, "after": after}}
    writer = RecordWriter(tmp_path / "run", a_manifest(unheard={"lost": 1}, workload={"counted": counted}))
    row = {"load": "bank", "transaction": "transfer", "rolled_back": 0, "failed": 0}
    writer.append(
        "transactions", [row | {"second": second, "committed": committed} for second, committed in ((0, 2), (1, 3))]
    )
    writer.close()
    [found] = run_notes(Record(writer.folder))
    assert (found.kind, found.facts["unreported"]) == (RunKind.EXECUTORS_LOST, unreported)


def test_nothing_is_said_of_a_run_in_which_nothing_happened(tmp_path):
    machines = [{"number": 1, "executors": 1, "clock_within_ms": 2.0}]
    assert noted(tmp_path / "run", load_machines=machines, collectors={"io": {"title": "I/O"}}) == []


def test_maintenance_that_failed_is_said_in_the_servers_words(tmp_path):
    row = {"kind": "backup", "started_s": 1.0, "seconds": 2.0, "finished": True, "error": None}
    failed = row | {"finished": False, "error": "Cannot open backup device (3201)"}
    facts = {"maintenance": "backup", "server_said": failed["error"]}
    assert noted(tmp_path / "run", [row, failed]) == [(RunKind.MAINTENANCE_FAILED, facts)]
    assert noted(tmp_path / "other", [row]) == []


def test_the_settings_of_a_resource_pool_are_those_that_are_read_of_it():
    from stallmark.engines import sql_file
    from stallmark.engines.mssql import settings

    text = sql_file.statement(settings.__name__, "settings_governor")
    shown = text[text.index("SELECT") + 6 : text.index("FROM")].split(",")
    columns = [one.split(" AS ")[-1].split(".")[-1].strip().replace("_", " ") for one in shown]
    assert OF_A_VARIANT["resource_pool"] == tuple(f"resource governor {name}" for name in columns)


# Experiments that ended before all their variants were run: before which, and why.


def test_it_is_said_before_which_variant_and_why():
    because = "The command before 'C' failed (it ended with code 1); it said: pool 0\nis full"
    [found] = early_ends([a_manifest(), a_manifest(ended={"before": "C", "because": because})])
    assert found.kind is EndKind.EXPERIMENT
    assert found.facts == {"before": "C", "said": because.replace("\n", " ")}


def test_why_is_not_known_of_one_that_was_killed():
    [found] = early_ends([a_manifest(ended={"before": "C"})])
    assert found.facts == {"before": "C", "said": None}
