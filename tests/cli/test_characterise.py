"""The command characterise: which scenario it makes, and what it refuses."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from support.command_line import stallmark
from support.read_once import kept_summaries, read_once
from support.synthetic import Truth, make_run
from support.synthetic_loads import alone_and_together, make_loads_run
from support.traces import make_pools

from stallmark.cli.characterise import MEASURE_S, USERS, scenario_for
from stallmark.errors import StallmarkError

__all__ = ["kept_summaries", "read_once"]
pytestmark = [pytest.mark.thorough, pytest.mark.usefixtures("read_once")]


def test_a_workload_is_traced_with_the_smallest_pool_by_default():
    made = scenario_for("brokerage", "customers=5000,days=5", 7, (), {})
    [variant] = made.variants
    assert str(variant.buffer_pool) == "2 %" and made.observe == ["io_trace"] and made.start_cache == "prefilled"
    assert (made.counts, made.measure, made.workload.seed) == ([USERS], MEASURE_S, 7)
    [small] = scenario_for("bank", "branches=1", None, (), {}).variants
    assert str(small.buffer_pool) == "8MiB"


def test_every_pool_is_a_variant_and_options_replace_what_a_scenario_says():
    made = scenario_for("memory-curve", "", None, ("4 %", "64MiB"), {"users": 3})
    assert [str(one.buffer_pool) for one in made.variants] == ["4 %", "64MiB"]
    assert made.counts == [3] and made.workload.scale["customers"] == 1000 and made.warm_up == 28
    assert made.repeats == 1 and made.curve is None


@pytest.mark.parametrize(
    ("load", "scale", "pools", "message"),
    [
        ("user-ramp", "", (), "is not one load of a fixed number of users"),
        ("htap", "", (), "is not one load of a fixed number of users"),
        ("memory-curve", "customers=1000", (), "sets scale and seed itself"),
        ("warehouse", "factor=1", (), "has no transactions that users could execute"),
        ("bank", "branches=1", ("a lot",), "a lot"),
        ("nonsense", "", (), "neither a file nor a scenario"),
    ],
)
def test_what_cannot_be_characterised_is_refused(load, scale, pools, message):
    with pytest.raises(StallmarkError) as refused:
        scenario_for(load, scale, None, pools, {})
    assert message in str(refused.value)


def test_records_are_told_of_and_take_no_options_of_a_load(tmp_path: Path):
    make_pools(tmp_path / "runs", (0.02, 0.08, 0.32))
    shown = stallmark("characterise", tmp_path / "runs", "--page", tmp_path / "page.html")
    assert shown.exit_code == 0 and "How brokerage reads" in shown.output, shown.output
    assert (tmp_path / "page.html").read_text().startswith("<!doctype html>")
    assert stallmark("characterise", tmp_path / "runs", "--users", 4).exit_code == 2
    assert stallmark("characterise").exit_code == 2
    assert stallmark("characterise", tmp_path / "none").exit_code == 3


@pytest.mark.parametrize("name", ["bank", "memory-curve"])
def test_a_folder_of_the_same_name_hides_no_workload_and_no_scenario(tmp_path: Path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    make_pools(tmp_path / name, (0.02,))
    asked = []

    def note(scenario, *_):
        asked.append(scenario.workload.name)
        raise StallmarkError("That is enough.")

    monkeypatch.setattr("stallmark.cli.characterise._run", note)
    scale = ["--scale", "branches=1"] if name == "bank" else []
    assert stallmark("characterise", name, *scale).exit_code == 3 and len(asked) == 1
    for folder in (f"./{name}", f"{name}/", tmp_path / name):
        assert stallmark("characterise", folder).exit_code == 0
    assert len(asked) == 1


def test_another_server_cannot_be_traced():
    refused = stallmark("characterise", "bank", "--server", "postgresql://me@db.example/bank")
    assert refused.exit_code == 2 and "Only the embedded PostgreSQL can be traced" in " ".join(refused.output.split())


# The command whatif


WAITS = {"io": 0.72, "wal": 0.06, "lock": 0.04, "client": 0.03, "other": 0.01}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("whatif") / "run", Truth(variant="slow array", read_ms=27, waits=WAITS))


def test_it_predicts_for_the_times_asked_for(run):
    shown = stallmark("whatif", run, "--read", "0.5ms", "--read", "9ms")
    assert shown.exit_code == 0, shown.output
    assert "0.500 ms" in shown.output and "9.00 ms" in shown.output and "Not tested" in shown.output
    [found] = json.loads(stallmark("whatif", run, "--read", "9ms", "--json").stdout)["found"]
    assert found["variant"] == "slow array" and [one["read_ms"] for one in found["predictions"]] == [9.0]


@pytest.mark.parametrize("text", ["0ms", "soon", "5", "-1ms"])
def test_what_is_no_time_of_a_read_is_refused_with_how_to_write_it(run, text):
    refused = stallmark("whatif", run, "--read", text)
    assert refused.exit_code == 2 and "write it as 1ms" in " ".join(refused.output.split())


def test_a_run_without_the_means_says_which_it_lacks(tmp_path):
    blind = make_run(tmp_path / "run", replace(Truth(), off=("waits",)))
    refused = stallmark("whatif", blind)
    assert refused.exit_code == 3 and "sessions were not sampled" in " ".join(refused.output.split())


# Commands on runs of several loads: each load has its answer, or one sentence says why not


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    for number, (variant, factor) in enumerate([("disks", 1.0), ("cache", 1.6)] * 3):
        more = 1 + 0.01 * number
        steps = alone_and_together({"mail": (60.0, 30.0 * factor * more), "bank": (200.0, 80.0 * factor * more)})
        make_loads_run(folder / f"{number}", steps, variant, repeat=number // 2 + 1, sequence=number)
    return folder


def told(*arguments: object) -> dict:
    done = stallmark(*map(str, arguments), "--json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_a_report_has_a_page_for_each_load(runs, tmp_path):
    said = told("report", runs, "--out", tmp_path / "all.html")
    assert set(said["reports"]) == {"mail", "bank"}
    assert {path.name for path in tmp_path.iterdir()} == {"all.html", "all-mail.html", "all-bank.html"}


def test_a_comparison_has_a_verdict_for_each_load(runs, tmp_path):
    said = told("compare", runs, "--out", tmp_path / "c.html")["loads"]
    for load in ("mail", "bank"):
        verdicts = {pair["step"]: pair["verdict"] for pair in said[load]["pairs"]}
        assert verdicts["together"] == "better"
        assert (tmp_path / f"c-{load}.html").exists()


def test_ci_fails_by_the_rule_for_any_load(runs, tmp_path):
    rule = ("compare", str(runs), "--out", str(tmp_path / "c.html"), "--fail-if")
    failed = stallmark(*rule, "better by 50 %")
    assert failed.exit_code == 5 and "mail" in failed.stderr and "bank" in failed.stderr
    assert stallmark(*rule, "worse").exit_code == 0


def test_a_plan_is_made_for_each_load(runs):
    assert set(told("plan", runs)["loads"]) == {"mail", "bank"}


def test_faster_reads_are_predicted_of_a_load_alone(runs):
    found = told("whatif", runs, "--read", "1ms")["loads"]
    for load in ("mail", "bank"):
        assert {one["step"] for one in found[load]["found"]} == {f"{load} alone"}


def test_runs_of_one_load_and_of_several_are_no_report(runs, tmp_path):
    single = make_run(tmp_path / "single", Truth())
    for command in ("report", "compare"):
        done = stallmark(command, str(runs), str(single))
        assert done.exit_code == 3 and "of different kinds" in done.output


def test_tables_of_several_loads_are_exported(runs, tmp_path):
    assert stallmark("export", str(runs / "0"), "--csv", str(tmp_path / "csv")).exit_code == 0
    assert (tmp_path / "csv" / "load_io.csv").read_text(encoding="utf-8").count("stallmark-user-mail")


def test_a_load_that_one_variant_lacks_is_said_and_the_others_are_compared(runs, tmp_path):
    shutil.copytree(runs / "0", tmp_path / "runs" / "0")
    steps = alone_and_together({"mail": (60.0, 30.0)})
    make_loads_run(tmp_path / "runs" / "1", steps, "cache", sequence=1)
    done = stallmark("compare", tmp_path / "runs", "--fail-if", "worse")
    assert done.exit_code == 5
    assert "bank: " in done.output and (tmp_path / "runs" / "comparison-mail.html").exists()
    assert not (tmp_path / "runs" / "comparison-bank.html").exists()
