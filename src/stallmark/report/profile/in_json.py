"""A profile for machines."""

from datetime import UTC, datetime
from typing import Any

from stallmark.analysis.profile.summary import ProfileSummary
from stallmark.report.in_json import in_json
from stallmark.report.profile.tables import hours_in_json


def profile_in_json(found: ProfileSummary) -> dict[str, Any]:
    """Return everything that the report shows; times in UTC, ISO 8601."""
    return {
        "kind": "profile",
        "folder": str(found.folder),
        "manifest": in_json(found.manifest),
        "begin": _iso(found.begin),
        "end": _iso(found.end),
        "seen_s": found.seen_s,
        "means": in_json(found.means),
        "percentiles_of_minutes": in_json(found.percentiles),
        "hours": hours_in_json(found),
        "busiest_windows": [in_json(one) | {"begin": _iso(one.begin), "end": _iso(one.end)} for one in found.windows],
        "peaks": {
            str(name): in_json(one) | {"begin": _iso(one.begin), "end": _iso(one.end)}
            for name, one in found.peaks.items()
        },
        "files": in_json(found.classes),
        "waits": {"classes": in_json(found.wait_classes), "types": in_json(found.wait_types)},
        "unseen": [in_json(one) | {"begin": _iso(one.begin), "end": _iso(one.end)} for one in found.unseen],
        "findings": in_json(found.findings),
        "memory": in_json(found.memory),
        "cautions": in_json(found.cautions),
    }


def _iso(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="seconds")
