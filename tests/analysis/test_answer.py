"""Findings over steps and repeats: of every one, of some and which, or not known."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import report_summaries as summaries
from support.findings import facts_of
from support.steps import changed_step

from stallmark.analysis.bottleneck import IS_BOTTLENECK, DeviceKind
from stallmark.analysis.compare.claims import Claims
from stallmark.analysis.conclusions import _bottleneck, _cost_of_others, _flash, _unsteady
from stallmark.analysis.driver_bound import DriverKind
from stallmark.analysis.finding import ExperimentKind, Finding, caution, info
from stallmark.analysis.knee import knee
from stallmark.analysis.metrics import Point, points, step_names
from stallmark.analysis.read.active_set import FlashUse
from stallmark.analysis.read.transactions import MaintenanceSummary
from stallmark.analysis.rules import Threshold, verdicts_over_steps
from stallmark.analysis.step_summary import StepSummary
from stallmark.report.text import sentence

BUSY = 0.95
LIMITS, FREE, BOTH, SEVERAL = (
    (kind, 0.2)
    for kind in (DeviceKind.LIMITS, DeviceKind.NOT_LIMITING, DeviceKind.WITH_CPUS, DeviceKind.ONE_OF_SEVERAL)
)
CPUS, TOLD_LITTLE, UNKNOWN = (DeviceKind.WITH_CPUS, BUSY), (DeviceKind.NOT_TOLD, 0.2), (None, 0.2)
Judged = tuple[DeviceKind | None, float]


def steps(name: str, *judged: Judged) -> Point:
    """Runs of one step by the verdict on the device, and how busy the CPUs were."""
    made = []
    for number, (kind, cpu) in enumerate(judged, 1):
        step = summaries.step(variant=name, key=f"{name}{number}", run=f"{name}{number}", repeat=number)
        facts = {"device": "data", "io_share": 0.5, "log_share": 0.1, "lock_share": 0.1, "progress_share": 0.6}
        facts |= {"device_share": 1.0, "above_share": 0.0, "busy_share": 0.5, "cpu_share": cpu, "cpu_own_share": cpu}
        facts |= {"gain_share": 1 / cpu - 1} if kind is DeviceKind.WITH_CPUS else {}
        if kind is DeviceKind.NOT_TOLD:
            facts = {"spent_in": "client", "share": 0.9}
        bottleneck = replace(
            step.bottleneck,
            device_verdict=info(kind, **facts) if kind else None,
            is_device=IS_BOTTLENECK.get(kind) if kind else None,
        )
        made.append(replace(step, bottleneck=bottleneck, server=replace(step.server, cpu_busy_share=cpu)))
    return Point(tuple(made))


def told_of(findings: list[Finding]) -> list[tuple[object, ...]]:
    return [
        (
            str(one.kind),
            one.facts.get("steps", one.facts.get("step")),
            *(one.facts[k] for k in ("runs", "of") if k in one.facts),
        )
        for one in findings
    ]


@pytest.mark.parametrize(
    ("a", "b", "every_step", "told"),
    [
        ([LIMITS] * 3, [LIMITS] * 3, True, [("storage_limits", None)]),
        ([LIMITS] * 3, [LIMITS] * 3, False, [("storage_limits", ["a", "b"])]),
        ([LIMITS] * 3, [UNKNOWN] * 3, True, [("storage_limits", ["a"]), ("storage_not_judged", ["b"])]),
        (
            [LIMITS, UNKNOWN, LIMITS],
            [UNKNOWN] * 3,
            True,
            [("storage_limits_in_some_runs", "a", 2, 3), ("storage_not_judged", ["a (1 of 3 runs)", "b"])],
        ),
        (
            [LIMITS, FREE, FREE],
            [FREE] * 3,
            True,
            [
                ("storage_limits_in_some_runs", "a", 1, 3),
                ("storage_does_not_limit", "a", 2, 3),
                ("storage_does_not_limit", "b", 3, 3),
            ],
        ),
        (
            [FREE, CPUS],
            [FREE, TOLD_LITTLE],
            True,
            [
                ("storage_does_not_limit", "a", 1, 2),
                ("storage_does_not_limit", "a", 1, 2),
                ("storage_does_not_limit", "b", 1, 2),
                ("storage_not_judged", ["b (1 of 2 runs)"]),
            ],
        ),
        ([SEVERAL], [LIMITS], True, [("storage_limits", ["b"])]),
        ([UNKNOWN], [UNKNOWN], True, [("storage_not_judged", None)]),
    ],
)
def test_storage_is_said_to_limit_only_the_steps_in_which_every_run_says_so(a, b, every_step, told):
    assert told_of(list(_bottleneck([steps("a", *a), steps("b", *b)], every_step))) == told


JUDGED = st.sampled_from([LIMITS, FREE, BOTH, CPUS, SEVERAL, TOLD_LITTLE, UNKNOWN])


@given(runs=st.lists(st.lists(JUDGED, min_size=1, max_size=3), min_size=1, max_size=4))
def test_every_run_is_counted_once_at_most_and_what_is_not_known_is_named(runs):
    found = [steps(f"s{number}", *judged) for number, judged in enumerate(runs)]
    findings = list(_bottleneck(found, every_step=True))
    names = [f"s{number}" for number in range(len(runs))]
    for name, judged in zip(names, runs, strict=True):
        limits = sum(kind is DeviceKind.LIMITS for kind, _ in judged)
        some = [one.facts["runs"] for one in findings if one.facts.get("step") == name and "verdict" not in one.facts]
        everywhere = [one for one in findings if one.kind is ExperimentKind.STORAGE_LIMITS]
        in_all = any(name in (one.facts["steps"] or names) for one in everywhere)
        assert in_all is (limits == len(judged)) and some == ([limits] if 0 < limits < len(judged) else [])
        others = [one for one in findings if one.facts.get("step") == name and "verdict" in one.facts]
        assert limits + sum(one.facts["runs"] for one in others) <= len(judged)
        assert all(one.facts["of"] == len(judged) for one in others)
    unknown = [kind in (None, DeviceKind.NOT_TOLD) for judged in runs for kind, _ in judged]
    told = facts_of(findings, ExperimentKind.STORAGE_NOT_KNOWN)
    assert bool(told) is any(unknown) and len({one["because"] for one in told}) == len(told)
    assert any(one["steps"] is None for one in told) is (all(unknown) and len(told) == 1)
    assert all(sentence(one) for one in findings)


def test_steps_are_named_with_the_runs_that_are_meant():
    a, b = steps("a", LIMITS, FREE, FREE), steps("b", LIMITS)
    every = [*a.steps, *b.steps]
    assert step_names(every, every) is None
    assert step_names([*a.steps], every) == ["a"]
    assert step_names([a.steps[0], b.steps[0]], every) == ["a (1 of 3 runs)", "b"]


def repeats(*changes: dict[str, object]) -> list[StepSummary]:
    return [
        changed_step(summaries.step(key=f"{number}", run=f"{number}", repeat=number), **more)
        for number, more in enumerate(changes, 1)
    ]


def test_flash_is_told_over_all_runs_that_have_it():
    use = FlashUse("cache", 1, 0.4, 0.5, 8.0, 0.0, None, None, None, 0.4, 0.4)
    warming = replace(use, share=0.6, read_ms=0.7, first_half=0.5, second_half=0.7, warming=True)
    [told] = facts_of(_flash(points(repeats({"flash": use}, {"flash": warming}, {}))), ExperimentKind.FLASH)
    assert (told["share"], told["read_ms"], told["runs"], told["of"]) == (0.5, 0.6, 2, 3)
    assert told["halves_share"] == [0.5, 0.7] and told["warming"] == 1
    [told] = facts_of(_flash(points(repeats({"flash": use}, {"flash": use}))), ExperimentKind.FLASH)
    assert told["halves_share"] is None and (told["runs"], told["of"]) == (2, 2)
    assert list(_flash(points(repeats({}, {})))) == []


def test_maintenance_is_told_over_all_runs():
    found = points(
        repeats(
            {"maintenance": MaintenanceSummary("backup", 1, 10.0, 0.5, False)},
            {"maintenance": MaintenanceSummary("backup", 3, 20.0, 0.7, True)},
        )
    )
    [told] = facts_of(_cost_of_others(found, Claims([])), ExperimentKind.DISTURBED)
    assert (told["done"], told["mean_s"], told["failed"], told["runs"]) == (4, 17.5, 1, 2)
    assert told["share"] == pytest.approx(0.6) and told["alone_per_s"] is None


@pytest.mark.parametrize(
    ("holds", "passed", "named"),
    [
        ([True, True], True, [0, 1]),
        ([True, None], None, [1]),
        ([None, None], None, [0, 1]),
        ([False, None], False, [0]),
    ],
)
def test_a_threshold_passes_if_every_step_keeps_it(holds, passed, named):
    judged = [Threshold("TPS > 5", "tps", f"{number}", 9.0, 5.0, one) for number, one in enumerate(holds)]
    [verdict] = verdicts_over_steps(judged)
    assert verdict.passed is passed and [one.step for one in verdict.steps] == [str(number) for number in named]


def test_users_only_queue_if_their_latency_grew_and_the_driver_kept_up():
    [run] = summaries.user_ramp().runs
    kinds = {one.kind for one in knee(points(run.steps), Claims([run]))}
    assert kinds == {ExperimentKind.MOST_USERS, ExperimentKind.KNEE}
    bound = [caution(DriverKind.EXECUTOR_CPU, machine=0, share=0.97)]
    for last in ({"driver_bound": bound}, {"latency_mean_ms": 1.0}, {"latency_mean_ms": None}):
        changed = [*run.steps[:-1], changed_step(run.steps[-1], **last)]
        found = list(knee(points(changed), Claims([run])))
        assert [one.kind for one in found] == [ExperimentKind.MOST_USERS]


@pytest.mark.parametrize(("tps", "left"), [(250.0, 250 / 611), (615.0, 1.0)])
def test_users_beyond_the_knee_are_not_said_to_only_queue_if_throughput_fell(tps, left):
    [run] = summaries.user_ramp().runs
    _, found = knee(points([*run.steps[:-1], changed_step(run.steps[-1], tps=tps)]), Claims([run]))
    assert found.facts["last_share"] == pytest.approx(left)


def test_a_load_that_was_unsteady_in_some_runs_is_said_of_these():
    assert list(_unsteady(repeats({}, {}))) == []
