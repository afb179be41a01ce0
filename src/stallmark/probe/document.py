"""The report of probes of raw storage: sections, tables and charts, the parts that a terminal shows, and the JSON."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

from stallmark import format
from stallmark.probe import wording as words
from stallmark.probe.summary import ProbeExperiment, ProbeRun, Saturation, summarise_probes
from stallmark.record.manifest.storage import Pattern, ProbeStep
from stallmark.report import sections
from stallmark.report.document import (
    Block,
    Codes,
    Document,
    Facts,
    Fold,
    Grid,
    Key,
    Pairs,
    Section,
    Shown,
    Title,
    Words,
    bullets,
)
from stallmark.report.figures import (
    NEUTRAL,
    Drawing,
    Figure,
    KeyItem,
    Look,
    Trace,
    chart,
    from_zero,
    highest,
    key_of_variants,
    looks,
    note,
    plain,
    scatter,
)
from stallmark.report.kinds import RecordKind
from stallmark.report.renderers import in_json
from stallmark.report.table import Rows, Table, number, numbers, percentile_notes, percentiles, word
from stallmark.report.text import sentence
from stallmark.report.text.device import EMULATED


def probe_document(experiment: ProbeExperiment) -> Document:
    runs, key = experiment.runs, probes_key(experiment)
    charts = figures(experiment)
    # The first chart leads the page, so the section below begins with the second.
    first = next(iter(charts.values()), [])[:1]
    return Document(
        title=experiment.title,
        kind=experiment.scenario,
        question=experiment.answers,
        headline=[
            ", ".join(dict.fromkeys(run.result.tool for run in runs)),
            f"{len(runs)} probe{'s' * (len(runs) != 1)}",
            format.moment(runs[0].result.started),
        ],
        banner=_banner(experiment),
        answer=sentence(experiment.findings[0]) if experiment.findings else "",
        lead=[Key(key), *first] if first else [],
        key=key,
        cautions=experiment.cautions,
        sections=[
            Section("summary", "Storage", [Shown(storage_table(experiment), "What was probed")]),
            sections.findings_section(experiment.findings),
            _curves_section(experiment, {title: charts[title][title == next(iter(charts)) :] for title in charts}),
            _every_figure(experiment),
            _environment(experiment),
        ],
        brief=list(_brief(experiment)),
    )


def _banner(experiment: ProbeExperiment) -> str | None:
    """Return a sentence about the emulated arrays, or None if nothing is emulated."""
    emulated = [run for run in experiment.runs if run.result.emulated]
    if not emulated:
        return None
    devices = dict.fromkeys(run.result.device or "" for run in emulated)
    return words.emulated_probes(len(emulated), len(experiment.runs), devices)


def _curves_section(experiment: ProbeExperiment, charts: dict[str, list[Figure]]) -> Section:
    blocks: list[Block] = [Words(words.CURVES, "lead"), Key(probes_key(experiment))]
    for title, group in charts.items():
        leads = (Words(text, "lead") for text in pattern_sentences(experiment, title))
        blocks += [Title(title), *leads, Grid(group)]
    return Section("curves", "By outstanding I/Os", blocks)


def _every_figure(experiment: ProbeExperiment) -> Section:
    folds = [
        Fold(run.variant, [Shown(steps_table(run), f"Steps of {run.variant}")], open=run is experiment.runs[0])
        for run in experiment.runs
    ]
    return Section("figures-all", "All figures", folds, "")


def _environment(experiment: ProbeExperiment) -> Section:
    machine = Facts([Pairs(machines(experiment), "Machine")])
    records = Codes("Records", [run.folder for run in experiment.runs])
    ends = [
        Words(f"{run.variant}: {run.incomplete_because}", "footnote bad")
        for run in experiment.runs
        if run.incomplete_because
    ]
    return Section("environment", "Environment", [machine, records, *ends], "")


def _brief(experiment: ProbeExperiment) -> Iterator[list[Block]]:
    yield [Words(experiment.title, "main"), Words(experiment.answers, "quiet")]
    for run in experiment.runs[:-1]:
        yield list(_steps_in_brief(run))
    too_small = any(step.percentile_ms(0.999) is None for run in experiment.runs for step in run.result.steps)
    note = [Words(f"{format.NONE} {format.TOO_SMALL}", "quiet")] if too_small else []
    yield [*_steps_in_brief(experiment.runs[-1]), *note]
    yield bullets(experiment.findings)
    yield bullets(experiment.cautions, "apart")


def _steps_in_brief(run: ProbeRun) -> Iterator[Block]:
    """Yield the figures of a probe, by pattern. A pattern has a line: a column would take a third of the width."""
    about = f"{run.result.device or 'device not known'}, {format.size(run.result.file_bytes)}"
    emulated = f"  {EMULATED}" if run.result.emulated else ""
    yield Words(f"  {about}, {run.result.tool} {run.result.how}{emulated}", "quiet", run.variant)
    sentences = {saturation.pattern: sentence(saturation.finding) for saturation in run.saturations}
    for index, (pattern, steps) in enumerate(run.result.curves().items()):
        yield Title(pattern.title)
        yield Shown(curve_table(steps), widths=CURVE_WIDTHS, header=index == 0)
        if len(sentences) > 1:  # a single sentence is already among the findings
            yield Words(sentences[pattern], "quiet")


def probes_in_json(experiment: ProbeExperiment) -> dict[str, Any]:
    """Return the results of every step, without the histograms and windows of the record."""
    result: dict[str, Any] = in_json(experiment)
    for run, document in zip(experiment.runs, result["runs"], strict=True):
        about = asdict(run.result)
        figures = ("outstanding", "ios", "iops", "mb_per_s", "mean_ms", "latency_ms")
        steps = [
            {"pattern": step.pattern.name} | {name: getattr(step, name) for name in figures}
            for step in run.result.steps
        ]
        del document["result"], document["manifest"]
        document |= about | {"steps": steps, "saturation": [_saturation(saturation) for saturation in run.saturations]}
        del document["saturations"]
    return {"kind": "probe", **result}


PROBES = RecordKind(summarise_probes, probe_document, probes_in_json)


def _saturation(saturation: Saturation) -> dict[str, Any]:
    names = ("knee", "collapse", "because", "unstable", "limited", "finding")
    return {"pattern": saturation.pattern.name} | {name: in_json(getattr(saturation, name)) for name in names}


# The tables of a report on probes of raw storage.

_PERCENTILES = ("p50", "p95", "p99", "p99.9", "max")
CURVE_WIDTHS = (11, 7, 5, 7, 6, 6, 6, 6, 9)
"""Widths of the columns of `curve`, which align the tables of all patterns: 79 in all."""


def storage_table(experiment: ProbeExperiment) -> Table:
    """Return the probed storage, with place, file and tool."""
    return Rows(experiment.runs).table(
        word("storage", lambda run: run.variant),
        word("device", _device),
        word("place", lambda run: run.result.place),
        number("file", lambda run: run.result.file_bytes, format.size),
        word("tool", lambda run: f"{run.result.tool}, {run.result.how}"),
        word("when", lambda run: format.moment(run.result.started)),
        word("record", lambda run: "incomplete" if run.incomplete_because else "complete"),
    )


def _device(run: ProbeRun) -> str:
    return f"{EMULATED} {run.result.device}" if run.result.emulated else run.result.device or format.NONE


def pattern_sentences(experiment: ProbeExperiment, title: str) -> list[str]:
    """Return the sentences on one pattern of probes with several; a single pattern's sentence is among the findings."""
    return [
        f"{run.variant}: {sentence(saturation.finding)}" if len(experiment.runs) > 1 else sentence(saturation.finding)
        for run in experiment.runs
        for saturation in run.saturations
        if saturation.pattern.title == title and len(run.saturations) > 1
    ]


