"""A comparison, or a plan of runs, in a terminal of any width from about 50 columns."""

from rich.console import Group, RenderableType
from rich.text import Text

from stallmark import format
from stallmark.analysis.compare.plan import RunsPlan
from stallmark.analysis.compare.summary import ComparisonSummary, PairComparison, Verdict
from stallmark.format import percent
from stallmark.report.comparison.tables import figures, transactions
from stallmark.report.table import Cell, InTerminal, Table, listed
from stallmark.report.text import comparison as words
from stallmark.report.text import sentence
from stallmark.report.text.comparison import amount
from stallmark.report.text.terms import term
from stallmark.stats.thresholds import CONFIDENCE, POWER, REPLICATES

STYLES = {
    Verdict.BETTER: "bold green",
    Verdict.WORSE: "bold red",
    Verdict.NO_DIFFERENCE: "bold",
    Verdict.INDICATIVE: "bold yellow",
    Verdict.NOT_COMPARABLE: "bold yellow",
}


def verdicts(found: ComparisonSummary) -> RenderableType:
    parts: list[RenderableType] = []
    for pair in found.pairs:
        parts += [*_pair(pair), Text("")]
    return Group(*parts, *(Text(sentence(one), style="yellow") for one in found.left_out))


def headline(pair: PairComparison) -> Text:
    """Return the verdict in a word and in a sentence."""
    return Text.assemble((term(pair.verdict).upper(), STYLES[pair.verdict]), "  ", sentence(pair.finding))


def _pair(pair: PairComparison) -> list[RenderableType]:
    parts: list[RenderableType] = [headline(pair), Text(""), InTerminal(figures(pair))]
    if len(pair.transactions) > 1:
        parts += [Text(""), InTerminal(transactions(pair))]
    marks: list[tuple[Cell, str]] = [
        (
            Cell("unknown", "apart") if check.passed is None else Cell("failed", "bad"),
            f"{words.CHECKS[check.kind][0]}: {sentence(check.found)}",
        )
        for check in pair.checks
        if check.passed is not True
    ]
    marks += [(Cell("caution", "apart"), sentence(one)) for one in pair.cautions]
    if pair.cause:
        marks.append((Cell("cause"), sentence(pair.cause.finding)))
    return [
        *parts,
        Text(""),
        *([listed(marks)] if marks else []),
        Text(f"{sentence(pair.method)} Order of the runs: {pair.order}. {words.adjustment(pair)}", style="dim"),
    ]


def planned(plan: RunsPlan) -> RenderableType:
    """Return the differences that N runs can show, and how many runs a wanted difference needs."""
    wanted = f"{plan.difference * 100:g} %"
    spread = f"{amount(plan.spread)} %"
    known = f"{amount(plan.spread_low)} to {amount(plan.spread_high)} %"
    if plan.runs is None:
        said = f"No number of runs that anybody makes shows {wanted}: runs scatter by {spread}."
    else:
        said = f"{plan.runs} runs of each variant show a difference of {wanted} (power {percent(POWER)})."
        if plan.runs_low != plan.runs_high:
            most = plan.runs_high if plan.runs_high is not None else "far more"
            said += f" Were the scatter at the ends of its interval, it would be {plan.runs_low} or {most}."
    header = ["runs of each", "show a difference of", *(["load for two variants"] if plan.run_s else [])]
    rows = [
        [str(runs), f"{amount(least)} %", *([format.seconds(plan.run_s * runs * 2)] if plan.run_s else [])]
        for runs, least in plan.can_show
    ]
    table = InTerminal(Table(header, list(rows), frozenset()))
    return Group(
        Text(said, style="bold"),
        Text(""),
        table,
        Text(""),
        Text(
            f"Scatter of {plan.primary} from run to run: {spread} (standard deviation of ln; {percent(CONFIDENCE)} "
            f"interval {known}), pooled over {plan.runs_seen} runs with {plan.df} degrees of freedom. Paired t-test, "
            f"two-sided {percent(1 - CONFIDENCE)}, by the noncentral t distribution; a verdict needs {REPLICATES} "
            f"runs of each in any case.{f' {sentence(plan.left_out)}' if plan.left_out else ''}",
            style="dim",
        ),
    )
