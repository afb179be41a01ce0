"""The view of an experiment: which run, which phase, and how it ended; as JSON and as metrics."""

import json
import os
import re
import shutil
import time
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families
from rich.console import Console
from support.manifests import changed
from support.synthetic import Truth, make_run

from stallmark.experiment.estimate import Estimate
from stallmark.experiment.progress import Phase, Show
from stallmark.experiment.status import SILENT_S, State
from stallmark.live.metrics import exposition
from stallmark.live.server import POINTS, lines, state
from stallmark.live.view import MEANS, WAITS, FollowedRun, View, mean, means, sums
from stallmark.record.manifest import read_manifest, write_manifest
from stallmark.record.manifest.course import ChosenSize
from stallmark.record.reader import GrowingStream, Record
from stallmark.scenarios.read import read_scenario
from stallmark.stats.curve_search import MIB

pytestmark = pytest.mark.thorough


@pytest.fixture
def show() -> Show:
    return Show(Console(file=StringIO()))


def samples(view: View) -> dict[str, list]:
    families = text_string_to_metric_families(exposition(view.look()).decode())
    found: dict[str, list] = {}
    for one in (sample for family in families for sample in family.samples):
        found.setdefault(one.name, []).append(one)
    return found


def test_the_run_under_way_and_those_before_it(view):
    now = state(view().look())
    json.dumps(now, allow_nan=False)
    assert (now["present"], now["state"], now["final"]) == (3, "running", False)
    assert [run["drawn"] for run in now["runs"]] == [True, True, True, False, False]
    assert [run["live"] for run in now["runs"]] == [False, False, True, False, False]
    figures = [run["figures"] for run in now["runs"]]
    assert [float(row[0]) for row in figures[:3]] == pytest.approx([400, 540, 890], rel=0.03)
    assert [float(row[2]) for row in figures[:3]] == pytest.approx([28, 26, 21], rel=0.05)
    assert set(figures[3]) == {"–"}  # nothing was measured
    assert now["charts"][0]["line"] == "tps" and {"waits_io", "waits_wal"} < {one["line"] for one in now["charts"]}
    assert now["emulated"] and all(run["emulated"] for run in now["runs"][:3])
    assert len({run["colour"] for run in now["runs"]}) == 5


def test_lines_begin_with_measuring_and_are_no_longer_than_a_screen_is_wide(view):
    run = view().look().runs[1]
    drawn = lines(run)
    assert drawn["seconds"][0] == pytest.approx(-4.5) and drawn["steps"] == [["steady", -5.0, 0.0]]
    assert len(drawn["tps"]) == len(drawn["seconds"]) == 35 and drawn["width"] == 1
    run.seconds = 10 * POINTS
    assert len(lines(run)["seconds"]) == POINTS


def test_what_is_being_done_is_known_where_it_is_done(view, show, tmp_path):
    before = view(tmp_path / "not-there-yet", show)
    show.enter(Phase.LOADING)
    assert state(before.look())["left"] is None
    show.expect(Estimate(build_s=300.0, runs_s=()))
    with show.bar("Loading", None):
        show.advance(1, "a quarter", 4)
        now = state(before.look())
    assert (now["phase"], now["progress"], now["note"], now["present"]) == ("loading", 0.25, "a quarter", None)
    assert now["badge"] == "live" and now["left"].startswith("about 5 minutes left")
    assert now["lines"] is None and now["runs"][0]["begun"] is False
    show.waits(asks=("cache", "Is it on?"))
    assert "“cache”" in state(before.look())["note"] and "Is it on?" in state(before.look())["note"]
    show.enter(Phase.PREPARING, 2)
    seen = before.look()
    assert (seen.present, seen.phase) == (2, "preparing")


