"""The steps of a run in its manifest while it goes on: their times, and those that a search adds."""

from collections.abc import Collection, Sequence
from typing import Any

from stallmark.driver.load import LoadSpec
from stallmark.driver.searched_load import Judged, SearchPlan
from stallmark.driver.timeline import Timeline
from stallmark.record.manifest import Manifest
from stallmark.record.manifest.workload import Step, Waited
from stallmark.stats.ceiling_search import Ceiling, Next


def timed(steps: Sequence[Step], timeline: Timeline, waited: Sequence[Waited]) -> tuple[Step, ...]:
    """Return the steps with the times of the timeline, and how each of the first was waited for."""
    known = [*waited, *[None] * (len(steps) - len(waited))]
    return tuple(
        step.changed(begin_s=now.begin_s, measure_s=now.measure_s, end_s=now.end_s, waited=how)
        for step, now, how in zip(steps, timeline.steps, known, strict=True)
    )


def users_in(judged: Judged, plan: SearchPlan, loads: Sequence[LoadSpec], ended: Collection[str]) -> list[int]:
    """Return the users of each load in the step that is added; none where none is. A load that ended stays so."""
    if not isinstance(judged.then, Next):
        return []
    level = judged.then.level
    return [0 if load.name in ended else plan.users_of(load.name, level, load.users[0]) for load in loads]


def changes(made: Manifest, judged: Judged, plan: SearchPlan) -> dict[str, Any]:
    """Return what changes in the manifest when a level was judged: its step, the step that follows, or the answer."""
    steps, loads, search = list(made.steps), list(made.loads), made.search
    if judged.seen:
        steps[-1] = steps[-1].changed(searched=judged.seen)
    if isinstance(judged.then, Next):
        added, level = judged.timeline.steps[-1], judged.then.level
        rate = level if plan.of_rate and not loads else None
        step = steps[0].changed(name=added.name, users=added.users, rate=rate, waited=None, searched=None)
        steps.append(step)
        loads = [load.changed(counts=(*load.counts, plan.users_of(load.name, level, load.counts[0]))) for load in loads]
    if isinstance(judged.then, Ceiling) and search:
        answer = judged.then
        search = search.changed(outcome=answer.outcome.value, holds=answer.holds, breaks=answer.breaks)
    return {"steps": tuple(steps), "loads": tuple(loads), "search": search}
