"""Write an experiment as one HTML file that needs no network."""

import base64
import json
import re
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from stallmark import capabilities, format
from stallmark.analysis.cautions import CautionKind
from stallmark.analysis.experiment import ExperimentSummary
from stallmark.analysis.finding import Finding, Severity
from stallmark.analysis.marks import doubtful
from stallmark.analysis.read.queries import PHASES
from stallmark.analysis.step_summary import StepSummary
from stallmark.report import columns, labels, style
from stallmark.report.columns import Mark
from stallmark.report.figures import Figure
from stallmark.report.file import write_whole
from stallmark.report.picture import NARROW, WIDE, Picture, picture_of, svg
from stallmark.report.queries import figures as query_charts
from stallmark.report.queries import tables as query_tables
from stallmark.report.sections import (
    agreement,
    blocking,
    ceiling,
    environment,
    errors,
    pool_curve,
    probes,
    transactions,
    validity,
)
from stallmark.report.sections import array as array_tables
from stallmark.report.sections import cause as cause_tables
from stallmark.report.sections import server as server_tables
from stallmark.report.sections import steadiness as steady
from stallmark.report.sections.active_set import active_figures
from stallmark.report.sections.axis import axis_figures, transaction_figures
from stallmark.report.sections.statements import statements
from stallmark.report.sections.thresholds import thresholds
from stallmark.report.sections.timeline import time_figures
from stallmark.report.sections.waits import correlation_figures, wait_figure
from stallmark.report.style import KeyItem, Look, looks, plain
from stallmark.report.text import experiment as words
from stallmark.report.text import loads, reading, sentence
from stallmark.report.text.device import EMULATED
from stallmark.report.text.terms import term

TEMPLATES = Path(__file__).parent / "templates"


@dataclass(frozen=True)
class StepRow:
    """One step in the summary table. A cell is its text, and whether a percentile is missing for want of samples."""

    name: str
    device: str
    settings: str
    emulated: bool
    look: Look
    cells: list[tuple[str, bool]]
    marks: list[Mark]

    @property
    def words(self) -> list[tuple[str, bool]]:
        return list(dict.fromkeys((mark.word, mark.serious) for mark in self.marks))


def write_report(experiment: ExperimentSummary, target: Path) -> Path:
    """Write the report to `target` (created with its folders, replaced whole) and return it."""
    return write_whole(render(experiment), target)


def render(experiment: ExperimentSummary) -> str:
    """Return the report as text."""
    groups = query_groups(experiment) if experiment.queries else figure_groups(experiment)
    more = _of_queries(experiment) if experiment.queries else _of_transactions(experiment)
    return page(
        "query_report.html" if experiment.queries else "report.html",
        [figure for group in groups.values() for figure in group],
        query_charts.key(experiment) if experiment.queries else variant_key(experiment),
        experiment=experiment,
        answer=answer_of(experiment),
        picture=picture_of(experiment),
        lead=groups["bars"][:1] if experiment.queries else [],
        questions=experiment.questions,
        headline=headline(experiment),
        banner=banner(experiment),
        groups=groups,
        agreement=agreement,
        errors=errors,
        server_tables=server_tables,
        statements=statements,
        blocking=blocking,
        steady=steady,
        environment=environment,
        **more,
    )


def page(template: str, figures: Iterable[Figure], key: Sequence[KeyItem], **context: Any) -> str:
    """Return a filled template, with everything in it that a page needs without a network.

    `key` is that of all charts which have none of their own.
    """
    charts = {
        f"chart-{one.id}": one.plotly
        | {
            "title": plain(one.title),
            "key": [[plain(item.text), item.colour] for item in one.key or key],
            "columns": one.columns,
        }
        for one in figures
    }
    html = (
        templates()
        .get_template(template)
        .render(
            emulated_word=EMULATED,
            figures=Markup(packed(json.dumps({"figures": charts, "template": style.template().to_plotly_json()}))),
            plotly=Markup(_plotly()),
            style=Markup((TEMPLATES / "report.css").read_text(encoding="utf-8")),
            script=Markup((TEMPLATES / "report.js").read_text(encoding="utf-8")),
            **context,
        )
    )
    return html.replace("<!--contents-->", contents(html), 1)


def contents(html: str) -> str:
    """Return links to the sections of a page that follow the mark, as a list."""
    found = re.findall(r'<section id="([\w-]+)".*?<h2>(.*?)</h2>', html.partition("<!--contents-->")[2], re.S)
    links = "".join(f"<li><a href='#{id}'>{title}</a></li>" for id, title in found)
    return f"<nav aria-label='Contents'><ul>{links}</ul></nav>"


def _of_transactions(experiment: ExperimentSummary) -> dict[str, Any]:
    rows = summary_rows(experiment)
    return {
        "columns": columns.summary(experiment),
        "primary": columns.primary_of(experiment),
        "rows": rows,
        "missing_percentile": any(missing for row in rows for _, missing in row.cells),
        "explained": explained(rows),
        "variants": variant_key(experiment),
        "doubtful": doubtful(experiment),
        "transactions": transactions,
        "validity": validity,
        "thresholds": thresholds(experiment),
        "beside": capabilities.parts("sections"),
        "ceiling_levels": ceiling.level_tables(experiment),
        "memory_curves": pool_curve.curve_tables(experiment),
    }