def steps_table(run: ProbeRun) -> Table:
    """Return every figure of one probe."""
    return Rows(run.result.steps).table(
        word("pattern", lambda step: step.pattern.title),
        number("outstanding", lambda step: str(step.outstanding)),
        number("I/Os per s", lambda step: step.iops),
        number("MB/s", lambda step: step.mb_per_s),
        number("mean ms", lambda step: step.mean_ms),
        percentiles(lambda step: step.latency_ms, _PERCENTILES),
        number("I/Os", lambda step: step.ios, format.count),
        number("measured", lambda step: step.seconds, format.seconds),
        notes=percentile_notes((step.latency_ms for step in run.result.steps), _PERCENTILES),
    )


def curve_table(steps: Sequence[ProbeStep]) -> Table:
    """Return the figures of one pattern for a terminal of 80 columns."""
    leave = {"p99": 2, "p99.9": 3}
    return Rows(steps).table(
        number("outstanding", lambda step: str(step.outstanding)),
        number("I/Os/s", lambda step: step.iops),
        number("MB/s", lambda step: step.mb_per_s, importance=1),
        number("mean ms", lambda step: step.mean_ms),
        numbers(_PERCENTILES[:-1], str, lambda step, name: step.latency_ms[name], leave),
        number("I/Os", lambda step: step.ios, format.count),
    )


