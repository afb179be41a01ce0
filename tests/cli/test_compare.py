"""`stallmark compare`, `stallmark plan` and commands in a pipeline: what they show and write, their exit codes."""

import csv
import json
import os
import shutil
from datetime import datetime
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from support.command_line import stallmark
from support.read_once import kept_summaries, read_once
from support.synthetic import Truth, make_run

from stallmark.analysis.metrics import METRICS
from stallmark.report.results import HEADER

__all__ = ["kept_summaries", "read_once"]
pytestmark = [pytest.mark.thorough, pytest.mark.usefixtures("read_once")]


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Path:
    """Two variants, three runs each, of which the second does 20 % more."""
    folder = tmp_path_factory.mktemp("runs")
    rng = np.random.default_rng(2)
    for number in range(6):
        variant, tps = ("HDD", 300) if number % 2 == 0 else ("SSD", 360)
        truth = Truth(
            tps=tps * float(np.exp(rng.normal(0, 0.005))), variant=variant, repeat=number // 2 + 1, sequence=number + 1,
            seed=number + 1, measured_s=10, noise=0.01,
        )  # fmt: skip
        make_run(folder / f"{number + 1:02d}-{variant.lower()}", truth)
    return folder


@pytest.fixture(scope="module")
def pair(runs, tmp_path_factory) -> Path:
    """The first run of each alone."""
    folder = tmp_path_factory.mktemp("pair")
    for name in ("01-hdd", "02-ssd"):
        shutil.copytree(runs / name, folder / name)
    return folder


def test_the_verdict_is_said_and_written_in_every_form(runs, tmp_path):
    result = stallmark(
        "compare", runs, "--out", tmp_path / "c.html", "--markdown", tmp_path / "c.md", "--fail-if", "worse"
    )
    assert result.exit_code == 0, result.output
    assert "SSD beats HDD by" in result.output
    assert "SSD beats HDD by" in (tmp_path / "c.html").read_text()
    assert (tmp_path / "c.md").read_text().startswith("## Stallmark: SSD against HDD")


def test_json_has_standard_output_for_itself_and_fail_if_decides_the_exit_code(runs, tmp_path):
    result = stallmark("compare", runs, "--out", tmp_path / "c.html", "--json", "--fail-if", "not better by 50 %")
    found = json.loads(result.stdout)
    assert found["pairs"][0]["verdict"] == "better" and found["report"].endswith("c.html")
    assert result.exit_code == 5 and "SSD against HDD is not better by 50 %" in " ".join(result.stderr.split())


def test_a_ticket_has_standard_output_for_itself_and_no_verdict_fails(pair, tmp_path):
    result = stallmark("compare", pair, "--out", tmp_path / "c.html", "--markdown", "-", "--fail-if", "worse by 5 %")
    assert result.stdout.startswith("## Stallmark") and "Report:" not in result.stdout
    assert result.exit_code == 5 and "no verdict (indicative only)" in " ".join(result.stderr.split())


@pytest.mark.parametrize(
    ("options", "said"),
    [(["--json", "--markdown", "-"], "both want standard output"), (["--fail-if", "slower"], "is not understood")],
)
def test_what_cannot_be_is_refused_before_anything_is_read(runs, options, said):
    result = stallmark("compare", runs, *options)
    assert result.exit_code == 2 and said in result.stderr


def test_a_comparison_of_one_side_is_refused_in_a_sentence(runs):
    result = stallmark("compare", runs / "01-hdd", runs / "03-hdd")
    assert result.exit_code == 3 and "There is nothing to compare" in result.stderr


def test_a_plan_says_how_many_runs_a_difference_needs(runs, pair):
    result = stallmark("plan", runs, "--difference", "2 %")
    assert result.exit_code == 0 and "runs of each variant show a difference of 2 %" in " ".join(result.output.split())
    found = json.loads(stallmark("plan", pair, runs / "03-hdd", "--json").stdout)
    assert found["difference"] == 0.05 and found["df"] == 1 and 0 < found["spread"] < 0.02


@pytest.mark.parametrize("wrong", ["0", "-3%", "much", "nan"])
def test_a_plan_for_no_difference_is_refused(runs, wrong):
    result = stallmark("plan", runs, "--difference", wrong)
    assert result.exit_code == 2 and "is not a difference" in result.stderr


def test_a_plan_without_repeats_says_what_is_missing(pair):
    result = stallmark("plan", pair)
    assert result.exit_code == 3 and "make at least 2" in result.stderr


def test_the_ordinary_report_shows_the_same_verdict(runs, tmp_path):
    result = stallmark("report", runs, "--out", tmp_path / "r.html")
    assert "SSD beats HDD by" in result.output and "SSD beats HDD by" in (tmp_path / "r.html").read_text()


