"""The page for a slide: its words and its picture, as SVG and as PNG."""

import re
import struct
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from support import report_summaries as given
from support.pages import slide, write_slide
from support.steps import changed_step

from stallmark.analysis.step_summary import PARTS, Budget, StepCause
from stallmark.errors import StallmarkError
from stallmark.report.picture import CAUSES, picture_of
from stallmark.report.sections import head_of


def shapes(drawn: str, tag: str) -> list[ElementTree.Element]:
    return list(ElementTree.fromstring(drawn).iter(f"{{http://www.w3.org/2000/svg}}{tag}"))


def words(drawn: str) -> str:
    return " ".join(element.text or "" for element in shapes(drawn, "text"))


def with_causes(experiment, read_ms: float):
    parts = dict.fromkeys(PARTS, 1.0) | {"read": read_ms}
    cause = StepCause(Budget(sum(parts.values()), 1000, parts, 500, True))
    runs = [replace(run, steps=[replace(step, cause=cause) for step in run.steps]) for run in experiment.runs]
    return replace(experiment, runs=runs)


def test_the_bars_are_linear_and_the_parts_add_up_to_the_response_time():
    experiment = with_causes(given.buffer_pool(bare=False), 92.0)
    made = picture_of(experiment)
    assert [row.rate for row in made.rows] == pytest.approx([412.3, 547.8, 893.1, 2968.0])
    assert [sum(row.parts_ms) for row in made.rows] == pytest.approx([100.0] * 4)
    assert made.rows[0].parts_ms == pytest.approx([92.0, 1.0, 1.0, 1.0, 5.0])  # the rest is five parts
    drawn = shapes(slide(experiment), "rect")
    bars = [next(float(one.get("width")) for one in drawn if one.get("fill") == row.colour) for row in made.rows]
    assert [bar / bars[-1] for bar in bars] == pytest.approx([row.rate / 2968.0 for row in made.rows], abs=0.002)
    parts = [[float(one.get("width")) for one in drawn if one.get("fill") == colour][1:] for _, _, colour in CAUSES]
    assert [part[0] for part in parts] == pytest.approx(
        [92 * parts[1][0], *[parts[1][0]] * 3, 5 * parts[1][0]], rel=0.1
    )


def test_an_interval_is_drawn_over_three_runs_and_not_over_two():
    for repeats, known in ((1, False), (2, False), (3, True)):
        rows = picture_of(given.buffer_pool(repeats, bare=False)).rows
        assert all((row.low is not None) is known and len(row.runs) == repeats for row in rows)
        assert not known or all(row.low < row.rate < row.high for row in rows)
        said = [element.text for element in shapes(slide(given.buffer_pool(repeats, bare=False)), "text")]
        assert ("one run" in said) is (repeats > 1) and ("95 % interval" in said) is known


def test_without_sampled_sessions_no_cause_is_drawn():
    made = picture_of(given.buffer_pool(bare=False))
    assert all(row.parts_ms == [] and row.response_ms for row in made.rows)
    assert words(slide(given.buffer_pool(bare=False))).count("cause not known") == len(made.rows)


def test_what_nobody_measured_is_no_zero():
    step = changed_step(given.step(), latency_mean_ms=None)
    made = picture_of(given.experiment([given.run([step])]))
    assert made.rows[0].response_ms is None and "–" in words(slide(given.experiment([given.run([step])])))


def test_a_slide_says_the_question_the_answer_what_is_emulated_and_what_not_to_conclude(tmp_path):
    experiment = given.buffer_pool()
    said = words(slide(experiment))
    for one in (
        experiment.title,
        experiment.answers,
        head_of(experiment).answer,
        "EMULATED: 4 of 5 runs",
        "Two runs may differ",
    ):
        assert one in re.sub(r"\s+", " ", said), one
    assert "bare device" in said  # the fifth
    assert "EMULATED" not in words(slide(given.devices()))


def test_a_slide_is_written_by_its_suffix(tmp_path):
    experiment = given.experiment([given.run([given.step(variant="<b>&")])])
    assert "<b>" not in write_slide(experiment, tmp_path / "one.svg").read_text()
    png = write_slide(experiment, tmp_path / "one.png").read_bytes()
    assert png.startswith(b"\x89PNG") and struct.unpack(">II", png[16:24])[0] == 2640
    with pytest.raises(StallmarkError, match=r"\.svg or \.png"):
        write_slide(experiment, tmp_path / "one.pdf")
