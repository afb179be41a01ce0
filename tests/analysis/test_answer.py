"""The answer above all findings: what it says of a pair agrees with the verdict on that pair."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import report_summaries as summaries

from stallmark.analysis.answer import answer
from stallmark.analysis.compare.summary import Verdict
from stallmark.analysis.conclusions import _bottleneck, conclusions
from stallmark.analysis.kinds import ExperimentKind
from stallmark.analysis.points import Point
from stallmark.report.text import sentence

RUNS = summaries.buffer_pool(3, bare=False).runs
WORDS = {
    Verdict.NO_DIFFERENCE: "(no difference shown)",
    Verdict.INDICATIVE: "(indicative only)",
    Verdict.NOT_COMPARABLE: "is not comparable",
}


@given(verdicts=st.lists(st.sampled_from(Verdict), min_size=3, max_size=3))
def test_every_verdict_has_its_words_and_no_other(verdicts):
    names = list(dict.fromkeys(run.steps[0].variant for run in RUNS))
    pairs = [SimpleNamespace(b=name, verdict=verdict) for name, verdict in zip(names[1:], verdicts, strict=True)]
    judged: Any = SimpleNamespace(pairs=pairs)
    found = answer([], RUNS, judged)
    assert found is not None and found.kind == ExperimentKind.AGAINST_FIRST
    for (_, ratio, verdict), word in zip(found.facts["others"], sentence(found).split("“")[2:], strict=True):
        assert (ratio is None) is (verdict is Verdict.NOT_COMPARABLE)
        assert [words in word for words in WORDS.values()] == [verdict is each for each in WORDS]
        assert ("×" in word) is (ratio is not None)


LIMITS, FREE = (True, 0.2), (False, 0.2)
CPUS, UNKNOWN = (None, 0.95), (None, 0.2)
SOMETIMES = ("storage_limits_in_some_runs", "a")


def steps(name: str, *judged: tuple[bool | None, float]) -> Point:
    """Runs of one step by what is known of storage, and how busy the CPUs were."""
    made = []
    for is_device, cpu in judged:
        step = summaries.step(variant=name)
        bottleneck = replace(step.bottleneck, is_device=is_device)
        made.append(replace(step, bottleneck=bottleneck, server=replace(step.server, cpu_busy_share=cpu)))
    return Point(tuple(made))


@pytest.mark.parametrize(
    ("a", "b", "every_step", "told"),
    [
        ([LIMITS] * 3, [LIMITS] * 3, True, [("storage_limits", None)]),
        ([LIMITS] * 3, [LIMITS] * 3, False, [("storage_limits", ["a", "b"])]),
        ([LIMITS] * 3, [UNKNOWN] * 3, True, [("storage_limits", ["a"])]),
        ([LIMITS, UNKNOWN, LIMITS], [UNKNOWN] * 3, True, [SOMETIMES]),
        (
            [LIMITS, FREE, FREE],
            [FREE] * 3,
            True,
            [("storage_limits_in_some_runs", "a"), ("storage_does_not_limit", "b")],
        ),
        ([FREE, CPUS], [FREE, UNKNOWN], True, [("storage_does_not_limit", "a")]),
        ([UNKNOWN], [UNKNOWN], True, []),
    ],
)
def test_storage_is_said_to_limit_only_the_steps_in_which_every_run_says_so(a, b, every_step, told):
    findings = list(_bottleneck([steps("a", *a), steps("b", *b)], every_step))
    assert [(str(one.kind), one.facts.get("steps", one.facts.get("step"))) for one in findings] == told


@pytest.mark.parametrize(
    ("verdict", "compared"), [(Verdict.BETTER, True), (Verdict.NO_DIFFERENCE, True), (Verdict.NOT_COMPARABLE, False)]
)
def test_no_finding_compares_what_is_not_comparable(verdict, compared):
    runs = summaries.devices().runs
    _, *others = dict.fromkeys(step.variant for run in runs for step in run.steps)
    judged: Any = SimpleNamespace(pairs=[SimpleNamespace(b=name, verdict=verdict) for name in others])
    told = {str(one.kind) for one in conclusions("device", runs, judged)}
    alone = {str(one.kind) for one in conclusions("device", runs[:1])}
    assert bool(told - alone - {"spread_of_repeats", "one_run_each"}) is compared
