"""The report of probes of raw storage: its sections, the parts that a terminal shows, and its JSON."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from stallmark import format
from stallmark.analysis.probe.experiment import ProbeExperiment, ProbeRun
from stallmark.analysis.probe.saturation import Saturation
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
from stallmark.report.figures import Figure
from stallmark.report.probe import tables
from stallmark.report.renderers import in_json
from stallmark.report.sections import summary
from stallmark.report.text import probe as words
from stallmark.report.text import reading, sentence
from stallmark.report.text.device import EMULATED


def probe_document(experiment: ProbeExperiment) -> Document:
    runs, key = experiment.runs, tables.probes_key(experiment)
    charts = tables.figures(experiment)
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
            Section("summary", "Storage", [Shown(tables.storage_table(experiment), "What was probed")]),
            summary.findings_section(experiment.findings),
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
    blocks: list[Block] = [Words(reading.PROBE_CURVES, "lead"), Key(tables.probes_key(experiment))]
    for title, group in charts.items():
        leads = (Words(text, "lead") for text in tables.pattern_sentences(experiment, title))
        blocks += [Title(title), *leads, Grid(group)]
    return Section("curves", "By outstanding I/Os", blocks)


def _every_figure(experiment: ProbeExperiment) -> Section:
    folds = [
        Fold(run.variant, [Shown(tables.steps_table(run), f"Steps of {run.variant}")], open=run is experiment.runs[0])
        for run in experiment.runs
    ]
    return Section("figures-all", "All figures", folds, "")


def _environment(experiment: ProbeExperiment) -> Section:
    machine = Facts([Pairs(tables.machines(experiment), "Machine")])
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
        yield Shown(tables.curve_table(steps), widths=tables.CURVE_WIDTHS, header=index == 0)
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


def _saturation(saturation: Saturation) -> dict[str, Any]:
    names = ("knee", "collapse", "because", "unstable", "limited", "finding")
    return {"pattern": saturation.pattern.name} | {name: in_json(getattr(saturation, name)) for name in names}
