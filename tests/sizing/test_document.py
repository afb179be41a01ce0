"""The page, the terminal and the JSON of a sizing, and the commands that show it."""

import json
from itertools import product
from pathlib import Path

import pytest
from support.command_line import stallmark
from support.html_page import Page, figures_of
from support.profiles import GIB, write_made_profile
from support.sizings import a_demand, a_replay, write_sizing_of
from support.terminal import printed

from stallmark.format import NBSP
from stallmark.report.renderers import in_terminal, render
from stallmark.report.text import sentence
from stallmark.sizing.demand import demand_of
from stallmark.sizing.document import candidates_table, facts_of_candidates, percentile, sizing_document, sizing_in_json
from stallmark.sizing.summary import SizingSummary, size, summarise_candidate
from stallmark.sizing.wording import progress

HOLDS, BREAKS = {"replay": (1.25, 1.38)}, {"replay": (0.7, 0.74)}


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> dict[str, Path]:
    """A profile, two candidates of which one carries it, and the hardware of today."""
    root = tmp_path_factory.mktemp("sized")
    server = lambda n: {"transactions": 6000.0, "database_pages_bytes": 20 * GIB}  # noqa: E731
    profile = write_made_profile(root / "shop", 300, server=server)
    units = {"cost": 42_000.0, "watts": 900.0, "rack_units": 4.0}
    demand = demand_of(profile)
    return {
        "profile": profile,
        "b": write_sizing_of(root / "b", demand, "new array", **HOLDS, stand_in=(1.5, 1.6), **units),
        "c": write_sizing_of(root / "c", demand, "cheap array", **BREAKS, matched={"reads": (1000.0, 700.0)}),
        "today": write_sizing_of(root / "old", demand, "old disks", replay=(1.0, 1.05)),
    }


@pytest.fixture(scope="module")
def found(folders) -> SizingSummary:
    return size(folders["profile"], [folders["b"], folders["c"]], growth=1.1, today=folders["today"])


@pytest.mark.thorough
def test_the_page_has_every_finding_and_every_level(found):
    page = Page(render(sizing_document(found)))
    said = [*found.answers, *found.findings, *found.memory, *found.cautions, *found.untested]
    for one in said:
        assert " ".join(sentence(one).replace(NBSP, " ").split()) in page.text, one.kind
    assert not any(name in ("link", "script") and "src" in attributes for name, attributes in page.tags)


def test_the_chart_has_the_need_at_one_and_every_reach(found):
    chart = figures_of(render(sizing_document(found)))["chart-latency"]
    lines, marks = ([one for one in chart["data"] if one["mode"] == mode] for mode in ("lines", "markers"))
    assert [len(one["x"]) for one in lines] == [4, 4, 3, 3] and [len(one["x"]) for one in marks] == [4, 4, 3, 3, 1]
    assert marks[0]["x"][-1] == pytest.approx(1.38 / 1.1, abs=1e-3)
    assert marks[0]["marker"]["symbol"] == ["circle"] * 3 + ["circle-open"]
    assert {(shape["x0"], shape["x1"]) for shape in chart["layout"]["shapes"]} == {(0, 1), (1, 1)}


def test_an_emulated_candidate_says_so_everywhere(tmp_path):
    found = summarise_candidate(write_sizing_of(tmp_path / "b", a_demand(), emulated=True))
    assert "EMULATED" in render(sizing_document(found)) and "EMULATED" in printed(
        in_terminal(sizing_document(found).brief), 80
    )
    assert sizing_in_json(found)["candidates"][0]["emulated"]


@pytest.mark.parametrize("width", [50, 80, 120, 200])
def test_a_terminal_of_any_width_has_the_answers_and_figures_whole(found, width):
    text = printed(in_terminal(sizing_document(found).brief), width)
    assert max(map(len, text.splitlines())) <= width
    assert "1.19×" in text and "cheap array" in text


def test_what_nobody_knows_is_no_column(found, tmp_path):
    assert {"cost", "power W", "rack U"} <= set(candidates_table(found).header)
    bare = candidates_table(summarise_candidate(write_sizing_of(tmp_path / "b", a_demand(transactions=None))))
    assert not {"cost", "power W", "rack U", "TPS", "stand-in"} & set(bare.header)


def test_percentiles_of_a_stream_want_samples_beyond_them():
    stream = a_replay().levels[0].streams[0]
    assert percentile(stream, 0.5) < percentile(stream, 0.99)
    assert percentile(stream.changed(histogram=((1.0, 900),)), 0.99) is None


