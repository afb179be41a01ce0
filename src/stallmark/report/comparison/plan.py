"""A plan of runs: the differences that they can show."""

from stallmark import format
from stallmark.analysis.compare.plan import RunsPlan
from stallmark.report.document import Brief, Shown, Words
from stallmark.report.table import Table
from stallmark.report.text import comparison as words
from stallmark.report.text.comparison import amount


def plan_in_brief(plan: RunsPlan) -> Brief:
    """Return the differences that N runs can show, and how many runs a wanted difference needs."""
    header = ["runs of each", "show a difference of", *(["time for two variants"] if plan.run_s else [])]
    rows = [
        [str(runs), f"{amount(least)} %", *([format.seconds(plan.run_s * runs * 2)] if plan.run_s else [])]
        for runs, least in plan.can_show
    ]
    return [
        [Words(words.enough_runs(plan), "main")],
        [Shown(Table(header, list(rows), frozenset()))],
        [Words(words.scatter(plan), "quiet")],
    ]
