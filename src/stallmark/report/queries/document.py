"""The report of runs of queries: its sections, and the parts that a terminal shows."""

from collections.abc import Iterator, Sequence

from stallmark import format
from stallmark.analysis.experiment import ExperimentSummary
from stallmark.analysis.queries import QueryCell, QueryComparison
from stallmark.analysis.read.queries import PHASES
from stallmark.report.columns import marks
from stallmark.report.document import (
    Block,
    Document,
    Fold,
    Grid,
    Key,
    Note,
    Notes,
    Section,
    Shown,
    Words,
    bullets,
    known,
    shown,
)
from stallmark.report.labels import step_labels
from stallmark.report.queries import figures, tables
from stallmark.report.queries.tables import compared, times
from stallmark.report.sections import (
    agreement,
    array,
    environment,
    errors,
    findings,
    server,
    steadiness,
    summary,
    waits,
)
from stallmark.report.sections.head import answer_of, banner, emulated_devices, headline
from stallmark.report.table import Cell, Rows, Table, number, word
from stallmark.report.text import experiment as experiment_words
from stallmark.report.text import queries as words
from stallmark.report.text import reading
from stallmark.report.text.device import EMULATED


def query_document(experiment: ExperimentSummary) -> Document:
    found, key = compared(experiment), figures.key(experiment)
    bars = figures.bars(experiment)
    title = f"Against {found.baseline}" if len(found.variants) > 1 else "Run times"
    failures = shown(tables.failures(experiment), "Queries that failed") or [Words(reading.NO_QUERY_FAILED)]
    return Document(
        title=experiment.title,
        kind=experiment.scenario,
        question=experiment.answers,
        questions=experiment.questions,
        headline=headline(experiment),
        banner=banner(experiment),
        answer=answer_of(experiment),
        lead=[Key(key), bars[0]] if bars else [],
        no_slide=experiment_words.NO_SLIDE,
        key=key,
        cautions=experiment.cautions,
        sections=known(
            _summary(experiment),
            Section("relative", title, [Key(key), *bars[1:]]),
            findings.section(experiment.findings),
            _parallelism(experiment),
            array.section(experiment),
            _queries(experiment),
            steadiness.service_level_section(experiment, reading.SERVICE_LEVEL_BY_PHASE),
            waits.streams_section(experiment),
            agreement.reads_section(experiment),
            server.section(experiment, "queries"),
            errors.section(experiment, failures),
            environment.section(experiment),
        ),
        brief=list(_brief(experiment, found)),
    )


def _summary(experiment: ExperimentSummary) -> Section:
    figures_of_each = Shown(tables.variants(experiment), "Figures of each variant")
    return Section("summary", "Summary", [figures_of_each, *summary.explained(summary.summary_rows(experiment))])


def _parallelism(experiment: ExperimentSummary) -> Section:
    curves = figures.curves(experiment)
    blocks = [Words(reading.PARALLEL, "lead"), Key(figures.key(experiment)), Grid(curves, small=True)]
    return Section("dop", "By degree of parallelism", blocks if curves else [])


def _queries(experiment: ExperimentSummary) -> Section:
    every = tables.everything(experiment)
    footnote = " ".join(filter(None, [reading.PLANS, tables.driver(experiment)]))
    parts = [
        Shown(tables.by_query(experiment), "Run time of every query, by variant"),
        *(
            Fold(f"Every figure: {name}", [Shown(table, f"Queries of {name}")], open=len(every) <= 2)
            for name, table in every
        ),
        Words(footnote, "footnote"),
        *shown(tables.streams(experiment), "Streams", "Streams of the throughput runs"),
    ]
    return Section("queries", "Queries", parts)


def _brief(experiment: ExperimentSummary, found: QueryComparison) -> Iterator[Sequence[Block]]:
    yield [Words(experiment.title, "main"), Words(experiment.answers, "quiet")]
    yield [
        Shown(_variants_in_brief(found)),
        Words(words.figures_in_brief(PHASES[found.phase], found.baseline), "quiet"),
    ]
    footnotes = []
    if len(found.variants) > 1:
        names = [f"{chr(ord('A') + number)}: {variant.name}" for number, variant in enumerate(found.variants)]
        footnotes.append(Words(words.letters(names), "quiet"))
    if any(cell.plan_changed for variant in found.variants for cell in variant.cells):
        footnotes.append(Words(words.OTHER_PLAN, "quiet"))
    yield [Shown(_run_times(found)), *footnotes]
    yield steadiness.outcomes(experiment)
    yield bullets(experiment.findings)
    yield _marked(experiment)
    yield emulated_devices(variant.device for variant in found.variants if variant.emulated)


def _variants_in_brief(found: QueryComparison) -> Table:
    return Rows(found.variants).table(
        word("variant", lambda variant: f"{variant.name} {EMULATED}" if variant.emulated else variant.name),
        number("pool", lambda variant: variant.buffer_pool_bytes, format.size),
        number("power", lambda variant: variant.power),
        number("throughput", lambda variant: variant.throughput),
        number("composite", lambda variant: variant.composite),
        number(
            "relative", lambda variant: "baseline" if variant is found.baseline_variant else times(variant.relative)
        ),
    )


def _run_times(found: QueryComparison) -> Table:
    """Return the run times. Letters stand for variants, whose names are too long for columns."""
    letters = [chr(ord("A") + number) for number in range(len(found.variants))]
    rows: list[Sequence[str | Cell]] = []
    for query in found.names:
        asked = dict.fromkeys(cell.dop for one in found.variants for cell in one.cells if cell.query == query)
        for dop in asked:
            cells = [_seconds(variant.cell(query, dop), number) for number, variant in enumerate(found.variants)]
            rows.append([query if dop is None else f"{query}, DOP {dop}", *cells])
    return Table(["query", *([f"{letter}\ns" for letter in letters] if len(letters) > 1 else ["s"])], rows)


def _seconds(cell: QueryCell | None, number: int) -> str | Cell:
    if cell is None:
        return format.NONE
    if cell.failed:
        return Cell("failed", "bad")
    relative = f" {times(cell.relative)}" if number and cell.relative else ""
    return f"{format.number(cell.seconds)}{relative}{'*' * cell.plan_changed}"


def _marked(experiment: ExperimentSummary) -> list[Block]:
    """Return what must be known before a phase's figures are believed, each with its phase."""
    names = step_labels(experiment)
    notes = [
        Note(names[step.key], mark.sentence, mark.word) for step in experiment.steps for mark in marks(experiment, step)
    ]
    return [Notes(notes)] if notes else []
