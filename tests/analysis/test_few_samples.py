"""Views of I/O that answer late: figures with their uncertainty, and no verdict within it."""

from dataclasses import replace
from io import StringIO
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from rich.console import Console
from support.comparisons import QUIET, made, only, with_step
from support.findings import facts_of
from support.pages import render, table
from support.synthetic import Step, Truth, make_run
from support.synthetic_steps import WAITS
from support.tables import get, put

from stallmark.analysis.compare.summary import CheckKind, PairKind
from stallmark.analysis.experiment import summarise
from stallmark.analysis.read.interval import ReadKind
from stallmark.analysis.step_summary import StepSummary
from stallmark.record.reader import Record
from stallmark.report.experiment import experiment_in_json

TWICE = Truth(steps=(Step(30), Step(60)), measured_s=20)


def late(folder: Path, truth: Truth, every: int = 4) -> Path:
    """Return a run whose view of files was read every few seconds, although planned every second."""
    made_run = make_run(folder, truth)
    rows = get(made_run, "server_io")
    kept = np.floor(rows["t"].to_numpy()) % every == 0
    return put(made_run, "server_io", rows.filter(pa.array(kept)))


def first_step(folder: Path) -> StepSummary:
    return summarise([Record(folder)]).runs[0].steps[0]


def test_figures_of_few_samples_are_given_with_their_uncertainty(tmp_path):
    step = first_step(late(tmp_path / "late", TWICE))
    dense = first_step(make_run(tmp_path / "dense", TWICE))
    assert dense.storage.uncertainty == 0 and not facts_of(dense.validity.gaps, ReadKind.FEW_SAMPLES)
    assert step.storage.uncertainty == pytest.approx(0.2, abs=0.01)
    [few] = facts_of(step.validity.gaps, ReadKind.FEW_SAMPLES)
    assert few["seconds"] == pytest.approx(4) and few["measured_s"] == 20
    for name in ("reads", "writes", "read_bytes"):
        assert getattr(step.storage.data, name) == pytest.approx(getattr(dense.storage.data, name), rel=0.2)
    assert step.storage.data.read_ms == pytest.approx(dense.storage.data.read_ms, rel=0.02)
    assert not step.validity.invalid


def test_the_uncertainty_stands_in_terminal_page_and_json(tmp_path):
    experiment = summarise([Record(late(tmp_path / "late", TWICE))])
    console = Console(width=4000, file=StringIO(), record=True)
    console.print(table(experiment))
    shown, page = console.export_text(), render(experiment)
    assert "±" in shown and "20 %" in shown and "few samples" in shown and "few samples" in page
    told = experiment_in_json(experiment)
    assert told["runs"][0]["steps"][0]["data_io"]["uncertainty"] == pytest.approx(0.2, abs=0.01)


@pytest.mark.parametrize(("device_share", "above"), [(0.1, True), (0.85, False)])
def test_time_above_the_device_is_more_than_few_samples_leave_open(tmp_path, device_share, above):
    real = {"name": "vda", "model": None, "rotational": True}
    truth = Truth(
        read_ms=27,
        device_share=device_share,
        waits=WAITS,
        emulated=False,
        device=real,
        steps=(Step(30), Step(30)),
        measured_s=20,
    )
    assert first_step(late(tmp_path / "late", truth)).cause.budget.is_above("read") is above


@pytest.mark.parametrize(("uncertainty", "passed"), [(None, False), (0.2, None), (0.01, False)])
def test_reads_that_differ_less_than_few_samples_leave_open_are_not_known_to_differ(sound, uncertainty, passed):
    runs = [
        with_step(
            run,
            reads_per_transaction=2.0 + (0.6 if run.steps[0].variant == "B" else 0) + run.manifest.repeat / 100,
            data_io=replace(run.steps[0].storage.data, uncertainty=uncertainty),
        )
        for run in made(sound, **QUIET)
    ]
    pair = only(runs)
    [check] = [one for one in pair.checks if one.kind is CheckKind.READS]
    assert check.passed is passed
    [reads] = [one for one in pair.others if one.name == "reads per transaction"]
    assert reads.is_shown is (False if passed is None else None), "sides that are not comparable have no ratio"
    if passed is None:
        assert any(CheckKind.READS in facts["checks"] for facts in facts_of(pair.cautions, PairKind.CHECKS_UNKNOWN))
