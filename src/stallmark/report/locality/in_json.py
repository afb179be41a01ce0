"""How a load reads, for machines."""

from dataclasses import asdict
from typing import Any

from stallmark.analysis.locality.summary import Locality
from stallmark.report.in_json import in_json


def locality_in_json(found: Locality) -> dict[str, Any]:
    """Return everything that the page shows."""
    return {
        "kind": "locality",
        "workload": found.workload,
        "scale": in_json(found.manifest.workload.scale),
        "runs": [run.folder for run in found.experiment.runs],
        "emulated": found.experiment.emulated,
        "data_bytes": found.data_bytes,
        "pools": [in_json(one) | {"estimated": one.estimated, "error": one.error} for one in found.pools],
        "slope": in_json(found.slope),
        "trace": in_json(found.traced),
        "server_io": in_json(found.io),
        "transactions": in_json(found.by_transaction),
        "published": [asdict(one) for one in found.published],
        "findings": in_json(found.findings),
        "cautions": in_json(found.cautions),
    }