def _of_queries(experiment: ExperimentSummary) -> dict[str, Any]:
    return {
        "query_tables": query_tables,
        "explained": explained(summary_rows(experiment)),
        "variants": query_charts.key(experiment),
    }


def query_groups(experiment: ExperimentSummary) -> dict[str, list[Figure]]:
    waits = wait_figure(experiment)
    return {
        "bars": query_charts.bars(experiment),
        "curves": query_charts.curves(experiment),
        "active": active_figures(experiment),
        "waits": [waits] if waits else [],
    }


def answer_of(experiment: ExperimentSummary) -> str:
    """Return the answer in a sentence."""
    return sentence(experiment.answer) if experiment.answer else words.NO_FINDING


def figure_groups(experiment: ExperimentSummary) -> dict[str, list[Figure]]:
    waits = wait_figure(experiment)
    return {
        "ceiling": ceiling.ceiling_figures(experiment),
        "memory": pool_curve.curve_figures(experiment),
        "axis": axis_figures(experiment),
        "time": time_figures(experiment),
        "active": active_figures(experiment),
        "waits": [waits] if waits else [],
        "correlation": correlation_figures(experiment),
        "external": [each for part in capabilities.parts("sections") for each in part.figures(experiment)],
        "transactions": transaction_figures(experiment),
    }


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
    """Return a sentence about the emulated arrays; None when nothing is emulated."""
    steps = experiment.steps
    emulated = [s for s in steps if s.emulated]
    if not (experiment.emulated or emulated):
        return None
    runs = len({s.run for s in emulated})
    if compared := experiment.queries:  # their phases may be too short to be steps
        runs = sum(variant.runs for variant in compared.variants if variant.emulated)
    return words.emulated_runs(runs, len(experiment.runs))


def summary_rows(experiment: ExperimentSummary) -> list[StepRow]:
    names, seen = labels.step_labels(experiment), looks([s.variant for s in experiment.steps])
    shown = columns.summary(experiment)

    def row(step: StepSummary) -> StepRow:
        return StepRow(
            names[step.key],
            step.device.name,
            _settings(step),
            step.emulated,
            seen[step.variant],
            [(c.write(step), c.missing_percentile(step)) for c in shown],
            columns.marks(experiment, step),
        )

    return [row(step) for step in experiment.steps]


def _settings(step: StepSummary) -> str:
    """Return users and pool in one text, for windows too narrow for their columns."""
    users = f"{step.users} user{'s' * (step.users != 1)}"
    if step.pool_held_bytes is None:
        return users
    return f"{users}, {format.size(step.pool_held_bytes)} ({format.portion(step.pool_held_share)})"


def explained(rows: list[StepRow]) -> list[tuple[Mark, str]]:
    """Return every mark once, with the steps it holds for."""
    found: dict[Mark, list[StepRow]] = {}
    for row in rows:
        for mark in row.marks:
            found.setdefault(mark, []).append(row)
    return [
        (mark, "all steps" if 1 < len(held) == len(rows) else ", ".join(row.name for row in held))
        for mark, held in found.items()
    ]


def variant_key(experiment: ExperimentSummary) -> list[KeyItem]:
    """Return the key for all charts against the axis; empty for a single variant."""
    seen = looks([s.variant for s in experiment.steps])
    if len(seen) < 2:
        return []
    return [KeyItem(name, look.colour, None, look.symbol) for name, look in seen.items()]


@cache
def templates() -> Environment:
    found = Environment(
        loader=PackageLoader("stallmark.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.globals |= {"format": format, "reading": reading, "sentence": sentence, "term": term}
    found.globals |= {"loads_words": loads}
    found.globals |= {"causes": cause_tables, "array": array_tables, "probes": probes}
    found.globals |= {"drawn": drawn, "first_lines": first_lines}
    return found


def packed(text: str) -> str:
    """Return `text` deflated, as characters that HTML leaves as they are. `report.js` unpacks it."""
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode()


@cache
def _plotly() -> str:
    return packed((TEMPLATES / "plotly-basic.min.js").read_text(encoding="utf-8"))


def drawn(made: Picture, kind: str) -> Markup:
    """Return the first picture as an element, "wide" or "narrow"."""
    return svg(made, {"wide": WIDE, "narrow": NARROW}[kind], kind)


LINES, LINE = 3, 170
"""Lines of cautions in the first screen, and the characters in each of them at its usual width."""


def first_lines(cautions: Sequence[Finding]) -> tuple[list[str], list[str]]:
    """Return the sentences of cautions that fit the first screen, and the others. The banner says EMULATED already."""
    shown: list[str] = []
    rest: list[str] = []
    lines = 0
    for one in sorted(cautions, key=lambda one: (one.kind in _SAID_ABOVE, one.severity is not Severity.INVALID)):
        said = sentence(one)
        lines += -(-len(said) // LINE)
        (shown if lines <= LINES and one.kind not in _SAID_ABOVE else rest).append(said)
    return shown, rest


_SAID_ABOVE = (CautionKind.EMULATED,)