@pytest.mark.parametrize("command", ["compare", "report"])
@pytest.mark.parametrize(
    ("place", "said"),
    [(".", "is a folder: name a file in it"), ("file/c.html", "is not a folder"), ("pipe", "is not a file that")],
)
def test_a_report_that_cannot_go_where_it_is_to_go_is_refused_before_anything_is_written(
    pair, tmp_path, command, place, said
):
    folder = tmp_path / "there"
    folder.mkdir()
    (folder / "file").touch()
    os.mkfifo(folder / "pipe")
    result = stallmark(command, pair, "--out", folder / place)
    assert result.exit_code == 3 and said in result.stderr
    assert sorted(p.name for p in folder.iterdir()) == ["file", "pipe"] and list(tmp_path.iterdir()) == [folder]


@pytest.mark.parametrize("ticket", ["{}", "{}/c.html/c.md"])
def test_a_ticket_that_cannot_be_written_is_refused_before_the_report_is(pair, tmp_path, ticket):
    out = tmp_path / "new" / "c.html"
    (tmp_path / "c.html").touch()
    result = stallmark("compare", pair, "--out", out, "--markdown", ticket.format(tmp_path))
    assert result.exit_code == 3 and ("is a folder" in result.stderr or "is not a folder" in result.stderr)
    assert not out.exists()


def test_a_ticket_gets_its_folder(pair, tmp_path):
    ticket = tmp_path / "new" / "c.md"
    result = stallmark("compare", pair, "--out", tmp_path / "c.html", "--markdown", ticket)
    assert result.exit_code == 0 and ticket.read_text().startswith("## Stallmark")


# In a pipeline: limits as JUnit's tests, Markdown for the job's page, options in the environment


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch):
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)


def results(file):
    """Return the result of each test case of a file, by its name."""
    root = ElementTree.parse(file).getroot()
    cases = list(root.iter("testcase"))
    assert int(root.get("tests")) == len(cases) == sum(int(suite.get("tests")) for suite in root)
    return {case.get("name"): case[0].tag if len(case) else "passed" for case in cases}


@pytest.mark.parametrize(
    ("rule", "result", "code"),
    [("worse", "passed", 0), ("not better by 50 %", "failure", 5), ("not within 20 %", "error", 6)],
)
def test_a_rule_is_a_test_that_passed_failed_or_is_open(runs, tmp_path, rule, result, code):
    ended = stallmark("compare", runs, "--json", "--fail-if", rule, "--junit", tmp_path / "deep" / "j.xml")
    assert (ended.exit_code, results(tmp_path / "deep" / "j.xml")) == (code, {rule: result})


def test_a_report_lists_what_is_complete_and_consistent(runs, tmp_path):
    ended = stallmark("report", runs, "--json", "--junit", tmp_path / "j.xml", "--fail-if", "enough above 4GiB")
    shown = results(tmp_path / "j.xml")
    assert ended.exit_code == 5 and shown.pop("enough above 4GiB") == "failure"
    assert len(shown) >= 6 and set(shown.values()) == {"passed"}
    assert {f"{number + 1:02d}-{('hdd', 'ssd')[number % 2]}" for number in range(6)} <= shown.keys()


def test_a_comparison_without_a_rule_has_nothing_to_fail(runs, tmp_path):
    ended = stallmark("compare", runs, "--junit", tmp_path / "j.xml")
    assert ended.exit_code == 2 and "--fail-if" in ended.stderr and not (tmp_path / "j.xml").exists()


@pytest.mark.parametrize("command", ["report", "compare"])
def test_markdown_goes_to_a_file_to_standard_output_and_to_the_page_of_the_job(runs, tmp_path, monkeypatch, command):
    stallmark(command, runs, "--out", tmp_path / "p.html", "--markdown", tmp_path / "m.md")
    alone = stallmark(command, runs, "--markdown", "-")
    assert alone.stdout == (tmp_path / "m.md").read_text() and alone.stdout.startswith("## Stallmark")
    assert "\n|---" in alone.stdout, "a table"
    page = tmp_path / "job.md"
    page.write_text("An earlier step.\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(page))
    stallmark(command, runs, "--json")
    assert page.read_text() == f"An earlier step.\n{alone.stdout}\n"


@pytest.mark.parametrize("command", ["report", "compare"])
def test_markdown_may_go_to_a_device(runs, tmp_path, command):
    ended = stallmark(command, runs, "--out", tmp_path / "p.html", "--markdown", os.devnull)
    assert ended.exit_code == 0 and not Path(os.devnull).is_file()


@pytest.mark.parametrize("place", ["folder", "missing/job.md"])
def test_a_page_of_the_job_that_cannot_be_written_costs_no_result(runs, tmp_path, monkeypatch, place):
    (tmp_path / "folder").mkdir()
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / place))
    ended = stallmark("compare", runs, "--json", "--fail-if", "not better by 50 %", "--junit", tmp_path / "j.xml")
    assert ended.exit_code == 5 and ended.stdout.startswith("{")
    assert results(tmp_path / "j.xml") == {"not better by 50 %": "failure"}
    [line] = [line for line in ended.stderr.splitlines() if "GITHUB_STEP_SUMMARY" in line]
    assert str(tmp_path / place) in line


