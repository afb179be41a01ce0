import re
from dataclasses import replace

import pytest
from support import report_summaries as given
from support.steps import changed_step
from support.terminal import show

from stallmark import format
from stallmark.analysis.bottleneck.device_verdict import device_verdict
from stallmark.report.text import sentence


@pytest.mark.parametrize("width", [60, 80, 100, 140, 200])
@pytest.mark.parametrize("experiment", [given.buffer_pool(), given.buffer_pool(3), given.user_ramp(), given.devices()])
def test_every_step_is_one_line_with_whole_numbers(experiment, width):
    text = show(experiment, width)
    lines = text.splitlines()
    assert max(map(len, lines)) <= width
    start = next(i for i, line in enumerate(lines) if line.startswith("step")) + 1
    rows = lines[start : start + len(experiment.steps)]
    for row, step in zip(rows, experiment.steps, strict=True):
        assert re.search(rf"(^|\s){re.escape(format.number(step.throughput.tps))}(\s|$)", row), row
        assert format.number(step.latency.percentiles_ms["p95"]) in row.split()
        assert ("EMULATED" in row.split()) == step.emulated
        assert "…" not in row[30:]


def test_a_narrow_window_keeps_the_important_columns_and_names_the_others():
    text = show(given.buffer_pool(), 60)
    header = text.split("cap 5%")[0]
    for name in ("TPS", "p95", "read"):
        assert name in header
    assert "MB/s" not in header
    assert "MB/s" in text.split("Not shown at this width")[1]
    wide = show(given.buffer_pool(), 200)
    assert "MB/s" in wide.split("cap 5%")[0] and "Not shown" not in wide


@pytest.mark.parametrize("width", [60, 120])
def test_findings_and_marks_stand_below(width):
    experiment = given.buffer_pool()
    flat = " ".join(show(experiment, width).split())
    for words in map(sentence, (*experiment.findings, *(s.bottleneck.device_verdict for s in experiment.steps))):
        assert " ".join(words.split()) in flat
    assert "EMULATED: 8 spindles, 4 ms" in flat


def test_what_is_much_the_same_of_repeats_is_said_once():
    runs = [
        replace(
            run,
            steps=[
                changed_step(step, device_verdict=device_verdict(None, 0.9 + at / 100, None, 0.1, False))
                for step in run.steps
            ],
        )
        for at, run in enumerate(given.buffer_pool(3).runs)
    ]
    experiment = replace(given.buffer_pool(3), runs=runs)
    flat = " ".join(show(experiment, 100).split())
    variants = {step.variant for step in experiment.steps}
    assert flat.count("The device is the bottleneck") == len(variants)
    assert flat.count("Similar in 2 other runs.") == len(variants)


def test_nothing_is_emulated_nothing_says_so():
    assert "EMULATED" not in show(given.devices(), 100)


def test_missing_values_and_markup_in_names():
    step = given.step(
        variant="[red]cap[/red]", latency_ms=given.latencies(9.0) | {"p99": None}, data_io=None, hit_share=None
    )
    text = show(given.experiment([given.run([step])]), 200)
    assert "[red]cap[/red]" in text
    assert "–*" in text and format.TOO_SMALL in text


def test_an_incomplete_run_is_marked_with_its_reason():
    runs = given.buffer_pool().runs
    cut = replace(runs[0], incomplete_because="the run was cut by Ctrl-C")
    assert "incomplete: the run was cut by Ctrl-C" in " ".join(show(given.experiment([cut, *runs[1:]]), 80).split())


def test_an_experiment_without_steps_is_still_shown():
    run = replace(given.run([given.step()]), steps=[], incomplete_because="Ctrl-C")
    assert "How much buffer pool" in show(given.experiment([run], emulated=True), 80)
