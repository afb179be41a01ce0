import re
from dataclasses import replace
from functools import cache
from html import unescape

import plotly.graph_objects as go
import pytest
from plotly.offline import get_plotlyjs_version
from support import report_summaries as given
from support.html_page import Page
from support.pages import charts, render, write_report, write_slide
from support.steps import changed_step

from stallmark import format
from stallmark.analysis.experiment import marks
from stallmark.analysis.finding import caution, invalid
from stallmark.analysis.read.times import ReadKind
from stallmark.analysis.read.transactions import ErrorSummary
from stallmark.analysis.validity import ValidityKind
from stallmark.record.devices import DeviceLabel
from stallmark.record.manifest.course import Condition
from stallmark.report.figures import chart_template
from stallmark.report.renderers import TEMPLATES
from stallmark.report.sections.server import agreement
from stallmark.report.text import mark_word, sentence

HOSTILE = """<script>alert("x")</script> & </script><img src=http://x onerror='y'>"""


def page(experiment) -> Page:
    return Page(render(experiment))


@cache
def usual() -> str:
    return render(given.buffer_pool())


def rows_with(html: str, name: str) -> list[str]:
    """Table rows that name the step or run `name`, as HTML."""
    rows = re.findall(r"<tr>.*?</tr>", html, re.S)
    return [row for row in rows if re.search(rf">\s*{re.escape(name)}\s*<", row)]


def test_emulated_is_said_once_in_the_page_once_in_every_chart_and_in_one_column():
    experiment = given.buffer_pool()
    html = render(experiment)
    assert '<div class="banner" role="note"><strong>EMULATED</strong>' in html
    assert "(EMULATED)" in html.split("</title>")[0]
    table = html.split('<table class="summary">')[1].split("</table>")[0]
    for step in experiment.steps:
        (row,) = rows_with(table, step.variant)
        assert ('class="word emulation">EMULATED<' in row) == step.emulated, row
    for group in charts(experiment).values():
        for figure in group:
            words = [note["text"] for note in figure.plotly["layout"]["annotations"]]
            assert sum("EMULATED" in text for text in words) == figure.emulated
    count = sum(len(group) for group in charts(experiment).values())
    labels = [attributes.get("aria-label") or "" for _, attributes in Page(html).tags]
    assert sum("EMULATED" in label for label in labels) <= count
    emulated = sum(step.emulated for step in experiment.steps)
    in_pictures = 2 * emulated  # wide and narrow, where bare steps stand beside them
    assert Page(html).text.count("EMULATED") <= 2 + emulated + in_pictures + 1  # title, banner, column; the device


def test_emulated_is_never_said_of_real_devices():
    for experiment in (given.user_ramp(emulated=False), given.devices()):
        assert "EMULATED" not in render(experiment)


def test_emulated_and_bare_devices_are_never_joined_by_a_line():
    for figure in charts(given.buffer_pool())["axis"]:
        traces = figure.plotly["data"]
        assert {t["xaxis"] for t in traces} == {"x", "x2"}
        assert all(len(t["x"]) == (4 if t["xaxis"] == "x" else 1) for t in traces)


@pytest.mark.thorough
@pytest.mark.parametrize("experiment", [given.buffer_pool(3), given.user_ramp(), given.devices(transactions=2)])
def test_figures_are_valid_begin_at_zero_and_have_words(experiment):
    for group in charts(experiment).values():
        for figure in group:
            go.Figure(figure.plotly)  # raises on any property Plotly does not know
            assert figure.summary and figure.method and figure.rows
            assert all(len(row) == len(figure.header) for row in figure.rows)
            if not figure.id.startswith("correlation") and figure.id != "waits":
                axes = [v for k, v in figure.plotly["layout"].items() if k.startswith("yaxis")]
                assert all(a["range"][0] == 0 or (figure.id.startswith("time") and a["range"][0] < 0) for a in axes)