def machines(experiment: ProbeExperiment) -> list[tuple[str, str]]:
    """Return the facts about the machines that the probes were made from."""
    facts: dict[str, list[str]] = {}
    for run in experiment.runs:
        for name, value in run.manifest.machine.facts().items():
            text = format.size(value) if name == "memory_bytes" else str(value)
            facts.setdefault(name.removesuffix("_bytes"), []).append(text)
    return [(name, ", ".join(dict.fromkeys(values))) for name, values in facts.items()]


# Charts of probes of raw storage: rate and latency over outstanding I/Os, and the distribution of latencies.

BINS_PER_DECADE = 8
"""Bins of a histogram per decade: fewer hide two humps (hits and misses), more show noise."""

_FAR_APART = 5.0
"""Ratio of the curves' maxima above which the axis is logarithmic, as the lower curve would be flat."""

Value = Callable[[ProbeStep], float | None]


def probes_key(experiment: ProbeExperiment) -> list[KeyItem]:
    """Return the key for all charts; empty for a single probe."""
    return key_of_variants([run.variant for run in experiment.runs], "solid")


def figures(experiment: ProbeExperiment) -> dict[str, list[Figure]]:
    """Return the figures by the pattern's title: rate, latency and histograms."""
    return {
        pattern.title: [_rate(experiment, pattern), _latency(experiment, pattern), *_histograms(experiment, pattern)]
        for pattern in experiment.patterns
    }


def _looks(experiment: ProbeExperiment) -> dict[str, Look]:
    return looks([run.variant for run in experiment.runs])


def _rate(experiment: ProbeExperiment, pattern: Pattern) -> Figure:
    def rate(step: ProbeStep) -> float:
        return step.iops if pattern.random else step.mb_per_s

    unit = "I/Os per second" if pattern.random else "MB/s"
    curves = _curves(experiment, pattern)
    tops = [max(map(rate, curve)) for _, curve in curves]
    rates = [rate(step) for _, curve in curves for step in curve]
    far_apart = max(tops) > _FAR_APART * min(tops)
    made = _outstanding_chart([step for _, curve in curves for step in curve])
    made.change(yaxis=_log_axis(min(rates), max(rates)) if far_apart else {"range": from_zero(max(rates))})
    note(made, f"{unit}{', log scale' * far_apart}", yshift=5)
    made.add(*[_line(experiment, run, curve, rate, unit, "solid") for run, curve in curves])
    for run, curve in curves:
        made.add(*_marks(run, pattern, curve, rate, _looks(experiment)[run.variant]))
    return _figure(
        experiment, pattern, "rate", "Rate", unit, made,
        words.RATE,
        [("", rate)],
        reading=words.RATE_READING,
    )  # fmt: skip


