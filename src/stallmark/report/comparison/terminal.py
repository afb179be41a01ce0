"""A comparison, and a plan of runs, in a terminal of any width from about 50 columns."""

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from stallmark import format
from stallmark.analysis.compare.plan import RunsPlan
from stallmark.analysis.compare.summary import ComparisonSummary, PairComparison, Ratio, Verdict
from stallmark.format import percent
from stallmark.report.text import comparison as words
from stallmark.report.text import sentence
from stallmark.report.text.comparison import amount
from stallmark.stats.thresholds import CONFIDENCE, POWER, REPLICATES

STYLES = {
    Verdict.BETTER: "bold green",
    Verdict.WORSE: "bold red",
    Verdict.NO_DIFFERENCE: "bold",
    Verdict.INDICATIVE: "bold yellow",
    Verdict.NOT_COMPARABLE: "bold yellow",
}
WIDE = 96
"""Columns from which p-values have room beside the intervals."""


def verdicts(found: ComparisonSummary) -> RenderableType:
    return _Comparison(found)


def headline(pair: PairComparison) -> Text:
    """The verdict in a word and in a sentence."""
    return Text.assemble((pair.verdict.upper(), STYLES[pair.verdict]), "  ", sentence(pair.finding))


class _Comparison:
    def __init__(self, found: ComparisonSummary):
        self.found = found

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        parts: list[RenderableType] = []
        for pair in self.found.pairs:
            parts += [*_pair(pair, options.max_width >= WIDE), Text("")]
        parts += [Text(sentence(one), style="yellow") for one in self.found.left_out]
        yield Group(*parts)


def _pair(pair: PairComparison, wide: bool) -> list[RenderableType]:
    parts: list[RenderableType] = [headline(pair), Text(""), _figures(pair, wide)]
    if len(pair.transactions) > 1:
        parts += [Text(""), _transactions(pair)]
    parts.append(Text(""))
    for check in pair.checks:
        if check.passed is not True:
            mark = Text("failed ", "bold red") if check.passed is False else Text("unknown", "yellow")
            parts.append(_item(mark, f"{words.CHECKS[check.kind][0]}: {sentence(check.found)}"))
    parts += [_item(Text("caution", "yellow"), sentence(one)) for one in pair.cautions]
    if cause := pair.cause:
        parts.append(_item(Text("cause  "), sentence(cause.finding)))
    parts.append(
        Text(f"{sentence(pair.method)} Order of the runs: {pair.order}. {words.adjustment(pair)}", style="dim")
    )
    return parts


def _figures(pair: PairComparison, wide: bool) -> RenderableType:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    table.add_column(f"A: {pair.a}\nB: {pair.b}", min_width=12)
    for title in ("A", "B", "B to A", "interval", *(("p",) if wide else ())):
        table.add_column(title, justify="right", no_wrap=True, vertical="bottom")
    for one in (pair.primary, *pair.others):
        if one.a is None and one.b is None:
            continue
        table.add_row(*_row(one, wide, one is pair.primary))
    return table


def _row(one: Ratio, wide: bool, primary: bool) -> list[Text]:
    style = "bold" if primary else "dim" if one.shown is False else ""
    cells = [
        words.named(one),
        words.value(one, one.a),
        words.value(one, one.b),
        words.change(one),
        words.reach(one).removesuffix(" %"),
    ]
    return [Text(cell, style) for cell in (*cells, *((words.p_value(one.p_adjusted),) if wide else ()))]


def _transactions(pair: PairComparison) -> RenderableType:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    table.add_column("transaction")
    for title in ("rate", "interval", "mean latency", "interval"):
        table.add_column(title, justify="right", no_wrap=True)
    for one in pair.transactions:
        cells = [text for found in (one.rate, one.latency) for text in (words.change(found), words.reach(found))]
        table.add_row(one.transaction, *(text.removesuffix(" %") for text in cells))
    return table


def planned(plan: RunsPlan) -> RenderableType:
    """What N runs can show, and how many a wanted difference needs."""
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
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    for title in ("runs of each", "show a difference of", *(("load for two variants",) if plan.run_s else ())):
        table.add_column(title, justify="right")
    for runs, least in plan.can_show:
        more = [format.seconds(plan.run_s * runs * 2)] if plan.run_s else []
        table.add_row(str(runs), f"{amount(least)} %", *more)
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


def _item(mark: Text, text: str) -> RenderableType:
    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column()
    grid.add_row(mark, Text(text))
    return Padding(grid, (0, 0, 0, 0))
