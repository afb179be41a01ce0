"""The report of a comparison: the verdict first, then its evidence."""

from collections.abc import Iterator

from stallmark.analysis.compare.summary import ComparisonSummary, PairComparison
from stallmark.analysis.experiment import ExperimentSummary
from stallmark.analysis.points import Point
from stallmark.report.comparison import figures, tables
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
    known,
)
from stallmark.report.picture import picture_from
from stallmark.report.sections import array, cause, environment
from stallmark.report.sections.findings import verdict
from stallmark.report.sections.head import banner
from stallmark.report.style import KeyItem, looks
from stallmark.report.table import Cell
from stallmark.report.text import comparison as words
from stallmark.report.text import reading, sentence


def comparison_document(experiment: ExperimentSummary, found: ComparisonSummary) -> Document:
    """Return the report of what `found` compares; `experiment` is the summary of its runs."""
    manifest, key = experiment.runs[0].manifest, _key(found)
    runs = sum(len(side.runs) for side in found.sides)
    headline = [
        f"{manifest.server.product} {manifest.server.version}".strip(),
        f"{manifest.workload.name} workload" if manifest.workload.name else "",
        f"{len(found.sides)} sides, {runs} runs",
        f"baseline {found.baseline}",
        f"primary metric {found.pairs[0].primary.name}",
    ]
    picture = picture_from(
        experiment,
        [(group.label, group.side, Point(tuple(group.steps))) for group in figures.groups(experiment, found)],
        {pair.b for pair in found.pairs if not pair.claim.comparable},
    )
    over_time = figures.time_figure(experiment, found)
    bars = [Key(key), figures.bar_figure(experiment, found), *([over_time] if over_time else [])]
    left_out = [Words(sentence(one), "footnote bad") for one in found.left_out]
    return Document(
        title=experiment.title,
        kind=experiment.scenario,
        question=experiment.answers,
        questions=experiment.questions,
        headline=[text for text in headline if text],
        banner=banner(experiment),
        answer=words.headline(found),
        lead=[Drawn(picture, reading.PICTURE)],
        key=key,
        cautions=experiment.cautions,
        sections=known(
            Section("verdict", "Verdict", [*map(verdict, found.pairs), *left_out]),
            Section("bars", "Side by side", bars),
            _ratios(found),
            cause.why_section(found.pairs),
            array.section(experiment),
            _evidence(experiment, found),
            environment.section(experiment),
        ),
        brief=comparison_in_brief(found),
    )


def _key(found: ComparisonSummary) -> list[KeyItem]:
    seen = looks([side.name for side in found.sides])
    return [KeyItem(side.name, seen[side.name].colour, None, "bar") for side in found.sides]


def _ratios(found: ComparisonSummary) -> Section:
    emulated = {side.name: side.emulated for side in found.sides}
    charts = [
        figures.ratio_figure(pair, number, emulated[pair.a] or emulated[pair.b])
        for number, pair in enumerate(found.pairs)
        if pair.primary.ratio is not None
    ]
    return Section("ratios", "How far apart", charts)


def _evidence(experiment: ExperimentSummary, found: ComparisonSummary) -> Section:
    blocks: list[Block] = []
    for pair in found.pairs:
        sides = f"{pair.b} against {pair.a}"
        users = f", {pair.users} users" if len(found.pairs) > 1 else ""
        open_checks = tables.checks(pair, holding=False)
        blocks += [
            Title(f"{sides}{users}: may they be compared?"),
            Words(tables.held(pair)),
            *([Shown(open_checks, f"Checks of {sides} that do not hold")] if open_checks.rows else []),
            Fold("Every check", [Shown(tables.checks(pair), f"Checks of {sides}")]),
            Words(words.method(pair), "footnote"),
        ]
    blocks += [
        Words(words.METHODS, "footnote"),
        Title("What differs by intent"),
        Shown(tables.intent(found), "What the sides differ in by intent"),
        Title("Every run"),
        Shown(tables.runs(experiment, found), "Every run and its figures"),
    ]
    return Section("evidence", "Evidence", blocks, tables.brief(found))


def comparison_in_brief(found: ComparisonSummary) -> Brief:
    made = [f"{side.name}: {', '.join(map(sentence, side.differs))}" for side in found.sides if side.differs]
    left_out = [Words(sentence(one), "apart") for one in found.left_out]
    pairs = [part for pair in found.pairs for part in _pair_in_brief(pair)]
    return [*pairs, [*(Words(line, "quiet") for line in made), *left_out]]


def _pair_in_brief(pair: PairComparison) -> Iterator[list[Block]]:
    yield [verdict(pair)]
    yield [Shown(tables.figures(pair))]
    if len(pair.transactions) > 1:
        yield [Shown(tables.transactions(pair))]
    notes = list(_notes(pair))
    yield [*([Notes(notes)] if notes else []), Words(words.method(pair), "quiet")]


def _notes(pair: PairComparison) -> Iterator[Note]:
    for check in pair.checks:
        if check.passed is not True:
            mark = Cell("unknown", "apart") if check.passed is None else Cell("failed", "bad")
            yield Note(mark, f"{words.CHECKS[check.kind][0]}: {sentence(check.found)}")
    yield from (Note(Cell("caution", "apart"), sentence(one)) for one in pair.cautions)
    if pair.cause:
        yield Note("cause", sentence(pair.cause.finding))
        yield from (Note(Cell("caution", "apart"), sentence(one)) for one in pair.cause.cautions)
