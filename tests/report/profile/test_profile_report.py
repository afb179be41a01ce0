"""The report of a profile: page, terminal and JSON of two simulated hours with a gap, and the commands themselves."""

import json
import re
from collections import defaultdict
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from types import SimpleNamespace
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.command_line import stallmark
from support.production import HOUR, Production, direct
from support.profiles import DATA, LOG, write_made_profile
from support.synthetic import Truth, make_run
from support.terminal import printed

from stallmark import format
from stallmark.analysis.profile import summarise_profile
from stallmark.analysis.profile_rates import Measure, Quotient, Rates
from stallmark.profile.collection import Collection
from stallmark.report.profile import figures, heat_table, profile_document, profile_in_json
from stallmark.report.renderers import in_terminal, render
from stallmark.report.text import sentence
from stallmark.report.text.profile import MEASURES, progress

ZONES = ["UTC", "Europe/Berlin", "Asia/Kathmandu", "America/New_York", "Australia/Lord_Howe"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("profile") / "shop"
    production = Production(now=13 * HOUR, outages=[(13.5 * HOUR, 13.7 * HOUR)])
    with pytest.MonkeyPatch.context() as monkeypatch:
        Collection(direct(production, monkeypatch), folder, 2 * HOUR, clock=production.clock()).run()
    return folder


@pytest.fixture(scope="module")
def summary(folder):
    return summarise_profile(folder)


@pytest.mark.thorough
def test_the_page_holds_every_finding_every_measure_and_the_gap(summary):
    page = render(profile_document(summary))
    text = " ".join(re.sub(r"<[^>]+>", " ", page).replace("&#39;", "'").split())
    for one in [*summary.findings, *summary.memory, *summary.cautions]:
        assert " ".join(sentence(one).split()) in text, one.kind
    assert all(MEASURES[measure] in text for measure in summary.rates.measures)
    assert "http://" not in page.replace("http://www.w3.org", "")  # nothing is loaded from elsewhere
    assert page.count("<figure ") >= 5


def test_the_heat_map_has_the_hours_that_were_seen_and_no_others(summary):
    for _, [(_, hours)] in heat_table(summary).maps:
        assert [hour for hour, (text, _) in enumerate(hours) if text] == [13, 14]
        assert max(weight for _, weight in hours) == 1.0


@pytest.mark.parametrize("length", [15, 60, 61, 90, 300, 600, 7200])
def test_a_line_has_a_gap_only_where_nothing_was_observed(tmp_path, length):
    hidden = 4
    made = write_made_profile(tmp_path / "p", 60, length=length, left_out=range(20, 20 + hidden))
    [line] = [trace for trace in figures(summarise_profile(made))[0].chart.traces if trace["name"] == "reads per s"]
    known = [value is not None and np.isfinite(value) for value in line["y"]]
    assert [part for part, _ in groupby(known)] == [True, False, True]
    assert known.count(False) == pytest.approx(len(known) * hidden / 60, abs=2.5)  # drawn in whole minutes


ZEROS, NO_LOG = dict.fromkeys(DATA, 0.0), dict.fromkeys(LOG, 0.0)
IDLE = {
    "data": {"data": ZEROS, "log": LOG},
    "all": {"data": ZEROS, "log": NO_LOG},
    "log": {"data": DATA, "log": NO_LOG},
    "device": {"device": ZEROS},
    "reads": {"data": DATA | {"reads": 0.0, "read_bytes": 0.0, "read_stall_ms": 0.0}},
    "unknown": {"data": {"writes": 0.0}},
    "sizes alone": {"data": {"size_bytes": 1e9}},
}


@pytest.mark.thorough
@pytest.mark.parametrize("idle", IDLE)
def test_what_was_idle_has_no_times_and_warns_of_nothing(tmp_path, idle):
    """A RuntimeWarning of numpy is an error here, as in all tests."""
    server = lambda n: dict.fromkeys(("cpu_s", "transactions", "page_lookups", "pages_read"), 0.0)  # noqa: E731
    found = summarise_profile(write_made_profile(tmp_path / "p", 300, file_io=lambda n: IDLE[idle], server=server))
    document = profile_document(found)
    render(document), printed(in_terminal(document.brief), 80), json.dumps(profile_in_json(found))
    of_time = {"data": {"data_read_ms", "data_write_ms"}, "log": {"log_write_ms"}, "reads": {"data_read_ms"}}
    assert not of_time.get(idle, {"data_read_ms", "data_write_ms", "log_write_ms"}) & set(map(str, found.means))
    assert all(one.values[measure] for measure, one in found.peaks.items())


@given(st.integers(1_760_000_000, 1_800_000_000), st.sampled_from(ZONES))
def test_a_cell_of_the_heat_map_is_the_mean_of_its_hour_by_local_clocks(begin, name):
    """Across changes of the clock, and where clocks are ahead of UTC by a part of an hour."""
    zone, count = ZoneInfo(name), 4 * 24 * 3
    begin -= begin % 900
    start = begin + 900.0 * np.arange(count)
    rates = Rates(start, start + 900.0, {Measure.IOS: Quotient(np.arange(count) * 900.0, np.full(count, 900.0))})
    hours: dict[tuple[str, int], list[int]] = defaultdict(list)
    for number, moment in enumerate(start):
        local = datetime.fromtimestamp(moment, zone)
        hours[f"{local:%a %d %b}", local.hour].append(number)
    with format.times_in(zone):
        [(_, days)] = heat_table(SimpleNamespace(rates=rates)).maps
    cells = {(day, hour): text for day, row in days for hour, (text, _) in enumerate(row) if text}
    assert cells == {key: format.number(float(np.mean(each))) for key, each in hours.items()}


@pytest.mark.parametrize(
    ("month", "day", "name", "forward", "back"),
    [
        (3, 28, "Europe/Berlin", True, False), (10, 24, "Europe/Berlin", False, True),
        (3, 2, "Europe/Berlin", False, False), (3, 28, "Asia/Kolkata", False, False), (10, 24, "UTC", False, False),
    ],
)  # fmt: skip
def test_a_change_of_the_clock_is_said_if_there_was_one(month, day, name, forward, back):
    start = datetime(2026, month, day, tzinfo=UTC).timestamp() + 900.0 * np.arange(4 * 48)
    rates = Rates(start, start + 900.0, {Measure.IOS: Quotient(start, start)})
    with format.times_in(ZoneInfo(name)):
        found = heat_table(SimpleNamespace(rates=rates))
    assert found.zone == name and f"Each hour of the day in {name}," in found.reading
    assert ("put forward" in found.reading, "put back" in found.reading) == (forward, back)


@pytest.mark.parametrize("width", [50, 80, 120])
def test_a_terminal_of_any_width_has_the_figures_whole(summary, width):
    text = printed(in_terminal(profile_document(summary).brief), width)
    assert max(map(len, text.splitlines())) <= width
    assert "ms per read" in text and "data" in text


def test_the_json_has_what_the_page_shows(summary):
    found = json.loads(json.dumps(profile_in_json(summary)))
    assert found["kind"] == "profile" and [one["begin"][11:13] for one in found["hours"]] == ["13", "14"]
    assert found["files"][0]["read_share"] == pytest.approx(690 / 820, rel=0.01)
    assert found["means"]["reads_per_s"] > 700 and found["unseen"][0]["reason"]
    assert {one["kind"] for one in found["findings"]} >= {"profile_busiest", "profile_io_mix"}


def test_report_recognises_the_folder(folder, tmp_path):
    said = stallmark("report", folder, "--out", tmp_path / "page.html", "--json")
    assert said.exit_code == 0 and json.loads(said.stdout)["kind"] == "profile"
    assert (tmp_path / "page.html").exists()


def test_a_run_beside_a_profile_is_refused_in_a_sentence(folder, tmp_path):
    make_run(tmp_path / "run", Truth())
    said = stallmark("report", folder, tmp_path / "run")
    assert said.exit_code == 3 and said.stderr.startswith("Error: ") and "Traceback" not in said.stderr


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (["--server", "mssql://me:hush-hush@db/master", "--for", "1h"], 2, "password on the command line"),
        (["--server", "mssql://me@db/master", "--for", "24"], 2, "has no unit"),
        (["--server", "mssql://me@db/master", "--for", "0s"], 2, "0s is not a duration"),
        (["--server", "oracle://me@db/master", "--for", "1h"], 2, "neither postgresql:// nor mssql://"),
        (["--for", "1h"], 2, "--server"),
        (["--server", "postgresql://me@127.0.0.1:9/x", "--for", "1h"], 3, "No connection to 127.0.0.1:9/x"),
    ],
    ids=["password", "no unit", "no time", "another engine", "no server", "nobody there"],
)
def test_a_wrong_command_is_one_sentence_and_makes_no_folder(tmp_path, monkeypatch, options, code, words):
    monkeypatch.delenv("STALLMARK_SERVER", raising=False)
    said = stallmark("profile", *options, "--out", tmp_path / "p")
    assert said.exit_code == code and words in " ".join(said.stderr.split())
    assert "hush-hush" not in said.output and not (tmp_path / "p").exists()


def test_progress_says_first_what_matters_most():
    assert (
        progress(7260, 86400, 812.0, 340.0, 2, None) == "2 h 01 min of 24 h 00 min · 812 reads/s, 340 writes/s · 2 gaps"
    )
    assert progress(7260, 86400, None, None, 0, "it is starting.").endswith("it is starting. Retrying.")
    assert progress(7260, 86400, None, None, 0, "is it running?").endswith("is it running? Retrying.")
