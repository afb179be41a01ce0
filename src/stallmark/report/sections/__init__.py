"""The sections of a report, one file each: figures and tables.

Here is the head of a report: its answer, the summary of all steps, and the findings with verdicts on pairs.
"""

from collections.abc import Hashable, Iterable, Iterator, Sequence

from stallmark import format
from stallmark.analysis.compare.summary import PairComparison
from stallmark.analysis.experiment import ExperimentSummary, marks
from stallmark.analysis.finding import Finding
from stallmark.analysis.metrics import THROUGHPUT
from stallmark.analysis.step_summary import StepSummary
from stallmark.record.devices import DeviceLabel
from stallmark.record.manifest.workload import PHASES
from stallmark.report.columns import primary_of, step_labels, step_metrics
from stallmark.report.document import (
    Block,
    Bullets,
    Document,
    Fold,
    Note,
    Notes,
    Section,
    Shown,
    StepRow,
    Steps,
    Verdict,
    Words,
    is_invalid,
)
from stallmark.report.figures import looks
from stallmark.report.table import Cell, Rows, Table, numbers, word
from stallmark.report.text import experiment as words
from stallmark.report.text import mark_word, reading, sentence, term
from stallmark.report.text.device import EMULATED, device_names, injected

# The head of a document about runs on a database: its answer, the line under its title, and its banner.


def head_of(experiment: ExperimentSummary) -> Document:
    """Return a document that has no sections yet."""
    return Document(
        title=experiment.title,
        kind=experiment.scenario,
        question=experiment.answers,
        questions=experiment.questions,
        headline=headline(experiment),
        banner=banner(experiment),
        answer=sentence(experiment.answer) if experiment.answer else words.NO_FINDING,
        cautions=experiment.cautions,
        sections=[],
        brief=[],
    )


def headline(experiment: ExperimentSummary) -> list[str]:
    """Return the parts of the line under the title: server, workload, load, runs, start."""
    manifest = experiment.runs[0].manifest
    runs, steps = len(experiment.runs), experiment.steps
    asked = (experiment.queries.variants if experiment.queries else None) or ()
    variants = len(asked) or len({s.variant for s in steps})
    users = sorted({s.users for s in steps})
    return [
        text
        for text in (
            f"{manifest.server.product} {manifest.server.version}".strip(),
            f"{manifest.workload.name} workload" if manifest.workload.name else "",
            _load(experiment, users),
            f"{variants} variants, {runs} runs" if variants > 1 else f"{runs} run{'s' * (runs != 1)}",
            format.moment(experiment.runs[0].started),
        )
        if text
    ]


def _load(experiment: ExperimentSummary, users: list[int]) -> str:
    if compared := experiment.queries:
        return f"scale factor {compared.factor:g}, {PHASES[compared.phase]}"
    return f"{'–'.join(map(str, dict.fromkeys([users[0], users[-1]])))} users" if users else ""


def banner(experiment: ExperimentSummary) -> str | None:
    """Return a sentence about the emulated arrays, or None if nothing is emulated."""
    steps = experiment.steps
    emulated = [s for s in steps if s.emulated]
    if not (experiment.emulated or emulated):
        return None
    runs = len({s.run for s in emulated})
    if compared := experiment.queries:  # their phases may be too short to be steps
        runs = sum(variant.runs for variant in compared.variants if variant.emulated)
    return words.emulated_runs(runs, len(experiment.runs))


def emulated_devices(devices: Iterable[DeviceLabel]) -> list[Block]:
    """Return the line that names the emulated arrays; empty without any."""
    names = device_names(devices)
    return [Words(f": {injected(names=names)}", "", EMULATED)] if names else []


# The findings of a report, and the verdicts on its pairs.


def findings_section(findings: Sequence[Finding], *verdicts: Block) -> Section:
    texts = [sentence(finding) for finding in findings]
    listed: list[Block] = [Bullets(texts, "findings", numbered=True)] if texts else []
    return Section("findings", "Findings", [*verdicts, *listed] or [Words(reading.NO_FINDING)])


def verdict(pair: PairComparison) -> Verdict:
    notes = [*pair.cautions, *([pair.cause.finding] if pair.cause else [])]
    return Verdict(pair.verdict, term(pair.verdict), sentence(pair.finding), [sentence(note) for note in notes])


# The table of steps: the metrics of each, and the marks that a reader must know before believing them.


