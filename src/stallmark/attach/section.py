"""External measurements next to the throughput of their run: charts, clocks, correlations."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from stallmark import format
from stallmark.analysis.experiment import ExperimentSummary
from stallmark.analysis.run import RunSummary
from stallmark.attach import wording
from stallmark.attach.summary import ExternalCounter, ExternalSummary
from stallmark.format import coefficient
from stallmark.report.document import Section, Words, table_blocks
from stallmark.report.figures import (
    ROWS,
    Figure,
    bucket_width,
    from_zero,
    highest,
    line_with_extremes,
    looks,
    note,
    places,
    plain,
    shade,
    stacked,
)
from stallmark.report.table import Rows, Table, number, word
from stallmark.report.text import sentence, term
from stallmark.stats.inference import Correlation

HEAD, PLOT, GAP, FOOT = 34, 70, 26, 74  # px: above the first plot, a plot, between two, the axis below


def figures(experiment: ExperimentSummary) -> list[Figure]:
    """Return a chart for every file and run: throughput, and below it at most six counters on the same axis of time."""
    sources = [(run, source) for run in experiment.runs for source in run.external if source.counters]
    colours = looks([step.variant for step in experiment.steps])
    return [
        _figure(run, source, number, colours[run.steps[0].variant].colour)
        for number, (run, source) in enumerate(sources)
        if run.steps and len(run.series.second)
    ]


def clocks(experiment: ExperimentSummary) -> Table | None:
    """Return the files with the clock of each; None if nothing was attached."""
    sources = {source.name: source for _, source in _all(experiment)}.values()
    return Rows(list(_all(experiment))).table_if_any(
        word("run", lambda row: row[0].title, when=len(experiment.runs) > 1),
        word("name", lambda row: row[1].name),
        word("file", lambda row: f"{row[1].file} ({row[1].format})"),
        word("its clock", lambda row: f"{row[1].time_zone}; {offset(row[1])}"),
        word(f"span, {format.zone()}", lambda row: _span(row[1])),
        number("samples", lambda row: row[1].samples, format.count),
        number("interval", lambda row: row[1].interval_s, format.seconds),
        notes=[
            *(wording.left_out(source.name, note) for source in sources for note in source.notes),
            *(wording.converted(source.name, remark) for source in sources for remark in source.remarks),
            *(wording.not_drawn(source.name, source.others) for source in sources if source.others),
        ],
    )


def correlations(experiment: ExperimentSummary) -> Table | None:
    """Return the correlation of the drawn counters with throughput; None if nothing was attached."""
    rows = [(run, source, counter) for run, source in _all(experiment) for counter in source.counters]
    return Rows(rows).table_if_any(
        word("run", lambda row: row[0].title, when=len(experiment.runs) > 1),
        word("name", lambda row: row[1].name),
        word("what", lambda row: term(row[2].kind)),
        word("counter", lambda row: _name(row[2])),
        number("mean", lambda row: _mean(row[2])),
        number("interval", lambda row: row[1].interval_s, format.seconds),
        number("n", lambda row: row[2].correlation.n if row[2].correlation else None, format.count),
        number("r", lambda row: coefficient(row[2].correlation.r) if row[2].correlation else format.NONE),
        number("95 % interval", lambda row: _interval(row[2].correlation)),
        notes=[wording.NOT_CORRELATED],
    )


def hints(experiment: ExperimentSummary) -> list[str]:
    """Return a sentence for each clock that seems to be off."""
    several = len(experiment.runs) > 1
    return [
        f"{run.title}: {sentence(source.hint)}" if several else sentence(source.hint)
        for run, source in _all(experiment)
        if source.hint
    ]


def offset(source: ExternalSummary) -> str:
    return f"{source.offset_s:+g} s added" if source.offset_s else "no offset applied"


def _all(experiment: ExperimentSummary) -> Iterator[tuple[RunSummary, ExternalSummary]]:
    return ((run, source) for run in experiment.runs for source in run.external)


def _interval(correlation: Correlation | None) -> str:
    return f"{coefficient(correlation.low)} to {coefficient(correlation.high)}" if correlation else format.NONE


def _figure(run: RunSummary, source: ExternalSummary, number: int, colour: str) -> Figure:
    lines = [_throughput(run), *(_samples(counter) for counter in source.counters)]
    span = float(run.series.second[-1]) + 1
    divisor, unit = format.time_unit(span)
    made, tops = stacked([(GAP if row else 0, PLOT) for row in range(len(lines))], HEAD, FOOT)
    made.change(xaxis={"title": {"text": f"{unit} since the run started"}, "range": [0, span / divisor]})
    for place, top, (title, x, y) in zip(places(len(lines)), tops, lines, strict=True):
        style = {"color": colour, "width": 1.5, "dash": "dot" if place else "solid"}
        mode = "lines" if len(x) > 60 else "lines+markers"
        more = {"mode": mode, "marker": {"size": 4}, "line": style, "yaxis": f"y{place}"}
        made.add(*line_with_extremes(plain(title, 40), x / divisor, y, bucket_width(len(x)), **more))
        made.change(**{f"yaxis{place}": {"range": from_zero(highest(made, place)), "nticks": 4}})
        note(made, title, 90, y=top, yshift=3)
    made.add_shapes(*_warm_ups(run, divisor, places(len(lines))))
    return Figure(
        id=f"external-{number}",
        title=f"{source.name} next to the throughput of {run.title}",
        unit="",
        emulated=any(step.emulated for step in run.steps),
        summary=_summary(run, source),
        method=wording.method(source.name),
        chart=made,
        header=[f"{unit} from", *(title for title, _, _ in lines)],
        rows=list(_rows(lines, span, divisor)),
        reading=wording.clock(source.name, source.time_zone, offset(source), source.interval_s),
        wide=True,
    )


Line = tuple[str, np.ndarray, np.ndarray]


def _throughput(run: RunSummary) -> Line:
    return "committed transactions per second", run.series.second + 0.5, run.series.tps


def _samples(counter: ExternalCounter) -> Line:
    unit = _unit(counter)
    title = f"{term(counter.kind)}{f', {unit}' if unit else ''}: {_name(counter)}"
    return title, counter.t, counter.values


def _unit(counter: ExternalCounter) -> str | None:
    return "per second" if counter.unit == "1/s" else counter.unit


def _mean(counter: ExternalCounter) -> str:
    unit = _unit(counter)
    return format.number(counter.mean) + (f"{format.NBSP}{unit}" if unit else "")


def _name(counter: ExternalCounter) -> str:
    return f"{counter.name} ({counter.instance})" if counter.instance else counter.name


def _warm_ups(run: RunSummary, divisor: int, plots: Sequence[str]) -> list[dict[str, Any]]:
    spans = [(step.begin_s, step.measure_s) for step in run.manifest.steps]
    return [shape for begin, end in spans if end > begin for shape in shade(begin / divisor, end / divisor, plots)]


def _rows(lines: list[Line], span: float, divisor: int) -> Iterator[list[str]]:
    """Yield the rows of a coarse table: means over a twelfth of the run each."""
    edges = np.linspace(0, span, ROWS + 1)
    for begin, end in pairwise(edges):
        cells = []
        for _, x, y in lines:
            inside = y[(x > begin) & (x <= end) & np.isfinite(y)]
            cells.append(format.number(float(inside.mean())) if len(inside) else format.NONE)
        yield [format.number(begin / divisor), *cells]


def _span(source: ExternalSummary) -> str:
    begin, end = map(format.second, source.span)
    return f"{begin} to {end.removeprefix(begin[:11])}"


def _summary(run: RunSummary, source: ExternalSummary) -> str:
    parts = []
    for counter in source.counters:
        parts.append(f"{term(counter.kind)} {_mean(counter)}")
    return wording.means(source.name, run.title, parts)


def section(experiment: ExperimentSummary) -> Section:
    blocks = [
        *table_blocks(clocks(experiment), "Files attached, and their clocks", lead=wording.LEAD),
        *(Words(f" {text}", "lead", "Hint:") for text in hints(experiment)),
        *figures(experiment),
        *table_blocks(correlations(experiment), "Correlation with throughput", "With throughput"),
    ]
    return Section("external", "Measured elsewhere", blocks)
