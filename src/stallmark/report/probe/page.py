"""Write probes of raw storage as one HTML file that needs no network."""

from pathlib import Path

from stallmark import format
from stallmark.analysis.probe.experiment import ProbeExperiment
from stallmark.report.file import write_whole
from stallmark.report.page import page
from stallmark.report.probe import figures as probe_charts
from stallmark.report.probe import tables as probe_tables
from stallmark.report.text import probe as words
from stallmark.report.text import sentence


def write_probe_report(experiment: ProbeExperiment, target: Path) -> Path:
    """Write the report to `target` (created with its folders, replaced whole) and return it."""
    return write_whole(render_probes(experiment), target)


def render_probes(experiment: ProbeExperiment) -> str:
    """Return the report as text."""
    groups = probe_charts.figures(experiment)
    return page(
        "probe_report.html",
        [figure for group in groups.values() for figure in group],
        probe_charts.key(experiment),
        experiment=experiment,
        answer=sentence(experiment.findings[0]) if experiment.findings else "",
        picture=None,
        lead=next(iter(groups.values()), [])[:1],
        questions=[],
        headline=_headline(experiment),
        banner=_banner(experiment),
        groups=groups,
        variants=probe_charts.key(experiment),
        probe_tables=probe_tables,
    )


def _headline(experiment: ProbeExperiment) -> list[str]:
    runs = experiment.runs
    return [
        ", ".join(dict.fromkeys(run.result.tool for run in runs)),
        f"{len(runs)} probe{'s' * (len(runs) != 1)}",
        format.moment(runs[0].result.started),
    ]


def _banner(experiment: ProbeExperiment) -> str | None:
    """Return a sentence about the emulated arrays; None when nothing is emulated."""
    emulated = [run for run in experiment.runs if run.result.emulated]
    if not emulated:
        return None
    devices = dict.fromkeys(run.result.device or "" for run in emulated)
    return words.emulated_probes(len(emulated), len(experiment.runs), devices)