def test_hostile_names_are_text_and_nothing_else():
    step = given.step(
        variant=HOSTILE,
        device=DeviceLabel(HOSTILE, emulated=True),
        errors=[ErrorSummary("", "deadlock", "40P01", 3, 0, 1, HOSTILE)],
        invalid=[invalid(ValidityKind.STORAGE_ERROR, text=HOSTILE, error=1)],
        top_waits=[(HOSTILE, 0.5)],
    )
    run = given.run([step], title=HOSTILE, incomplete_because=HOSTILE, collectors_off={HOSTILE: HOSTILE})
    run = replace(run, manifest=run.manifest.changed(machine={"cpu": HOSTILE}, notes=[HOSTILE]))
    experiment = given.experiment(
        [run], title=HOSTILE, answers=HOSTILE, findings=[given.found(HOSTILE)], cautions=[given.found(HOSTILE)]
    )
    html = render(experiment)
    assert "<script>alert" not in html and "<img" not in html.replace(_packed(html), "")
    read = page(experiment)
    assert [tag for tag, _ in read.tags].count("script") == 3
    assert HOSTILE in unescape(read.text)
    drawn = str([f.plotly for group in charts(experiment).values() for f in group])
    assert "<script" not in drawn and "<img" not in drawn


def test_names_that_act_on_a_terminal_or_turn_the_reading_are_shown_in_page_charts_and_summary(tmp_path):
    name = "cap \x1b[31m\u202e5%"
    experiment = given.experiment([given.run([given.step(variant=name), given.step(variant="b")])], title=name)
    drawn = str([f.plotly for group in charts(experiment).values() for f in group])
    pages = [write_report(experiment, tmp_path / "a.html"), write_slide(experiment, tmp_path / "a.svg")]
    for text in (drawn, *(one.read_text() for one in pages)):
        assert "cap ␛[31m�5%" in text and "\x1b" not in text and "\u202e" not in text


def test_the_common_style_is_of_plotly():
    go.layout.Template(chart_template())


def test_plotly_s_package_is_for_tests_alone():
    files = [*TEMPLATES.parents[1].rglob("*.py")]
    assert len(files) > 200
    assert [path for path in files if re.search(r"^\s*(import|from) plotly\b", path.read_text(), re.MULTILINE)] == []


def test_the_script_that_draws_is_of_the_release_that_describes_the_charts():
    """`make plotly` fetches it."""
    first = (TEMPLATES / "plotly-basic.min.js").read_text(encoding="utf-8")[:100]
    assert f"plotly.js (basic - minified) v{get_plotlyjs_version()}" in first


def test_nothing_is_loaded_from_anywhere():
    html = usual()
    assert "default-src 'none'" in html
    for tag, attributes in Page(html).tags:
        assert tag not in ("link", "img", "iframe", "object", "embed")
        assert "src" not in attributes
        assert tag != "a" or attributes["href"].startswith("#")
    assert "url(" not in html.split("<style>")[1].split("</style>")[0]


def test_a_percentile_without_samples_is_a_dash_with_its_footnote():
    few = given.latencies(12.0) | {"p99": None, "p99.9": None}
    step = given.step(latency_ms=few)
    step = replace(step, transactions=[replace(step.transactions[0], latency_ms=few)])
    text = page(given.experiment([given.run([step])])).text
    assert "–*" in text and format.TOO_SMALL in text
    assert format.TOO_SMALL not in Page(usual()).text


def test_runs_of_two_experiments_in_folders_of_one_name_keep_their_marks():
    whole, other = given.buffer_pool().runs[:2]
    again = [changed_step(step, run=whole.folder) for step in other.steps]
    cut = replace(other, folder=whole.folder, incomplete_because="Ctrl-C", steps=again)
    experiment = given.experiment([whole, cut])
    words = [[mark_word(mark) for mark in marks(run, step)] for run in experiment.runs for step in run.steps]
    assert ["incomplete" in found for found in words] == [False, True]


def test_the_mark_of_an_incomplete_run_is_hollow():
    whole, run = given.buffer_pool().runs[:2]
    short = invalid(ValidityKind.ENDED_EARLY, measured_s=12, planned_s=60.0)
    cut = replace(run, incomplete_because="Ctrl-C", steps=[changed_step(run.steps[0], invalid=[short])])
    [first, *_] = charts(given.experiment([whole, cut]))["axis"]
    assert [symbol.endswith("-open") for symbol in first.plotly["data"][0]["marker"]["symbol"]] == [False, True]


def test_a_row_without_a_known_pool_has_its_users():
    step = given.step(buffer_pool_bytes=None, buffer_pool_share=None)
    assert f'<span class="settings">{step.users} users</span>' in render(given.experiment([given.run([step])]))


