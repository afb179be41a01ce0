"""The answer above all findings, and the findings on storage: what they say of steps agrees with every run of them."""

from dataclasses import replace

import pytest
from support import report_summaries as summaries

from stallmark.analysis.conclusions import _bottleneck
from stallmark.analysis.points import Point

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