def test_how_it_ended_is_said_and_all_runs_are_read_before(made, scenario, tmp_path, show):
    folder = tmp_path / "x"
    shutil.copytree(made, folder)
    here = View(folder, scenario, show)
    here.end(State.ENDED, "stopped from the live page")
    changed(folder / "03", status="incomplete", incomplete_because="stopped from the live page")
    finals = [state(here.look())["final"] for _ in range(4)]
    assert finals == [False, False, True, True]
    now = state(here.look())
    assert now["state"] == "ended" and "stopped from the live page" in now["said"] and now["runs"][2]["cut"]
    assert "stallmark_run_info" not in samples(here)


def test_a_killed_one_is_not_shown_as_live(made, scenario, tmp_path):
    folder = tmp_path / "x"
    shutil.copytree(made, folder)
    long_ago = time.time() - SILENT_S - 60
    for path in (folder / "03").iterdir():
        os.utime(path, (long_ago, long_ago))
    seen = View(folder, scenario).look()
    assert seen.status.state is State.SILENT and state(seen)["badge"] == "not live" and state(seen)["said"]


def test_files_that_are_being_replaced_leave_the_view_as_it_was(view, made, monkeypatch):
    here = view()
    before = here.look()
    monkeypatch.setattr(View, "_read", lambda self: (made / "gone").stat())
    assert here.look() is before


def test_a_report_and_a_way_to_go_on_are_named_only_where_they_are(made, scenario, tmp_path, show):
    folder = tmp_path / "x"
    shutil.copytree(made, folder)
    here = View(folder, scenario, show)
    here.end(State.COMPLETE, "")
    assert "report" not in state(here.look())["said"]
    (folder / "report.html").touch()
    assert str(folder / "report.html") in state(here.look())["said"]
    nothing = View(tmp_path / "y", scenario, show)
    nothing.end(State.ENDED, "The disk is full.")
    said = state(nothing.look())["said"]
    assert "The disk is full. 0 of 5" in said and "--resume" not in said


def test_figures_of_the_last_seconds_are_shown_under_load_alone(made, scenario, tmp_path, show):
    here = View(made, scenario, show)
    show.enter(Phase.MEASURING, 3)
    under_load = state(here.look())
    assert len(under_load["lately"]) == 6 and under_load["step"] == "30 users" and under_load["note"] == ""
    show.enter(Phase.CHECKING)
    checking = state(here.look())
    assert checking["lately"] == [] and checking["step"] is None


def test_metrics_are_the_counts_of_the_record(view, made):
    found, record = samples(view()), Record(made / "03")
    transactions = record.table("transactions")
    counted = {
        outcome: sum(one.value for one in found["stallmark_transactions_total"] if one.labels["outcome"] == outcome)
        for outcome in ("committed", "failed")
    }
    assert counted == {name: sum(transactions[name].to_pylist()) for name in counted} and counted["failed"] == 56
    infinite = [one for one in found["stallmark_response_time_seconds_bucket"] if one.labels["le"] == "+Inf"]
    assert sum(one.value for one in infinite) == counted["committed"]
    assert sum(one.value for one in found["stallmark_response_time_seconds_sum"]) == pytest.approx(
        sum(transactions["latency_us"].to_pylist()) / 1e6
    )
    last = {row["entity"]: row for row in record.table("server_io").to_pylist()}
    stalls = {(one.labels["file"], one.labels["kind"]): one.value for one in found["stallmark_io_stall_seconds_total"]}
    file = "client backend/relation/normal"
    assert stalls[file, "read"] == pytest.approx(last[file]["read_stall_ms"] / 1000)
    assert [one.labels["phase"] for one in found["stallmark_phase"] if one.value] == ["ending"]
    assert found["stallmark_virtual_users"][0].value == 30


def test_each_metric_is_documented(view):
    exported = {re.sub(r"_(bucket|sum|count|created)$", "", name) for name in samples(view())} | {
        "stallmark_errors_total"
    }
    page = (Path(__file__).parents[2] / "docs/live-view.md").read_text()
    assert set(re.findall(r"^\| `(stallmark_\w+)` \|", page, re.MULTILINE)) == exported


