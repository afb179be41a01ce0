"""A sizing for machines."""

from typing import Any

from stallmark.analysis.sizing.candidate import CandidateAnswer
from stallmark.analysis.sizing.summary import SizingSummary
from stallmark.report.in_json import in_json

_FIGURES = ("standing", "low", "high", "middle", "emulated", "memory_bytes", "per_s", "replay", "stand_in")


def sizing_in_json(found: SizingSummary) -> dict[str, Any]:
    """Return everything that the report shows."""
    return {
        "kind": "sizing",
        "need": in_json(found.need),
        "demand": in_json(found.demand),
        "service_level": in_json(found.service_level),
        "carried": found.carried,
        "candidates": [
            _candidate(one) | {"answer": in_json(said)}
            for one, said in zip(found.candidates, found.answers, strict=True)
        ],
        "today": _candidate(found.today) if found.today else None,
        "profile": str(found.profile.folder) if found.profile else None,
        "findings": in_json(found.findings),
        "memory": in_json(found.memory),
        "cautions": in_json(found.cautions),
        "played": in_json(found.played),
        "untested": in_json(found.untested),
    }


def _candidate(one: CandidateAnswer) -> dict[str, Any]:
    own = one.sizing.candidate
    units = {"cost": own.cost, "watts": own.watts, "rack_units": own.rack_units}
    return {
        "name": one.name,
        "folder": str(one.folder),
        "status": one.sizing.status,
        **{name: in_json(getattr(one, name)) for name in _FIGURES},
        **units,
        **{f"per_s_per_{name}": one.per_s_of(unit) for name, unit in units.items()},
        "matched": in_json(one.sizing.stand_in.matched) if one.sizing.stand_in else None,
    }