def test_without_steps_and_findings_a_page_says_so():
    cut = replace(given.run([given.step()]), steps=[], incomplete_because="Ctrl-C")
    assert "No finding" in page(given.experiment([cut], emulated=True)).text


@pytest.mark.parametrize(
    ("field", "doubt", "word"),
    [("driver_bound", given.DRIVER_BOUND, "driver-bound"), ("invalid", given.FOREIGN_IO, "invalid")],
)
def test_doubts_are_marked_and_explained(field, doubt, word):
    html = render(given.experiment([given.run([given.step(**{field: [doubt]})])]))
    assert sentence(doubt) in Page(html).text and any(word in row for row in rows_with(html, "cap 5%"))


def test_counters_that_disagree_are_marked():
    step = given.step(device_io=given.io(reads=50_000, source="device"))
    html = render(given.experiment([given.run([step])]))
    assert re.search(r'class="apart">\+3\.9.%', html)
    assert 'class="apart"' not in usual()


def test_counters_sampled_over_different_seconds_are_compared_per_second():
    late = given.io(reads=48_113 // 60 * 58, source="device", seconds=58.0)
    (row,) = agreement(given.experiment([given.run([given.step(device_io=late)])]), writes=False).rows
    assert str(row[4]) in ("0.0" + format.NBSP + "%", "−0.1" + format.NBSP + "%") and row[4].kind == ""


def test_a_device_that_holds_data_and_log_is_compared_with_both():
    """The bare demo device is one disk: its writes are those of data files and WAL together."""
    written = given.io(writes=4_021 + 7_402, write_bytes=(4_021 + 4_021) * 8192, source="device")
    step = given.step(emulated_roles=(), device=given.VDA, device_io=written, wal_device_io=None)
    (row,) = agreement(given.experiment([given.run([step])]), writes=True).rows
    assert row[1] == "data + WAL"
    assert [str(cell) for cell in row[2:5]] == ["190", "190", "0.0" + format.NBSP + "%"]


def test_errors_and_broken_conditions_are_listed():
    deadlocks = ErrorSummary("trade_result", "deadlock", "40P01", 1_204, 77, 3, "deadlock detected")
    burst = caution(
        ReadKind.ERROR_BURST,
        transaction="trade_result",
        error_class="deadlock",
        seconds=4,
        measured_s=40,
        most_in_a_second=50,
        given_up=0,
    )
    step = given.step(errors=[deadlocks], bursts=[burst])
    broken = [Condition(name="balances", holds=False, offending=7, seconds=0.2, detail="branch 3")]
    text = page(given.experiment([given.run([step], conditions=broken)])).text
    assert "Trade-Result deadlock 40P01 1,204 77 3 deadlock detected" in text
    assert sentence(burst) in text
    assert "balances BROKEN 7" in text and "branch 3" in text
    assert "No call failed" in Page(usual()).text


def test_secrets_of_a_server_are_not_in_the_page():
    experiment = given.buffer_pool()
    first = experiment.runs[0]
    server = first.manifest.server
    server = server.changed(settings=server.settings | {"primary_token": "hunter2"})
    experiment.runs[0] = replace(first, manifest=first.manifest.changed(server=server))
    assert "hunter2" not in render(experiment)


def test_a_cap_that_was_not_reached_is_marked():
    experiment = given.buffer_pool()
    first = experiment.runs[0]
    memory = first.manifest.memory
    memory = memory.changed(reached_bytes=memory.reached_bytes // 2)
    experiment.runs[0] = replace(first, manifest=first.manifest.changed(memory=memory))
    assert '<td class="apart">8' not in usual()
    assert re.search('<td class="(word )?apart">(<span>)?8.MiB', render(experiment))


def test_writing_replaces_the_target_whole_and_makes_its_folder(tmp_path):
    target = tmp_path / "new" / "report.html"
    assert write_report(given.buffer_pool(), target) == target
    assert write_report(given.devices(), target) == target
    assert "Which device?" in target.read_text() and "buffer pool does" not in target.read_text()
    assert [p.name for p in target.parent.iterdir()] == ["report.html"]


def _packed(html: str) -> str:
    return html.split('id="figures">')[1]
