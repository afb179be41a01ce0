"""Runs on data of several versions: they are not compared, since rows, inputs or procedures differ."""

from collections.abc import Iterable

from stallmark.analysis.finding import Finding, Kind, invalid
from stallmark.record.manifest import Manifest


class DataKind(Kind):
    MIXED_VERSIONS = "mixed_data_versions"


def mixed_versions(manifests: Iterable[Manifest]) -> Finding | None:
    """Return the reason not to compare runs on data of several versions; None if all versions that are known agree."""
    versions: dict[str, set[int]] = {}
    for one in manifests:
        for workload in [load.workload for load in one.loads if load.workload] or [one.workload]:
            if workload.version is not None:
                versions.setdefault(workload.name, set()).add(workload.version)
    mixed = next((name for name, known in versions.items() if len(known) > 1), None)
    return None if mixed is None else invalid(DataKind.MIXED_VERSIONS, workload=mixed, versions=sorted(versions[mixed]))
