"""A comparison, or a plan of runs, in a terminal of any width from about 50 columns."""

from rich.console import Group, RenderableType
from rich.text import Text

from stallmark import format
from stallmark.analysis.compare.plan import RunsPlan
from stallmark.analysis.compare.summary import ComparisonSummary, PairComparison, Verdict
from stallmark.report.comparison.tables import figures, transactions
from stallmark.report.table import Cell, InTerminal, Table, listed
from stallmark.report.text import comparison as words
from stallmark.report.text import sentence
from stallmark.report.text.comparison import amount
from stallmark.report.text.terms import term

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
    made = [f"{side.name}: {', '.join(map(sentence, side.differs))}" for side in found.sides if side.differs]
    return Group(
        *parts,
        *(Text(line, style="dim") for line in made),
        *(Text(sentence(one), style="yellow") for one in found.left_out),
    )


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
        marks += [(Cell("caution", "apart"), sentence(one)) for one in pair.cause.cautions]
    return [*parts, Text(""), *([listed(marks)] if marks else []), Text(words.method(pair), style="dim")]


def planned(plan: RunsPlan) -> RenderableType:
    """Return the differences that N runs can show, and how many runs a wanted difference needs."""
    header = ["runs of each", "show a difference of", *(["time for two variants"] if plan.run_s else [])]
    rows = [
        [str(runs), f"{amount(least)} %", *([format.seconds(plan.run_s * runs * 2)] if plan.run_s else [])]
        for runs, least in plan.can_show
    ]
    table = InTerminal(Table(header, list(rows), frozenset()))
    return Group(
        Text(words.enough_runs(plan), style="bold"), Text(""), table, Text(""), Text(words.scatter(plan), style="dim")
    )
