"""Causes in the report and the terminal."""

from dataclasses import replace

import pytest
from rich.console import Console
from support.synthetic import Truth, make_run

from stallmark.analysis.cause import explain
from stallmark.analysis.experiment import summarise
from stallmark.analysis.prediction import predict_throughputs
from stallmark.analysis.step_summary import NoteKind
from stallmark.errors import StallmarkError
from stallmark.record.reader import find_records
from stallmark.report.renderers import in_terminal
from stallmark.report.results import predictions_in_brief
from stallmark.report.sections import cause as cause_tables

WAITS = {"io": 0.72, "wal": 0.06, "lock": 0.04, "client": 0.03, "other": 0.01}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two devices, and one run whose sessions nobody looked at."""
    base = tmp_path_factory.mktemp("causes")
    make_run(base / "1", Truth(variant="slow array", read_ms=27, waits=WAITS))
    fast = Truth(variant="fast array", tps=870, read_ms=9, host_cpu=0.7, waits=WAITS | {"io": 0.52})
    make_run(base / "2", replace(fast, seed=2, sequence=2))
    make_run(base / "3", Truth(variant="blind", off=("waits",), sequence=3))
    return base


@pytest.fixture(scope="module")
def experiment(folder):
    return summarise(find_records([folder]))


@pytest.mark.thorough
def test_every_table_has_rows_as_long_as_its_header(experiment):
    slow, fast, _ = experiment.steps
    cause = explain([slow], [fast])
    of_steps = (
        cause_tables.response_times,
        cause_tables.predicted_throughput,
        cause_tables.laws,
        cause_tables.associations,
    )
    of_pairs = (cause_tables.parts, cause_tables.evidence, cause_tables.tests)
    for table in (*(make(experiment) for make in of_steps), *(make(cause) for make in of_pairs)):
        assert table and table.rows
        assert table.notes or "method" in table.header, "how it was computed can be reached"
        assert all(len(row) == len(table.header) for row in table.rows)
        assert all(index < len(table.header) for index in table.words)


def test_a_change_that_was_not_shown_has_no_share(experiment):
    slow = experiment.steps[0]
    table = cause_tables.parts(explain([slow], [slow]))
    assert table and {row[-1] for row in table.rows} == {"–"}


def test_what_if_says_what_its_predictions_were_worth(experiment):
    found = predict_throughputs(experiment.steps, [5.0, 1.0])
    assert [one.variant for one in found.found] == ["slow array", "fast array"]
    assert [one.read_ms for one in found.found[0].predictions] == [5.0, 1.0]
    assert {(test.model_of, test.variant) for test in found.tests} == {
        ("slow array", "fast array"),
        ("fast array", "slow array"),
    }
    [left_out] = found.left_out
    assert left_out.facts["steps"] == ["blind, steady"] and left_out.facts["because"].kind == NoteKind.NOT_LOOKED_AT
    assert not predict_throughputs(experiment.steps[2:], [1.0]).found
    with pytest.raises(StallmarkError, match="no measured step"):
        predict_throughputs([], [1.0])


@pytest.mark.parametrize("columns", [50, 80, 140])
def test_predictions_fit_terminals_of_any_width(experiment, columns):
    console = Console(width=columns)
    with console.capture() as shown:
        console.print(in_terminal(predictions_in_brief(predict_throughputs(experiment.steps, [5.0, 0.2]))))
    text = shown.get()
    assert all(len(line) <= columns for line in text.splitlines()) and "…" not in text
    assert "Tested on 2 pairs" in " ".join(text.split()) and "EMULATED" in text