def test_names_are_as_prometheus_wants_them(view):
    for family in text_string_to_metric_families(exposition(view().look()).decode()):
        assert family.name.startswith("stallmark_") and len(family.documentation) > 10
        for sample in family.samples:
            assert (sample.name.endswith("_total")) == (family.type == "counter"), sample.name
            assert not {"ms", "us", "percent", "kib"} & set(sample.name.split("_")), sample.name


# The live view of a curve of memory: sizes as they are chosen, and the most there may be


def test_sizes_are_named_as_they_are_chosen(tmp_path):
    scenario = read_scenario("memory-curve", ["buffer_pool.sizes=5", "repeats=2"])
    folder = tmp_path / "20260101-000000-memory-curve"
    for number, mib in enumerate((16, 512, 128), 1):
        variant = scenario.with_size(mib * MIB).name
        cut_at = 28 if number == 3 else None
        run = make_run(folder / f"{number:02d}", Truth(variant=variant, sequence=number, cut_at=cut_at))
        made = read_manifest(run)
        chosen = ChosenSize(bytes=mib * MIB, why="end")
        write_manifest(run, made.changed(memory=made.memory.changed(chosen=chosen)))
    view = View(folder, scenario)
    for _ in range(3):
        seen = view.look()
    names = [run["name"] for run in state(seen)["runs"]]
    assert len(names) == 10 and [name.split(",")[0] for name in names[:3]] == ["16 MiB", "512 MiB", "128 MiB"]
    assert seen.status.planned == 10 and seen.status.whole == 2 and seen.present == 3


# A run that is followed: each row added is read once, whole, and the figures are those of the record


WHOLE = slice(None)


@pytest.fixture(scope="module")
def cut(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("cut") / "run", Truth(cut_at=40, measured_s=60, read_ms=8.0))


def test_a_stream_cut_anywhere_gives_every_row_once(cut, tmp_path):
    whole = (cut / "users.arrows").read_bytes()
    path = tmp_path / "users.arrows"
    stream, seconds = GrowingStream(path), []
    for length in (*range(0, len(whole), 333), len(whole)):
        path.write_bytes(whole[:length])
        for batch in stream.read():
            seconds += batch.column("second").to_pylist()
    assert seconds == Record(cut).table("users")["second"].to_pylist() and len(seconds) == 80
    assert stream.read() == []


