"""`stallmark compare` and `stallmark plan`: what they say, what they write, and their exit codes."""

import json
import os
import shutil

import numpy as np
import pytest
from support.command_line import stallmark
from support.synthetic import Truth, make_run


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """HDD and SSD, three runs each; `one` holds the first of each alone."""
    folder = tmp_path_factory.mktemp("runs")
    rng = np.random.default_rng(2)
    for number in range(6):
        variant, tps = ("HDD", 300) if number % 2 == 0 else ("SSD", 360)
        truth = Truth(
            tps=tps * float(np.exp(rng.normal(0, 0.005))), variant=variant, repeat=number // 2 + 1, sequence=number + 1,
            seed=number + 1, measured_s=10, noise=0.01,
        )  # fmt: skip
        make_run(folder / "all" / f"{number + 1:02d}-{variant.lower()}", truth)
    for name in ("01-hdd", "02-ssd"):
        shutil.copytree(folder / "all" / name, folder / "one" / name)
    return folder


def test_the_verdict_is_said_and_written_in_every_form(runs, tmp_path):
    result = stallmark(
        "compare", runs / "all", "--out", tmp_path / "c.html", "--markdown", tmp_path / "c.md", "--fail-if", "worse"
    )
    assert result.exit_code == 0, result.output
    assert "SSD beats HDD by" in result.output
    assert "SSD beats HDD by" in (tmp_path / "c.html").read_text()
    assert (tmp_path / "c.md").read_text().startswith("## Stallmark: SSD against HDD")


def test_json_has_standard_output_for_itself_and_fail_if_decides_the_exit_code(runs, tmp_path):
    result = stallmark(
        "compare", runs / "all", "--out", tmp_path / "c.html", "--json", "--fail-if", "not better by 50 %"
    )
    found = json.loads(result.stdout)
    assert found["pairs"][0]["verdict"] == "better" and found["report"].endswith("c.html")
    assert result.exit_code == 5 and "SSD against HDD is not better by 50 %" in " ".join(result.stderr.split())


def test_a_ticket_has_standard_output_for_itself_and_no_verdict_fails(runs, tmp_path):
    result = stallmark(
        "compare", runs / "one", "--out", tmp_path / "c.html", "--markdown", "-", "--fail-if", "worse by 5 %"
    )
    assert result.stdout.startswith("## Stallmark") and "Report:" not in result.stdout
    assert result.exit_code == 5 and "no verdict (indicative only)" in " ".join(result.stderr.split())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--json", "--markdown", "-"], "both want standard output"),
        (["--fail-if", "slower"], "is not understood"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_read(runs, options, said):
    result = stallmark("compare", runs / "all", *options)
    assert result.exit_code == 3 and said in result.stderr


def test_a_comparison_of_one_side_is_refused_in_a_sentence(runs):
    result = stallmark("compare", runs / "all" / "01-hdd", runs / "all" / "03-hdd")
    assert result.exit_code == 3 and "There is nothing to compare" in result.stderr


def test_a_plan_says_how_many_runs_a_difference_needs(runs):
    result = stallmark("plan", runs / "all", "--difference", "2 %")
    assert result.exit_code == 0 and "runs of each variant show a difference of 2 %" in " ".join(result.output.split())
    found = json.loads(stallmark("plan", runs / "one", runs / "all" / "03-hdd", "--json").stdout)
    assert found["difference"] == 0.05 and found["df"] == 1 and 0 < found["spread"] < 0.02


@pytest.mark.parametrize("wrong", ["0", "-3%", "much", "nan"])
def test_a_plan_for_no_difference_is_refused(runs, wrong):
    result = stallmark("plan", runs / "all", "--difference", wrong)
    assert result.exit_code == 3 and "is not a difference" in result.stderr


def test_a_plan_without_repeats_says_what_is_missing(runs):
    result = stallmark("plan", runs / "one")
    assert result.exit_code == 3 and "make at least 2" in result.stderr


def test_the_ordinary_report_shows_the_same_verdict(runs, tmp_path):
    result = stallmark("report", runs / "all", "--out", tmp_path / "r.html")
    assert "SSD beats HDD by" in result.output and "SSD beats HDD by" in (tmp_path / "r.html").read_text()


@pytest.mark.parametrize("command", ["compare", "report"])
@pytest.mark.parametrize(
    ("place", "said"),
    [(".", "is a folder: name a file in it"), ("file/c.html", "is not a folder"), ("pipe", "is not a file that")],
)
def test_a_report_that_cannot_go_where_it_is_to_go_is_refused_before_anything_is_written(
    runs, tmp_path, command, place, said
):
    folder = tmp_path / "there"
    folder.mkdir()
    (folder / "file").touch()
    os.mkfifo(folder / "pipe")
    result = stallmark(command, runs / "one", "--out", folder / place)
    assert result.exit_code == 3 and said in result.stderr
    assert sorted(p.name for p in folder.iterdir()) == ["file", "pipe"] and list(tmp_path.iterdir()) == [folder]


@pytest.mark.parametrize("ticket", ["{}", "{}/c.html/c.md"])
def test_a_ticket_that_cannot_be_written_is_refused_before_the_report_is(runs, tmp_path, ticket):
    out = tmp_path / "new" / "c.html"
    (tmp_path / "c.html").touch()
    result = stallmark("compare", runs / "one", "--out", out, "--markdown", ticket.format(tmp_path))
    assert result.exit_code == 3 and ("is a folder" in result.stderr or "is not a folder" in result.stderr)
    assert not out.exists()


def test_a_ticket_gets_its_folder(runs, tmp_path):
    ticket = tmp_path / "new" / "c.md"
    result = stallmark("compare", runs / "one", "--out", tmp_path / "c.html", "--markdown", ticket)
    assert result.exit_code == 0 and ticket.read_text().startswith("## Stallmark")
