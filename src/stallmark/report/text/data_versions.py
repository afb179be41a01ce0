"""The wording of what data of several versions differ in."""

from collections.abc import Sequence

from stallmark.analysis.finding import DataKind
from stallmark.format import listed
from stallmark.report.text import says

_NEW_ROWS_AND_INPUTS = {"brokerage": 3}
"""The version with which both changed, by workload. Of others it is known only that one of three did."""


@says(DataKind.MIXED_VERSIONS)
def _(workload: str, versions: Sequence[int]) -> str:
    return (
        f"The runs are not compared: the data of the {workload} were built by data version "
        f"{listed(list(map(str, versions)))}, with {changes(workload, versions)}. Compare runs of one version alone."
    )


def changes(workload: str, versions: Sequence[int]) -> str:
    """Return what differs between some versions of a workload's data."""
    changed = _NEW_ROWS_AND_INPUTS.get(workload)
    if changed is not None and min(versions) < changed <= max(versions):
        return "other rows and other inputs"
    return "other rows, inputs or procedures"
