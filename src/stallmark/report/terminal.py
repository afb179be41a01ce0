"""The summary in a terminal: a table that loses columns, never digits, as the window gets narrower."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from stallmark import format
from stallmark.analysis.summary import ExperimentSummary, StepSummary
from stallmark.report.columns import Column, Mark, marks, summary
from stallmark.report.comparison.terminal import headline
from stallmark.report.labels import EMULATED, device, step_labels
from stallmark.report.queries import terminal as query_terminal
from stallmark.report.sections.validity import Verdict, verdicts
from stallmark.report.terminal_service_level import service_levels
from stallmark.report.text import sentence
from stallmark.report.text.gates import allowed, figure

GUTTER = 2
NAME_MIN, NAME_MAX = 12, 34


def table(experiment: ExperimentSummary) -> RenderableType:
    """A renderable for any width from about 50 columns: steps, findings, marks, and what is emulated."""
    return query_terminal.table(experiment) if experiment.queries else _Summary(experiment)


@dataclass(frozen=True)
class _Line:
    """A step as text: its name, its cells by column, and a mark where it is emulated."""

    name: str
    cells: list[str]
    emulated: bool
    flags: str  # footnote letters


class _Summary:
    def __init__(self, experiment: ExperimentSummary):
        self.experiment = experiment
        self.columns = summary(experiment)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        notes = self._notes()
        lines = self._lines({key: _letter(i) for i, key in enumerate(notes)})
        shown, name_width = fit(lines, self.columns, options.max_width)
        parts: list[RenderableType] = [
            Text(self.experiment.title, style="bold"),
            Text(self.experiment.answers, style="dim"),
            *map(headline, compared.pairs if (compared := self.experiment.comparison) else ()),
            Text(""),
            self._table(lines, shown, name_width),
        ]
        if any(format.NONE + "*" in line.cells[i] for line in lines for i in shown):
            parts.append(Text(f"{format.NONE}* {format.TOO_SMALL}", style="dim"))
        if len(shown) < len(self.columns):
            hidden = ", ".join(_title(c).replace("\n", " ") for i, c in enumerate(self.columns) if i not in shown)
            parts.append(Text(f"Not shown at this width: {hidden}.", style="dim"))
        parts += self._below(list(notes.values()))
        yield Group(*parts)

    def _lines(self, letters: dict[tuple[str, ...], str]) -> list[_Line]:
        names = step_labels(self.experiment)
        return [
            _Line(
                names[s.key],
                [c.write(s) + "*" * c.missing_percentile(s) for c in self.columns],
                s.emulated,
                "".join(dict.fromkeys(letters[_alike(m, s)] for m in marks(self.experiment, s))),
            )
            for s in self.experiment.steps
        ]

    def _notes(self) -> dict[tuple[str, ...], list[Mark]]:
        """All marks, those that one note stands for together."""
        found: dict[tuple[str, ...], list[Mark]] = {}
        for step in self.experiment.steps:
            for mark in marks(self.experiment, step):
                found.setdefault(_alike(mark, step), []).append(mark)
        return found

    def _table(self, lines: Sequence[_Line], shown: Sequence[int], name_width: int) -> Table:
        result = Table(box=None, padding=(0, GUTTER, 0, 0), pad_edge=False, header_style="bold")
        result.add_column("step", width=name_width, no_wrap=True, overflow="ellipsis", vertical="bottom")
        if any(line.emulated for line in lines):
            result.add_column("device", width=len(EMULATED), no_wrap=True, style="yellow")
        for i in shown:
            result.add_column(_title(self.columns[i]), justify="right", no_wrap=True)
        if any(line.flags for line in lines):
            result.add_column("", no_wrap=True, style="dim")
        emulated, flagged = any(line.emulated for line in lines), any(line.flags for line in lines)
        for line in lines:
            cells = [Text(line.name)]
            cells += [Text(EMULATED if line.emulated else "bare")] if emulated else []
            cells += [Text(line.cells[i]) for i in shown]
            cells += [Text(line.flags)] if flagged else []
            result.add_row(*cells)
        return result

    def _below(self, notes: Sequence[Sequence[Mark]]) -> list[RenderableType]:
        parts: list[RenderableType] = []
        if self.experiment.findings:
            parts.append(Text(""))
            for finding in self.experiment.findings:
                parts.append(_item("•", Text(sentence(finding))))
        if found := verdicts(self.experiment):
            parts += [Text(""), self._gates(found)]
        parts += service_levels(self.experiment)
        if notes:
            parts.append(Text(""))
        for i, alike in enumerate(notes):
            others = len({mark.sentence for mark in alike}) - 1
            more = f" Much the same in {others} other run{'s' * (others > 1)} of it." if others else ""
            parts.append(_item(_letter(i), Text.assemble((alike[0].word, "bold"), f": {alike[0].sentence}{more}")))
        emulated = dict.fromkeys(device(s) for s in self.experiment.steps if s.emulated)
        if emulated:
            parts.append(Text(""))
            devices = "; ".join(name.removeprefix(EMULATED).strip() for name in emulated)
            parts.append(
                Text.assemble(
                    (EMULATED, "bold yellow"), f": {devices}. Service times were injected; no product was measured."
                )
            )
        return parts

    def _gates(self, found: Sequence[Verdict]) -> RenderableType:
        """Of each what was found in the step that is nearest to failing it, or failed it by most."""
        names, steps = step_labels(self.experiment), self.experiment.steps
        grid = Table.grid(padding=(0, GUTTER, 0, 0))
        for wide in (False, False, True, True):
            grid.add_column(no_wrap=not wide)
        for verdict in found:
            style = {"FAILED": "bold red", "passed": "green"}.get(verdict.word, "dim")
            some = [names[step.key] for step in verdict.failed] if len(verdict.failed) < len(steps) else []
            found_here = figure(verdict.gate) + (f", in {', '.join(some)}" if some else "")
            grid.add_row(Text(verdict.word, style), verdict.gate.name, found_here, Text(allowed(verdict.gate), "dim"))
        return grid


def _alike(mark: Mark, step: StepSummary) -> tuple[str, ...]:
    """Return what one note stands for: of a serious mark its figures, else what it is about in all repeats."""
    if mark.serious:
        return mark.word, mark.sentence
    names = [str(fact) for fact in mark.finding.facts.values() if isinstance(fact, str)]
    return mark.word, str(mark.finding.kind), *names, step.variant, step.step


def fit(lines: Sequence[_Line], columns: Sequence[Column], width: int) -> tuple[list[int], int]:
    """The columns that fit `width`, in order, and the width left for the step's name."""
    emulated = len(EMULATED) + GUTTER if any(line.emulated for line in lines) else 0
    flags = max((len(line.flags) for line in lines), default=0)
    fixed = emulated + (flags + GUTTER if flags else 0)
    longest = max((cell_len(line.name) for line in lines), default=0)
    name = min(max(longest, 4), NAME_MAX)
    shown = [
        i for i, c in enumerate(columns) if any(line.cells[i] != format.NONE for line in lines) or not c.importance
    ]
    widths = {
        i: max([cell_len(line.cells[i]) for line in lines] + [len(part) for part in _title(columns[i]).split("\n")])
        for i in shown
    }

    def needed(name: int) -> int:
        return name + fixed + sum(widths[i] + GUTTER for i in shown)

    while needed(min(name, NAME_MIN)) > width or (needed(name) > width and len(shown) > 6):
        last = max(shown, key=lambda i: columns[i].importance)
        if not columns[last].importance:
            break
        shown.remove(last)
    spare = width - (needed(0))
    return shown, max(min(name, spare), 4)


def _title(column: Column) -> str:
    """Two lines: what, and its unit."""
    return f"{column.title}\n{column.unit}" if column.unit else column.title


def _letter(number: int) -> str:
    return chr(ord("a") + number) if number < 26 else f"({number})"


def _item(mark: str, text: Text) -> RenderableType:
    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column()
    grid.add_row(Text(mark), text)
    return Padding(grid, (0, 0, 0, 0))
