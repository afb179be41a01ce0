"""The summary in a terminal: a table that drops columns, never digits, as the window gets narrower."""

from collections.abc import Hashable, Sequence

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.text import Text

from stallmark import format
from stallmark.analysis.experiment import ExperimentSummary
from stallmark.analysis.step_summary import StepSummary
from stallmark.report.columns import Mark, marks, summary
from stallmark.report.comparison.terminal import headline
from stallmark.report.labels import step_labels
from stallmark.report.queries import terminal as query_terminal
from stallmark.report.sections.steadiness import outcomes
from stallmark.report.sections.thresholds import thresholds
from stallmark.report.sections.validity import gates_in_brief
from stallmark.report.table import Cell, InTerminal, Table, emulated_devices, fit, listed
from stallmark.report.text import sentence
from stallmark.report.text.device import EMULATED
from stallmark.report.text.reading import much_the_same, percentile_missing


def table(experiment: ExperimentSummary) -> RenderableType:
    """Return the summary for any width from about 50 columns: steps, findings, marks, and emulated arrays."""
    return query_terminal.table(experiment) if experiment.queries else _Summary(experiment)


class _Summary:
    def __init__(self, experiment: ExperimentSummary):
        self.experiment = experiment

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        notes = self._notes()
        steps = self._steps({key: _letter(i) for i, key in enumerate(notes)})
        shown, *_ = fit(steps, options.max_width)
        parts: list[RenderableType] = [
            Text(self.experiment.title, style="bold"),
            Text(self.experiment.answers, style="dim"),
            *map(headline, compared.pairs if (compared := self.experiment.comparison) else ()),
            Text(""),
            InTerminal(steps, one_line=True),
        ]
        if any(str(row[at]) == f"{format.NONE}*" for row in steps.rows for at in shown):
            parts.append(Text(percentile_missing(), style="dim"))
        parts += self._below(list(notes.values()))
        yield Group(*parts)

    def _steps(self, letters: dict[Hashable, str]) -> Table:
        """Return a table with a row for each step, and footnote letters in the last column."""
        names, shown, steps = step_labels(self.experiment), summary(self.experiment), self.experiment.steps
        marked = [dict.fromkeys(letters[_alike(m, s)] for m in marks(self.experiment, s)) for s in steps]
        before = ["step", *(["device"] if any(s.emulated for s in steps) else [])]
        rows: list[Sequence[str | Cell]] = [
            [
                names[s.key],
                *([Cell(EMULATED if s.emulated else "bare", "emulated")] if len(before) > 1 else []),
                *(c.write(s) + "*" * c.missing_percentile(s) for c in shown),
                *([Cell("".join(found), "quiet")] if any(marked) else []),
            ]
            for s, found in zip(steps, marked, strict=True)
        ]
        last = len(before) + len(shown)
        header = [*before, *(f"{c.title}\n{c.unit}".strip() for c in shown), *([""] if any(marked) else [])]
        importance = {at: column.importance for at, column in enumerate(shown, len(before)) if column.importance}
        return Table(header, rows, frozenset({*range(len(before)), last}), importance=importance)

    def _notes(self) -> dict[Hashable, list[Mark]]:
        """Return all marks, grouped by the note that explains them."""
        found: dict[Hashable, list[Mark]] = {}
        for step in self.experiment.steps:
            for mark in marks(self.experiment, step):
                found.setdefault(_alike(mark, step), []).append(mark)
        return found

    def _below(self, notes: Sequence[Sequence[Mark]]) -> list[RenderableType]:
        said: list[tuple[str | Cell, str | Text]] = []
        for i, alike in enumerate(notes):
            others = len(set(alike)) - 1
            more = f" {much_the_same(others)}" if others else ""
            said.append((_letter(i), Text.assemble((alike[0].word, "bold"), f": {alike[0].sentence}{more}")))
        parts = [
            *([listed([("•", sentence(one)) for one in self.experiment.findings])] if self.experiment.findings else []),
            *([InTerminal(gates, header=False)] if (gates := gates_in_brief(self.experiment)) else []),
            *([InTerminal(kept, header=False)] if (kept := thresholds(self.experiment)) else []),
            *([listed(levels)] if (levels := outcomes(self.experiment)) else []),
            *([listed(said)] if said else []),
            *emulated_devices([s.device for s in self.experiment.steps if s.emulated]),
        ]
        return [one for part in parts for one in (Text(""), part)]


def _alike(mark: Mark, step: StepSummary) -> Hashable:
    """Return the key of the note that explains a mark: a serious one by its figures, others alike in all repeats."""
    if mark.serious:
        return mark.finding
    names = [fact for fact in mark.finding.facts.values() if isinstance(fact, str)]
    return mark.finding.kind, *names, step.variant, step.step


def _letter(number: int) -> str:
    return chr(ord("a") + number) if number < 26 else f"({number})"