def summary_section(experiment: ExperimentSummary, *, devices: bool) -> Section:
    """Return the metrics of every step; with `devices` emulated steps are marked."""
    steps = steps_table(experiment, devices)
    missing = any(cell == format.MISSING for row in steps.rows for cell in row.cells)
    how = reading.columns(steps.main.title if primary_of(experiment) else None, missing)
    return Section("summary", "Figures by step", [steps, Words(how, "footnote"), *explained(steps.rows)])


def steps_table(experiment: ExperimentSummary, devices: bool = False) -> Steps:
    names, seen = step_labels(experiment), looks([s.variant for s in experiment.steps])
    metrics = step_metrics(experiment)
    headings = {metric.key: metric.heading for metric in metrics if metric.heading}
    rows = [
        StepRow(
            step,
            names[step.key],
            _settings(step),
            seen[step.variant],
            [metric.text(step) for metric in metrics],
            marks(run, step),
        )
        for run in experiment.runs
        for step in run.steps
    ]
    return Steps(list(headings.values()), headings[THROUGHPUT.key], rows, devices)


def _settings(step: StepSummary) -> str:
    """Return users and pool in one text, for windows too narrow for their columns."""
    users = f"{step.users} user{'s' * (step.users != 1)}"
    if step.pool_held_bytes is None:
        return users
    return f"{users}, {format.size(step.pool_held_bytes)} ({format.portion(step.pool_held_share)})"


def explained(rows: Sequence[StepRow]) -> list[Block]:
    """Return every mark once, with the steps it holds for: serious ones first, the others folded."""
    marked: dict[Finding, list[StepRow]] = {}
    for row in rows:
        for mark in row.marks:
            marked.setdefault(mark, []).append(row)
    serious: list[Note] = []
    others: list[Note] = []
    for mark, marked_rows in marked.items():
        steps = "all steps" if 1 < len(marked_rows) == len(rows) else ", ".join(row.name for row in marked_rows)
        if is_invalid(mark):
            serious.append(Note(steps, sentence(mark), mark_word(mark), serious=True))
        else:
            others.append(Note(steps, sentence(mark)))
    folded = Fold("Marks explained", [Notes(others)], printed=True)
    return [*([Notes(serious)] if serious else []), *([folded] if others else [])]


def in_brief(experiment: ExperimentSummary) -> tuple[Shown, list[Block]]:
    """Return the table of steps for a terminal, with footnote letters in its last column, and the footnotes."""
    steps = steps_table(experiment, any(step.emulated for step in experiment.steps))
    notes: dict[Hashable, list[Finding]] = {}
    for row in steps.rows:
        for mark in row.marks:
            notes.setdefault(_alike(mark, row.step), []).append(mark)
    # Letters replace marks, which would not fit a narrow terminal.
    letters = {alike: _letter(number) for number, alike in enumerate(notes)}
    items = list(_explained(letters, notes))
    return Shown(_with_letters(steps, letters), one_line=True), [Notes(items)] if items else []


def _with_letters(steps: Steps, letters: dict[Hashable, str]) -> Table:
    def emulation(row: StepRow) -> Cell:
        return Cell(EMULATED if row.step.emulated else "bare", "emulated")

    def footnotes(row: StepRow) -> Cell:
        return Cell("".join(dict.fromkeys(letters[_alike(mark, row.step)] for mark in row.marks)), "quiet")

    def title(column: int) -> str:
        heading = steps.headings[column]
        return f"{heading.title}\n{heading.unit or heading.subject}".strip()

    return Rows(steps.rows).table(
        word("step", lambda row: row.name),
        word("device", emulation, when=steps.devices),
        numbers(
            range(len(steps.headings)),
            title,
            lambda row, column: row.cells[column],
            {column: heading.importance or 0 for column, heading in enumerate(steps.headings)},
        ),
        word("", footnotes, when=bool(letters)),
    )


def _explained(letters: dict[Hashable, str], notes: dict[Hashable, list[Finding]]) -> Iterator[Note]:
    for alike, same in notes.items():
        others = len(set(same)) - 1
        more = f" {reading.similar_runs(others)}" if others else ""
        yield Note(letters[alike], f"{sentence(same[0])}{more}", mark_word(same[0]))


def _alike(mark: Finding, step: StepSummary) -> Hashable:
    """Return the key of the note that explains a mark. Serious marks share a note if their figures are equal, others if
    only the repeat differs."""
    # Serious marks differ in their figures, which decide whether a step is usable.
    if is_invalid(mark):
        return mark
    names = [fact for fact in mark.facts.values() if isinstance(fact, str)]
    return mark.kind, *names, step.variant, step.step


def _letter(number: int) -> str:
    return chr(ord("a") + number) if number < 26 else f"({number})"