def test_a_run_followed_piece_by_piece_is_that_of_the_record(cut, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(cut, folder)
    tables = {path: path.read_bytes() for path in folder.glob("*.arrows")}
    followed = FollowedRun(Record(folder))
    for part in range(1, 9):
        for path, content in tables.items():
            path.write_bytes(content[: len(content) * part // 8])
        followed.follow(Record(folder))
    record = Record(folder)
    assert followed.seconds == 40 and not followed.whole
    committed = record.table("transactions")["committed"].to_pylist()
    assert followed.sums["committed"].tolist() == committed
    tallied = [(key, tally.counts["committed"], tally.latencies.size) for key, tally in followed.tallies.items()]
    warm, measured = sum(committed[:5]), sum(committed[5:])
    assert sorted(tallied) == [((0, False, "transfer"), warm, warm), ((0, True, "transfer"), measured, measured)]
    raw = record.table("server_io").to_pylist()
    assert followed.files["client backend/relation/normal"]["reads"] == max(
        row["reads"] for row in raw if row["entity"] == "client backend/relation/normal"
    )


def test_means_are_weighted_by_what_they_are_of(cut):
    found = sums(Record(cut), 40)
    assert mean(found, "read_ms", WHOLE) == pytest.approx(8.0, rel=0.05)
    assert mean(found, "log_ms", WHOLE) == pytest.approx(2.1, rel=0.05)  # a sync of 2 ms, and the write before it
    assert mean(found, "hit_share", WHOLE) == pytest.approx(0.9, rel=0.01)
    assert means(found, "tps", 10).tolist() == pytest.approx(found["committed"].reshape(4, 10).mean(axis=1).tolist())
    assert means({"reads": np.array([1, 3, 0]), "read_stall_ms": np.array([4, 0, 0])}, "read_ms", 2)[0] == 1
    assert np.isnan(means({"reads": np.array([0]), "read_stall_ms": np.array([0])}, "read_ms", 1)[0])


def test_nothing_measured_is_missing_and_not_zero(tmp_path):
    folder = make_run(tmp_path / "run", Truth(cut_at=10, off=("server_io", "wal", "database", "waits")))
    followed = FollowedRun(Record(folder))
    followed.follow(Record(folder))
    known = {line: mean(followed.sums, line, WHOLE) for line in (*MEANS, *WAITS)}
    assert {line for line, value in known.items() if value is not None} == {"tps", "latency_ms"}


def test_a_run_that_has_ended_is_read_to_the_end_of_its_last_step(tmp_path):
    folder = make_run(tmp_path / "run", Truth(measured_s=10))
    followed = FollowedRun(Record(folder))
    followed.follow(Record(folder))
    assert followed.whole and followed.seconds == 15
    assert followed.measured().tolist() == [False] * 5 + [True] * 10


# The Grafana dashboard: what it asks for is exported, and its panels are as Grafana's published schema wants them
# (`kinds/dashboard/dashboard_kind.cue` of its repository)


DASHBOARD = json.loads((Path(__file__).parents[2] / "docs/grafana-dashboard.json").read_text())
VARIABLES = DASHBOARD["templating"]["list"]
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
UNITS = {"none", "s", "ops", "Bps", "percentunit"}
"""Ids of Grafana's units, of those that fit seconds, counts, bytes and shares of one."""


def test_panels_have_queries_and_units_and_do_not_overlap():
    """Panels of the present ask for no more: over a range, every phase and every run of the last half hour has a last
    value."""
    taken: dict[tuple[int, int], str] = {}
    assert DASHBOARD["id"] is None and DASHBOARD["schemaVersion"] >= 36
    for panel in DASHBOARD["panels"]:
        assert panel["type"] in ("timeseries", "stat") and panel["description"] and panel["targets"], panel["title"]
        assert panel["fieldConfig"]["defaults"]["unit"] in UNITS and panel["datasource"] == SOURCE
        assert [target["refId"] for target in panel["targets"]] == list("AB")[: len(panel["targets"])]
        is_present = panel["type"] == "stat"
        for target in panel["targets"]:
            assert (target.get("instant", False), target["range"]) == (is_present, not is_present), panel["title"]
            assert target["datasource"] == SOURCE
        x, y, width, height = (panel["gridPos"][key] for key in "xywh")
        assert min(x, y) >= 0 and min(width, height) > 0 and x + width <= 24
        for cell in [(column, row) for column in range(x, x + width) for row in range(y, y + height)]:
            assert taken.setdefault(cell, panel["title"]) == panel["title"]
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"]) > 10


def test_what_it_asks_for_is_exported_with_these_labels(view):
    exported: dict[str, set[str]] = {}
    for family in text_string_to_metric_families(exposition(view().look()).decode()):
        for sample in family.samples:
            exported.setdefault(sample.name, set()).update(sample.labels)
    expressions = [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]
    for expression in expressions:
        for name, selector in re.findall(r"(stallmark_\w+)(\{[^}]*\})?", expression):
            assert name in exported, name
            assert set(re.findall(r"(\w+)=~?\"", selector)) <= exported[name], expression
        grouped = {label.strip() for by in re.findall(r"by \(([^)]*)\)", expression) for label in by.split(",")}
        assert grouped <= set.union(*(exported[name] for name in re.findall(r"stallmark_\w+", expression)))
        assert expression.count("(") == expression.count(")") and expression.count("{") == expression.count("}")
        if re.search(r"_(total|sum|count|bucket)\{", expression):
            assert "rate(" in expression  # a counter by itself says nothing
    asked = json.dumps([variable["query"] for variable in VARIABLES])
    assert set(re.findall(r"stallmark_\w+", asked)) <= set(exported)
    used = set(re.findall(r"\$(\w+)", " ".join(expressions))) - {"__rate_interval"}
    assert used | {"datasource"} == {variable["name"] for variable in VARIABLES}
