"""Probes of raw storage in a terminal of 80 columns: every step, and the findings."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from stallmark import format
from stallmark.analysis.probe.experiment import ProbeExperiment, ProbeRun
from stallmark.record.probe import ProbeStep
from stallmark.report.table import InTerminal, Table
from stallmark.report.text import sentence
from stallmark.report.text.device import EMULATED

_PERCENTILES = ("p50", "p95", "p99", "p99.9")
_COLUMNS = (
    ("outstanding", 11),
    ("I/Os/s", 7),
    ("MB/s", 5),
    ("mean ms", 7),
    *((name, 6) for name in _PERCENTILES),
    ("I/Os", 9),
)
"""Columns with the widths of their figures, so that the tables of all patterns are aligned: 79 in all."""


def probe_table(experiment: ProbeExperiment) -> RenderableType:
    """Return the figures for a terminal; text that does not fit is wrapped, and no digit is lost."""
    parts: list[RenderableType] = [Text(experiment.title, style="bold"), Text(experiment.answers, style="dim")]
    for run in experiment.runs:
        parts += [Text(""), _title(run), _steps(run)]
    if any(step.percentile_ms(0.999) is None for run in experiment.runs for step in run.result.steps):
        parts.append(Text(f"{format.NONE} {format.TOO_SMALL}", style="dim"))
    parts += [Text(""), *(Text(f"• {sentence(one)}") for one in experiment.findings)]
    if experiment.cautions:
        parts += [Text(""), *(Text(f"• {sentence(one)}", style="yellow") for one in experiment.cautions)]
    return Group(*parts)


def _title(run: ProbeRun) -> Text:
    device = run.result.device or "device not known"
    text = Text(run.variant, style="bold")
    text.append(f"  {device}, {format.size(run.result.file_bytes)}, {run.result.tool} {run.result.how}", style="dim")
    if run.result.emulated:
        text.append(f"  {EMULATED}", style="yellow")
    return text


def _steps(run: ProbeRun) -> RenderableType:
    """Return the tables of one probe. The pattern has a line of its own: a column would take a third of the width."""
    parts: list[RenderableType] = []
    sentences = {found.pattern: sentence(found.finding) for found in run.saturations}
    for number, (pattern, steps) in enumerate(run.result.curves().items()):
        curve = InTerminal(_curve(steps), widths=[width for _, width in _COLUMNS], header=number == 0)
        parts += [Text(pattern.title, style="italic"), curve]
        if len(sentences) > 1:  # a single one is among the findings
            parts.append(Text(sentences[pattern], style="dim"))
    return Group(*parts)


def _curve(steps: Sequence[ProbeStep]) -> Table:
    return Table(
        [name for name, _ in _COLUMNS],
        [
            [
                str(step.outstanding),
                format.number(step.iops),
                format.number(step.mb_per_s),
                format.number(step.mean_ms),
                *(format.number(step.latency_ms[name]) for name in _PERCENTILES),
                format.count(step.ios),
            ]
            for step in steps
        ],
        frozenset(),
        importance={2: 1, 7: 2, 8: 3},
    )