def test_size_writes_the_page_and_says_which_carries_it(folders, tmp_path):
    said = stallmark("size", folders["profile"], folders["c"], folders["b"], "--out", tmp_path / "s.html", "--json")
    assert said.exit_code == 0 and json.loads(said.stdout)["report"] == str(tmp_path / "s.html")
    assert (tmp_path / "s.html").exists()


def test_size_exits_with_5_where_none_carries_it(folders, tmp_path):
    more = ("--growth", "1.1", "--slo", "oltp", "--percentile", "max", "--out", tmp_path / "s.html")
    assert stallmark("size", folders["profile"], folders["c"], *more).exit_code == 5
    assert stallmark("size", folders["profile"], folders["b"], "--slo", "9ms", *more[4:]).exit_code == 5


@pytest.mark.parametrize(
    ("more", "code", "words"),
    [
        (["--slo", "fast"], 2, "fast is not a service level"),
        (["--slo", "0ms"], 2, "0ms is not a service level"),
        (["--growth", "0"], 2, "is not in the range x>0"),
        (["--growth", "inf"], 2, "is not in the range x>0"),
        (["--percentile", "p42"], 2, "p42"),
        (["--today", "nowhere"], 3, "is not a sizing"),
        (["nowhere"], 3, "is not a sizing"),
    ],
)
def test_a_wrong_command_is_one_sentence(folders, tmp_path, monkeypatch, more, code, words):
    monkeypatch.chdir(tmp_path)
    said = stallmark("size", folders["profile"], folders["b"], *more)
    assert said.exit_code == code and words in " ".join(said.stderr.split()) and "Traceback" not in said.stderr
    assert stallmark("size", "nowhere", folders["b"]).exit_code == 3


def test_report_recognises_the_folder(folders, tmp_path):
    said = stallmark("report", folders["c"], "--out", tmp_path / "page.html", "--json")
    assert said.exit_code == 0 and json.loads(said.stdout)["need"]["multiple"] == 1
    assert (tmp_path / "page.html").exists()


@pytest.mark.parametrize(("more", "code"), [(["--fail-if", "ceiling below 5 users"], 2), (["beside"], 3)])
def test_what_a_sizing_has_not_is_refused_in_a_sentence(folders, tmp_path, monkeypatch, more, code):
    monkeypatch.chdir(tmp_path)
    said = stallmark("report", folders["c"], *([folders["b"]] if more == ["beside"] else more))
    assert said.exit_code == code and said.stderr.startswith("Error: ") and "sizing" in said.stderr


@pytest.mark.parametrize(
    ("kind", "command"),
    [
        *product(["c", "profile"], [["compare"], ["plan"], ["whatif"], ["export", "--flat", "out"]]),
        ("c", ["export", "--csv", "out"]),  # a profile has tables
    ],
)
def test_commands_of_runs_name_what_it_is(folders, tmp_path, monkeypatch, command, kind):
    monkeypatch.chdir(tmp_path)
    said = stallmark(*command, folders[kind])
    name = "profile" if kind == "profile" else "sizing"
    assert said.exit_code == 3 and f"is a {name}, not a run" in " ".join(said.stderr.split())


def test_status_says_how_far_a_sizing_is(tmp_path):
    replay = a_replay(outcome=None)
    folder = write_sizing_of(tmp_path / "runs" / "x-sizing", a_demand(), replay=replay, status="running")
    said = stallmark("status", "--out", tmp_path / "runs")
    assert said.exit_code == 0 and progress(summarise_candidate(folder).candidates[0].sizing) in said.stdout
    found = json.loads(stallmark("status", folder, "--json").stdout)
    assert found["sizing"]["status"] == "running"
    assert "no run of a stand-in" in stallmark("live", folder).stderr


def test_the_storage_of_a_candidate_is_named(found, tmp_path):
    emulated = summarise_candidate(write_sizing_of(tmp_path / "b", a_demand(), emulated=True))
    [(_, pairs)] = facts_of_candidates(emulated)
    assert "8" in dict(pairs)["data on"] and dict(facts_of_candidates(found)[0][1])["data on"] == "ACME 9000"


@pytest.mark.parametrize(
    "replay", [(0.95, 1.05), a_replay((None, 0.5), outcome="none"), None], ids=["open", "not", "no"]
)
def test_every_answer_has_its_page(tmp_path, replay):
    found = summarise_candidate(write_sizing_of(tmp_path / "b", a_demand(), replay=replay, status="incomplete"))
    text = Page(render(sizing_document(found))).text
    assert all(sentence(one).replace(NBSP, " ") in text for one in (*found.answers, *found.cautions))
    assert "Levels of the replay" not in text or replay
