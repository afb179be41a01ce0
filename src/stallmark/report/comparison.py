"""The report of a comparison, in Markdown too: the verdict first, then its evidence."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from stallmark import format
from stallmark.analysis.compare.sides import name_of
from stallmark.analysis.compare.summary import ComparisonSummary, PairComparison, Ratio
from stallmark.analysis.experiment import ExperimentSummary
from stallmark.analysis.metrics import METRICS, Point
from stallmark.format import percent
from stallmark.redact import markdown
from stallmark.report import comparison_figures as figures
from stallmark.report.columns import metric_columns
from stallmark.report.document import (
    Block,
    Brief,
    Document,
    Drawn,
    Fold,
    Key,
    Note,
    Notes,
    Section,
    Shown,
    Title,
    Words,
    non_empty,
)
from stallmark.report.figures import KeyItem, looks
from stallmark.report.picture import picture_from
from stallmark.report.sections import cause, environment, head_of, verdict
from stallmark.report.table import Cell, Rows, Table, in_markdown, number, percentile_notes, word
from stallmark.report.text import comparison as words
from stallmark.report.text import reading, sentence, term
from stallmark.report.text.checks import CHECKS
from stallmark.stats.thresholds import CONFIDENCE

# The evidence of a comparison as tables: what was checked, and every run with its figures.

WORDS = {True: Cell("holds", "good"), False: Cell("FAILED", "bad"), None: Cell("not known", "none")}


def holding_checks(pair: PairComparison) -> str:
    """Return the number of checks that hold."""
    return words.checks_passed(passed=sum(check.passed is True for check in pair.checks), checks=len(pair.checks))


def brief(comparison: ComparisonSummary) -> str:
    """Return the number of holding checks over all pairs, in a line."""
    passed = [check.passed is True for pair in comparison.pairs for check in pair.checks]
    return f"{sum(passed)} of {len(passed)} checks hold; every run"


def checks_table(pair: PairComparison, holding: bool = True) -> Table:
    """Return the checks of a pair, those that hold only with `holding`."""
    return Rows([check for check in pair.checks if holding or not check.passed]).table(
        word("check", lambda check: CHECKS[check.kind][0]),
        word("requirement", lambda check: CHECKS[check.kind][1]),
        word("", lambda check: WORDS[check.passed]),
        word("found", lambda check: sentence(check.found)),
        notes=[sentence(check.reason) for check in pair.failed if check.reason],
    )


def figures_table(pair: PairComparison) -> Table:
    """Return every figure of both sides, with B's ratio to A's; narrow terminals drop its p."""
    rows: list[Sequence[str | Cell]] = [
        [
            Cell(text, "main" if ratio is pair.primary else "quiet" if ratio.is_shown is False else "")
            for text in _cells(ratio)
        ]
        for ratio in (pair.primary, *pair.others)
        if ratio.a is not None or ratio.b is not None
    ]
    header = [f"A: {pair.a}\nB: {pair.b}", "A", "B", "B to A", "interval", "p"]
    return Table(header, rows, importance={5: 1})


def every_figure(pair: PairComparison) -> Table:
    """Return the figures of both sides with those of each type of transaction, for a ticket."""
    rows: list[Sequence[str | Cell]] = [
        [Cell(name, "main"), *cells] if ratio is pair.primary else [name, *cells]
        for ratio in (pair.primary, *pair.others)
        for name, *cells in [_cells(ratio)]
        if ratio.a is not None
    ]
    for types in pair.transactions:
        for ratio in (types.rate, types.latency):
            if ratio.a is not None:
                rows.append(
                    [f"{format.display_name(types.transaction)}: {ratio.name}, {ratio.unit}", *_cells(ratio)[1:]]
                )
    return Table(["", pair.a, pair.b, "change", f"{percent(CONFIDENCE)} interval", "p"], rows)


def _cells(ratio: Ratio) -> list[str]:
    figures = words.value(ratio, ratio.a), words.value(ratio, ratio.b), words.change(ratio), words.reach(ratio)
    return [words.metric_with_unit(ratio), *figures, words.p_value(ratio.p_adjusted)]


def transactions_table(pair: PairComparison) -> Table:
    """Return the changes of rate and latency from A to B, by type of transaction."""
    return Rows(pair.transactions).table(
        word("transaction", lambda types: format.display_name(types.transaction)),
        number("rate", lambda types: words.change(types.rate)),
        number("interval", lambda types: words.reach(types.rate), importance=2),
        number("mean latency", lambda types: words.change(types.latency)),
        number("interval", lambda types: words.reach(types.latency), importance=1),
    )


def intent(comparison: ComparisonSummary) -> Table:
    """Return the configuration of every side, so far as variants may differ in it."""
    return Rows(comparison.sides).table(
        word("side", lambda side: side.name),
        word("run with", lambda side: ", ".join(map(sentence, side.differs)) or "not recorded"),
    )


def runs_table(experiment: ExperimentSummary, comparison: ComparisonSummary) -> Table:
    """Return every run as a row, in the order in which they were made."""
    names = {folder: side.name for side in comparison.sides for folder in side.runs}
    names |= {
        folder: f"{names[folder]} (again)" for side in comparison.sides for folder in side.again if folder in names
    }
    made = [(run, step) for run in experiment.runs if name_of(run) in names for step in run.steps]
    # In the order of time, so that a drift over the runs shows.
    made.sort(key=lambda row: (row[0].started, row[1].key))
    compared = [key for key, metric in METRICS.items() if metric.compared and metric.heading]
    return Rows(made).table(
        word("run", lambda row: name_of(row[0])),
        word("side", lambda row: names[name_of(row[0])]),
        number("users", lambda row: str(row[1].users), when=len({(step.step, step.users) for _, step in made}) > 1),
        number(f"began ({format.zone()})", lambda row: format.second(row[0].started)),
        number("measured", lambda row: row[1].interval.measured_s, format.seconds),
        metric_columns(compared, lambda row: row[1]),
        notes=[words.RUNS, *percentile_notes((step.latency.percentiles_ms for _, step in made), ["p99"])],
    )


# The report of a comparison: the verdict first, then its evidence.


def comparison_document(experiment: ExperimentSummary, comparison: ComparisonSummary) -> Document:
    """Return the report of what `comparison` compares; `experiment` is the summary of its runs."""
    manifest, key = experiment.runs[0].manifest, _key(comparison)
    runs = sum(len(side.runs) for side in comparison.sides)
    headline = [
        f"{manifest.server.product} {manifest.server.version}".strip(),
        f"{manifest.workload.name} workload" if manifest.workload.name else "",
        f"{len(comparison.sides)} sides, {runs} runs",
        f"baseline {comparison.baseline}",
        f"primary metric {comparison.pairs[0].primary.name}",
    ]
    picture = picture_from(
        experiment,
        [(group.label, group.side, Point(tuple(group.steps))) for group in figures.groups(experiment, comparison)],
        {pair.b for pair in comparison.pairs if not pair.claim.comparable},
    )
    over_time = figures.time_figure(experiment, comparison)
    bars = [Key(key), figures.bar_figure(experiment, comparison), *([over_time] if over_time else [])]
    left_out = [Words(sentence(finding), "footnote bad") for finding in comparison.left_out]
    return replace(
        head_of(experiment),
        headline=[text for text in headline if text],
        answer=words.headline(comparison),
        lead=[Drawn(picture, reading.PICTURE)],
        key=key,
        sections=non_empty(
            Section("verdict", "Verdict", [*map(verdict, comparison.pairs), *left_out]),
            Section("bars", "Side by side", bars),
            _ratios(comparison),
            cause.differences_section(comparison.pairs),
            environment.array_section(experiment),
            _evidence(experiment, comparison),
            environment.environment_section(experiment),
        ),
        brief=comparison_in_brief(comparison),
    )


def _key(comparison: ComparisonSummary) -> list[KeyItem]:
    seen = looks([side.name for side in comparison.sides])
    return [KeyItem(side.name, seen[side.name].colour, None, "bar") for side in comparison.sides]


def _ratios(comparison: ComparisonSummary) -> Section:
    emulated = {side.name: side.emulated for side in comparison.sides}
    charts = [
        figures.ratio_figure(pair, number, emulated[pair.a] or emulated[pair.b])
        for number, pair in enumerate(comparison.pairs)
        if pair.primary.ratio is not None
    ]
    return Section("ratios", "Differences", charts)


def _evidence(experiment: ExperimentSummary, comparison: ComparisonSummary) -> Section:
    blocks: list[Block] = []
    several_steps = len({(pair.step, pair.users) for pair in comparison.pairs}) > 1
    for pair in comparison.pairs:
        sides = f"{pair.b} against {pair.a}"
        step = f", {words.step_name(pair.step, pair.users)}" if several_steps else ""
        open_checks = checks_table(pair, holding=False)
        blocks += [
            Title(f"{sides}{step}: may they be compared?"),
            Words(holding_checks(pair)),
            *([Shown(open_checks, f"Checks of {sides} that do not hold")] if open_checks.rows else []),
            Fold("All checks", [Shown(checks_table(pair), f"Checks of {sides}")]),
            Words(words.method(pair), "footnote"),
        ]
    blocks += [
        Words(words.METHODS, "footnote"),
        Title("Intended differences"),
        Shown(intent(comparison), "Intended differences between the sides"),
        Title("Every run"),
        Shown(runs_table(experiment, comparison), "Every run and its figures"),
    ]
    return Section("evidence", "Evidence", blocks, brief(comparison))


def comparison_in_brief(comparison: ComparisonSummary) -> Brief:
    made = [f"{side.name}: {', '.join(map(sentence, side.differs))}" for side in comparison.sides if side.differs]
    left_out = [Words(sentence(finding), "apart") for finding in comparison.left_out]
    pairs = [part for pair in comparison.pairs for part in _pair_in_brief(pair)]
    return [*pairs, [*(Words(line, "quiet") for line in made), *left_out]]


def _pair_in_brief(pair: PairComparison) -> Iterator[list[Block]]:
    yield [verdict(pair)]
    yield [Shown(figures_table(pair))]
    if len(pair.transactions) > 1:
        yield [Shown(transactions_table(pair))]
    notes = list(_notes(pair))
    yield [*([Notes(notes)] if notes else []), Words(words.method(pair), "quiet")]


def _notes(pair: PairComparison) -> Iterator[Note]:
    for check in pair.checks:
        if check.passed is not True:
            mark = Cell("unknown", "apart") if check.passed is None else Cell("failed", "bad")
            yield Note(mark, f"{CHECKS[check.kind][0]}: {sentence(check.found)}")
    yield from (Note(Cell("caution", "apart"), sentence(caution)) for caution in pair.cautions)
    if pair.cause:
        yield Note("cause", sentence(pair.cause.finding))
        yield from (Note(Cell("caution", "apart"), sentence(caution)) for caution in pair.cause.cautions)


# A comparison for a ticket: Markdown that every tracker shows.


def summary_for_a_ticket(comparison: ComparisonSummary, load: str = "") -> str:
    """Return verdicts, figures and the evidence behind them, of one of several loads under its name. No line ends with
    a break."""
    lines = ["## " + markdown(f"Stallmark: {f'{load}, ' if load else ''}{_title(comparison)}"), ""]
    for pair in comparison.pairs:
        lines += [*_pair(pair), ""]
    lines += [f"- {markdown(sentence(finding))}" for finding in comparison.left_out]
    for side in comparison.sides:
        about = f" ({', '.join(map(sentence, side.differs))})" if side.differs else ""
        emulated = ", EMULATED device" if side.emulated else ""
        runs = ", ".join(map(markdown, side.runs))
        lines.append(f"- **{markdown(side.name)}**{markdown(about)}{emulated}: {runs}")
    return "\n".join(lines).rstrip()


def _title(comparison: ComparisonSummary) -> str:
    others = [side.name for side in comparison.sides if side.name != comparison.baseline]
    return f"{', '.join(others)} against {comparison.baseline}"


def _pair(pair: PairComparison) -> Iterator[str]:
    yield f"**{term(pair.verdict).capitalize()}.** {markdown(sentence(pair.finding))}"
    yield ""
    yield from in_markdown(every_figure(pair))
    yield ""
    for check in pair.checks:
        mark = {True: "holds", False: "**FAILED**", None: "not known"}[check.passed]
        yield f"- {CHECKS[check.kind][0]}: {mark} ({markdown(sentence(check.found))})"
    for caution in pair.cautions:
        yield f"- Caution: {markdown(sentence(caution))}"
    if pair.cause:
        yield f"- Cause: {markdown(sentence(pair.cause.finding))}"
        for caution in pair.cause.cautions:
            yield f"- Caution: {markdown(sentence(caution))}"
    yield f"- {markdown(words.method(pair))}"