def _latency(experiment: ProbeExperiment, pattern: Pattern) -> Figure:
    shown: list[tuple[str, Value, str]] = [
        ("mean", lambda step: step.mean_ms, "solid"),
        ("p99", lambda step: step.latency_ms["p99"], "dot"),
    ]
    steps = [step for _, curve in _curves(experiment, pattern) for step in curve]
    values = [value for step in steps for _, value_of, _ in shown if (value := value_of(step))]
    made = _outstanding_chart(steps, yaxis=_log_axis(min(values), max(values)))
    note(made, "ms, log scale", yshift=5)
    made.add(
        *[
            _line(experiment, run, curve, value_of, f"ms {name}", dash)
            for run, curve in _curves(experiment, pattern)
            for name, value_of, dash in shown
        ]
    )
    return _figure(
        experiment, pattern, "latency", "Latency", "ms", made,
        words.LATENCY,
        [(name, value_of) for name, value_of, _ in shown],
        key=[KeyItem(name, NEUTRAL, dash) for name, _, dash in shown],
    )  # fmt: skip


def _histograms(experiment: ProbeExperiment, pattern: Pattern) -> list[Figure]:
    """Return one histogram per probe: all steps of the pattern, paler the fewer I/Os were outstanding."""
    return [
        _histogram(experiment, number, run, pattern, curve)
        for number, (run, curve) in enumerate(_curves(experiment, pattern), 1)
        if any(step.histogram for step in curve)
    ]


def _histogram(
    experiment: ProbeExperiment, number: int, run: ProbeRun, pattern: Pattern, curve: Sequence[ProbeStep]
) -> Figure:
    look = _looks(experiment)[run.variant]
    spread = {step.outstanding: _binned(step) for step in curve}
    places = [place for bins in spread.values() for place in bins]
    low, high = min(places), max(places)
    # One edge more than bins: the last step of the line needs its right end.
    where = list(range(low, high + 2))
    line = {"title": {"text": "ms, log scale"}, "showline": False, "ticks": ""}
    made = chart(230, xaxis=_log_axis(_edge(low), _edge(high + 1)) | line)
    for position, (outstanding, bins) in enumerate(spread.items(), 1):
        made.add(
            scatter(
                mode="lines",
                x=[_edge(place) for place in where],
                y=[100 * bins.get(place, 0.0) for place in where],
                line={"color": look.colour, "width": 2, "shape": "hv"},
                # The colour names the variant, so the opacity shows the number outstanding.
                opacity=0.25 + 0.75 * position / len(spread),
                name=f"{outstanding}",
                hovertemplate=f"%{{y:.1f}} %  {outstanding} outstanding<extra></extra>",
            )
        )
    made.change(yaxis={"range": from_zero(highest(made))})
    note(made, "% of I/Os", yshift=5)
    title = "Latencies" + (f", {run.variant}" if len(experiment.runs) > 1 else "")
    return Figure(
        id=f"probe-{pattern.name}-histogram-{number}",
        title=title,
        unit="% of I/Os",
        emulated=run.result.emulated,
        summary=". ".join(
            f"{step.outstanding} outstanding: median {format.number(step.latency_ms['p50'])} ms, "
            f"p99 {format.number(step.latency_ms['p99'])} ms"
            for step in curve
        )
        + ".",
        method=words.histogram_method(BINS_PER_DECADE),
        chart=made,
        header=["outstanding", "I/Os", "p50 ms", "p95 ms", "p99 ms", "p99.9 ms", "max ms"],
        rows=[
            [str(step.outstanding), format.count(step.ios), *(format.number(ms) for ms in step.latency_ms.values())]
            for step in curve
        ],
        reading=words.stronger([step.outstanding for step in curve]),
    )


def _binned(step: ProbeStep) -> dict[int, float]:
    """Return the share of the I/Os by bin; a bin spans a factor of 10^(1/BINS_PER_DECADE) in ms."""
    shares: dict[int, float] = {}
    size = sum(count for _, count in step.histogram) or 1
    for ms, count in step.histogram:
        place = math.floor(math.log10(ms) * BINS_PER_DECADE) if ms > 0 else -4 * BINS_PER_DECADE
        shares[place] = shares.get(place, 0.0) + count / size
    return shares


def _edge(place: int) -> float:
    return float(10 ** (place / BINS_PER_DECADE))


def _curves(experiment: ProbeExperiment, pattern: Pattern) -> list[tuple[ProbeRun, list[ProbeStep]]]:
    curves = [(run, run.result.curves().get(pattern, [])) for run in experiment.runs]
    return [(run, curve) for run, curve in curves if curve]


