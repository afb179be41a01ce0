"""Steps as the analysis returns them, from the flat keys that `--json` gives their figures.

step_of(key="1", run="a", …, tps=412.3, data_io=io())
changed_step(step, tps=100.0, data_io=None)
"""

from dataclasses import fields, replace
from typing import Any, get_type_hints

from stallmark.analysis.step_summary import StepSummary
from stallmark.report.renderers import GROUPS

_OF_STEP = {name: kind for name, kind in get_type_hints(StepSummary).items() if kind in GROUPS}


def step_of(**flat: Any) -> StepSummary:
    groups = {name: kind(**_taken(kind, flat)) for name, kind in _OF_STEP.items()}
    return StepSummary(**flat, **groups)


def changed_step(step: StepSummary, **flat: Any) -> StepSummary:
    groups = {name: replace(getattr(step, name), **_taken(kind, flat)) for name, kind in _OF_STEP.items()}
    return replace(step, **flat, **groups)


def _taken(group: type, flat: dict[str, Any]) -> dict[str, Any]:
    """Take the group's figures out of `flat`."""
    keys = {GROUPS[group].get(field.name, field.name): field.name for field in fields(group)}
    return {name: flat.pop(key) for key, name in keys.items() if key in flat}
