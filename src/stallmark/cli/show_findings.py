"""Shows what a check of a database found."""

from collections.abc import Sequence

from stallmark.cli.common import escape, item, out, tell
from stallmark.transactions.checks import ConditionResult

_MARKS = {True: "[green]holds   [/]", False: "[red]BROKEN  [/]", None: "[yellow]left out[/]"}


def show_findings(findings: Sequence[ConditionResult]) -> None:
    """A line for each, the exact ones first, with what it reads: little (cheap) or whole large tables (scan)."""
    _part("Exact", [f for f in findings if not f.statistical])
    _part("Statistical, each with the tolerance that its SQL states", [f for f in findings if f.statistical])
    if any(finding.holds is None for finding in findings):
        tell(out, "Left out is what holds for a database as it was loaded: transactions have run on this one.")


def _part(title: str, findings: Sequence[ConditionResult]) -> None:
    if findings:
        tell(out, f"[bold]{title}[/]")
    for finding in findings:
        took = "" if finding.holds is None else f" ({finding.seconds:.1f} s)"
        detail = f": {finding.offending:,} {finding.counted}, {finding.detail}" if finding.holds is False else ""
        item(f"{_MARKS[finding.holds]} {finding.cost:5}", f"{escape(finding.name + detail)}{took}")