def _line(
    experiment: ProbeExperiment, run: ProbeRun, curve: Sequence[ProbeStep], value_of: Value, unit: str, dash: str
) -> Trace:
    look = _looks(experiment)[run.variant]
    values = [value_of(step) for step in curve]
    return scatter(
        mode="lines+markers",
        x=[step.outstanding for step in curve],
        y=values,
        name=plain(run.variant),
        line={"color": look.colour, "width": 2, "dash": dash},
        marker={"color": look.colour, "symbol": look.symbol, "size": 7},
        text=[f"{format.number(value)} {unit}  {plain(run.variant)}" for value in values],
    )


def _marks(run: ProbeRun, pattern: Pattern, curve: Sequence[ProbeStep], value_of: Value, look: Look) -> list[Trace]:
    """Return marks at the saturation and the collapse of the pattern."""
    marked = next(saturation for saturation in run.saturations if saturation.pattern == pattern)
    return [
        scatter(
            mode="markers",
            x=[depth],
            y=[value_of(step) for step in curve if step.outstanding == depth],
            marker={"color": look.colour, "symbol": symbol, "size": 16, "line": {"width": 2}},
            hovertemplate=f"{plain(run.variant)} {word}<extra></extra>",
        )
        for word, symbol, depth in (("saturates", "circle-open", marked.knee), ("collapses", "x-open", marked.collapse))
        if depth is not None
    ]


def _outstanding_chart(steps: Sequence[ProbeStep], **layout: Any) -> Drawing:
    depths = sorted({step.outstanding for step in steps})
    axis = {
        "type": "log",
        "range": [math.log10(depths[0]) - 0.1, math.log10(depths[-1]) + 0.15],
        "tickvals": depths,
        "ticktext": [str(depth) for depth in depths],
        "title": {"text": "I/Os outstanding"},
    }
    return chart(270, xaxis=axis, **layout)


def _log_axis(low: float, high: float) -> dict[str, Any]:
    ticks = [base * 10.0**power for power in range(-3, 8) for base in (1, 2, 5)]
    shown = [tick for tick in ticks if low * 0.8 <= tick <= high * 1.25]
    if len(shown) > 7:
        # Too many ticks overlap: keep the powers of ten.
        shown = [tick for tick in shown if math.log10(tick) % 1 < 1e-9 or math.log10(tick) % 1 > 1 - 1e-9]
    ticktext = [f"{tick:,.12g}" for tick in shown]
    ends = [math.log10(low * 0.8), math.log10(high * 1.25)]
    return {"type": "log", "range": ends, "tickvals": shown, "ticktext": ticktext, "zeroline": False}


def _figure(
    experiment: ProbeExperiment,
    pattern: Pattern,
    id: str,
    title: str,
    unit: str,
    made: Drawing,
    method: str,
    values: Sequence[tuple[str, Value]],
    key: Sequence[KeyItem] = (),
    reading: str = "",
) -> Figure:
    curves = _curves(experiment, pattern)
    depths = sorted({step.outstanding for _, curve in curves for step in curve})
    names = [(run, name, value_of, curve) for run, curve in curves for name, value_of in values]

    def cell(curve: Sequence[ProbeStep], value_of: Value, depth: int) -> str:
        # Probes may have different depths: a curve without this one has a dash.
        return format.number(next((value_of(step) for step in curve if step.outstanding == depth), None))

    return Figure(
        id=f"probe-{pattern.name}-{id}",
        title=title,
        unit=unit,
        emulated=any(run.result.emulated for run, _ in curves),
        summary=" ".join(
            words.curve_ends(
                f"{run.variant}, {name or unit}",
                [(cell(curve, value_of, depth), depth) for depth in (depths[0], depths[-1])],
            )
            for run, name, value_of, curve in names
        ),
        method=method,
        chart=made,
        header=["outstanding", *(f"{run.variant} {name}".strip() for run, name, _, _ in names)],
        rows=[[str(depth), *(cell(curve, value_of, depth) for _, _, value_of, curve in names)] for depth in depths],
        key=list(key),
        reading=reading,
    )