def test_json_and_markdown_do_not_share_standard_output(runs):
    ended = stallmark("report", runs, "--json", "--markdown", "-")
    assert ended.exit_code == 2 and "both want standard output" in ended.stderr


def test_an_option_may_stand_in_the_environment(runs, tmp_path, monkeypatch):
    monkeypatch.setenv("STALLMARK_COMPARE_FAIL_IF", "not better by 50 %")
    monkeypatch.setenv("STALLMARK_COMPARE_JSON", "1")
    ended = stallmark("compare", runs)
    assert ended.exit_code == 5 and ended.stdout.startswith("{")
    assert stallmark("compare", runs, "--fail-if", "worse").exit_code == 0, "the command line goes first"


@pytest.mark.parametrize(
    ("command", "theirs", "ours"),
    [("compare", "--junitxml", "--junit"), ("run", "--output", "--out"), ("run", "--host", "--server")],
)
def test_options_of_other_tools_suggest_ours(command, theirs, ours):
    ended = stallmark(command, theirs, "x")
    assert ended.exit_code == 2 and f": write {ours}." in ended.stderr


@pytest.mark.parametrize(
    ("option", "word"),
    [
        ("-j", "processes"),
        ("--jobs", "processes"),
        ("-t", "--duration"),
        ("--transactions", "--duration"),
        ("-u", "--users"),
        ("-S", "-f"),
        ("-M", "prepared"),
        ("-P", "--quiet"),
        ("-U", "--server"),
        ("--spawn-rate", "ramp="),
        ("--warmup-time", "warm_up="),
        ("--stage", "users="),
        ("-s", "-D scale"),
        ("--headless", "no page"),
    ],
)
def test_options_of_other_tools_without_ours_have_advice(option, word):
    ended = stallmark("run", "demo", option, "4")
    assert ended.exit_code == 2 and word in ended.stderr
    assert word not in stallmark("compare", option, "4").stderr


@pytest.mark.parametrize(("name", "value"), [("USERS", "4"), ("DURATION", "5s"), ("RATE", "9"), ("SET", "users=4")])
def test_a_variable_that_keeps_an_experiment_from_going_on_is_named(runs, monkeypatch, name, value):
    monkeypatch.setenv(f"STALLMARK_RUN_{name}", value)
    ended = stallmark("run", "--resume", runs)
    assert ended.exit_code == 2 and f"STALLMARK_RUN_{name}" in ended.stderr
    monkeypatch.delenv(f"STALLMARK_RUN_{name}")
    assert "STALLMARK_RUN" not in stallmark("run", "--resume", runs, "--users", "4").stderr


def test_the_metrics_of_steps_are_one_flat_file(runs, tmp_path):
    ended = stallmark("export", runs, "--flat", tmp_path / "f.csv")
    rows = list(csv.DictReader((tmp_path / "f.csv").open()))
    assert ended.exit_code == 0 and rows[0].keys() == set(HEADER)
    assert {(row["variant"], row["repeat"]) for row in rows} == {(v, r) for v in ("HDD", "SSD") for r in "123"}
    [shown] = [row for row in rows if row["run"] == "01-hdd" and row["metric"] == "tps"]
    [step] = json.loads(stallmark("report", runs / "01-hdd", "--json").stdout)["runs"][0]["steps"]
    assert float(shown["value"]) == pytest.approx(step["tps"]) and shown["unit"] == METRICS["tps"].unit
    began = json.loads((runs / "01-hdd" / "manifest.json").read_text())["started"]
    since = datetime.fromisoformat(shown["time"]) - datetime.fromisoformat(began)
    assert since.total_seconds() == step["begin_s"]
    assert all(row["value"] for row in rows), "what was not measured has no row"
    assert stallmark("export", runs, "--flat", "-").stdout == (tmp_path / "f.csv").read_text()


def test_an_export_has_one_form(runs, tmp_path):
    assert stallmark("export", runs).exit_code == 2
    assert stallmark("export", runs, "--flat", tmp_path / "f.csv", "--csv", tmp_path / "d").exit_code == 2
    assert not (tmp_path / "d").exists()
