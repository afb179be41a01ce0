"""Steadiness, checkpoint cycles and service levels, wherever a reader looks."""

import json
import re

import numpy as np
import pytest
from support import report_summaries as given
from support.findings import facts_of, kinds_of
from support.pages import render
from support.synthetic_series import autoregressive
from support.terminal import show

from stallmark.analysis.cautions import CautionKind, cautions
from stallmark.analysis.conclusions import conclusions
from stallmark.analysis.experiment import marks
from stallmark.analysis.finding import ExperimentKind
from stallmark.analysis.read.times import Interval
from stallmark.analysis.service_level import judge_reads, make_objective
from stallmark.analysis.steady import Marks, cut_to_whole_cycles, judge
from stallmark.record.manifest.workload import Waited
from stallmark.report.document import is_invalid
from stallmark.report.experiment import experiment_in_json
from stallmark.report.sections import validity as steady
from stallmark.report.text import mark_word, sentence

RISING = autoregressive(600, 0.0, seed=1, noise=0.0) * np.linspace(1, 1.2, 600)
STEADY = autoregressive(600, 0.0, seed=1, noise=0.0)
LATE = np.where(np.arange(600) < 60, 0.5, 1.0) * STEADY
WAITED = Waited(at_least_s=30.0, at_most_s=900.0, seconds=900.0, steady=False)


def cycles(every_s: float):
    marks = Marks(np.arange(10.0, 700, every_s), "the server's count of checkpoints", 1.0)
    return cut_to_whole_cycles(Interval(0, 20, 620, 600.0, False), marks).cycles


def one(**more):
    return given.experiment([given.run([given.step(**more)])])


def text_of(page: str) -> str:
    return " ".join(re.sub(r"<[^>]*>", " ", page.split("<script")[0] + page.split("<body")[1]).split())


def test_a_load_that_never_became_steady_is_a_finding_a_caution_and_a_mark():
    experiment = one(steadiness=judge(RISING))
    (mark,) = [m for m in marks(experiment.runs[0], experiment.steps[0]) if mark_word(m) == "never steady"]
    assert is_invalid(mark) and "rose by 20" in sentence(mark)
    assert "never steady: It never became steady: TPS rose by 2" in " ".join(show(experiment, 100).split())
    [told] = facts_of(conclusions("variant", experiment.runs), ExperimentKind.NO_STEADY_STATE)
    assert (told["unsteady"], told["runs"]) == (1, 1)
    assert facts_of(cautions(experiment.runs), CautionKind.UNSTEADY) == [{"steps": None}]
    assert "never became steady" in render(experiment)


@pytest.mark.parametrize(
    ("more", "kind"),
    [
        ({"steadiness": judge(LATE)}, CautionKind.WARM_UP_MEASURED),
        ({"steadiness": judge(STEADY[:19])}, CautionKind.TOO_SHORT),
        ({"waited": WAITED}, CautionKind.NOT_STEADY_IN_TIME),
        ({"cycles": cycles(250)}, CautionKind.FEW_CHECKPOINTS),
    ],
    ids=["late", "short", "impatient", "cycles"],
)
def test_what_must_not_be_concluded_is_said_where_it_applies(more, kind):
    assert kind in kinds_of(cautions(one(**more).runs))
    sound = one(steadiness=judge(STEADY), waited=WAITED.changed(steady=True), cycles=cycles(100))
    assert kind not in kinds_of(cautions(sound.runs))


def test_a_steady_step_has_no_mark_and_all_its_figures_in_the_tables():
    waited = WAITED.changed(seconds=47.0, steady=True)
    experiment = one(steadiness=judge(STEADY), cycles=cycles(100), waited=waited, begin_s=110, end_s=610)
    assert not [m for m in marks(experiment.runs[0], experiment.steps[0]) if "steady" in mark_word(m)]
    table = steady.steadiness(experiment)
    (row,) = [[str(cell) for cell in row] for row in table.rows]
    assert len(row) == len(table.header) and row[1:4] == ["steady", "TPS", "600"]
    assert any("Mann-Kendall" in note and "30 batches" in note for note in table.notes)
    seconds = steady.seconds(experiment)
    (row,) = [[str(cell) for cell in row] for row in seconds.rows]
    assert row[1:] == ["110 to 610 s", "500", "600", "exactly 5", "47 s, steady", "none"]
    assert any("5 complete checkpoint cycles" in note for note in seconds.notes)
    assert "110 to 610 s" in render(experiment)


def test_records_from_before_there_was_any_of_it_still_report():
    experiment = one()
    assert steady.steadiness(experiment) is None and steady.service_levels(experiment) is None
    assert "Steadiness" not in render(experiment) and "SLO" not in show(experiment, 100)


@pytest.mark.parametrize(("limit_ms", "outcome"), [(20.0, "not met"), (50.0, "mean only")])
def test_the_service_level_is_in_the_terminal_the_report_and_the_json(limit_ms, outcome):
    level = judge_reads(make_objective(None, limit_ms, "p95"), [], given.io(read_ms=31.4))
    experiment = one(slo=level)
    terminal = " ".join(show(experiment, 100).split())
    assert f"SLO {outcome}" in terminal and "31.4 ms" in terminal and "This is a mean" in terminal
    assert steady.OUTCOMES[level.outcome] not in ("", "good"), "what only the mean shows is not green"
    page = text_of(render(experiment))
    assert f"p95 ≤ {limit_ms:g} ms {outcome} mean only 31.4 48,113" in page
    assert "a mean does not imply one" in page
    (step,) = json.loads(json.dumps(experiment_in_json(experiment)))["runs"][0]["steps"]
    assert (step["slo"]["outcome"], step["slo"]["figure"], step["slo"]["figure_ms"]) == (
        level.outcome,
        "mean_only",
        31.4,
    )
