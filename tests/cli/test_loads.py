"""Commands on runs of several loads: each load has its answer, or one sentence says why not."""

import json
import shutil

import pytest
from support.command_line import stallmark
from support.synthetic import Truth, make_run
from support.synthetic_loads import alone_and_together, make_loads_run


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
        assert done.exit_code == 3 and "by itself" in done.output


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
