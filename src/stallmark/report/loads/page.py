"""Write an experiment of several loads: a page of all of them, and beside it one for every load of users."""

import re
from pathlib import Path

from stallmark.analysis.loads.summary import LoadsSummary
from stallmark.report.file import refuse_target, write_whole
from stallmark.report.loads import tables
from stallmark.report.loads.picture import picture_of_loads, svg
from stallmark.report.page import answer_of, banner, headline, page, write_report
from stallmark.report.sections import environment, errors
from stallmark.report.sections import server as server_tables
from stallmark.report.sections.active_set import active_figures
from stallmark.report.sections.statements import statements

WIDE, NARROW = 1240, 388


def write_loads_report(found: LoadsSummary, target: Path) -> list[Path]:
    """Write the report to `target`, and that of each load of users beside it; return them all."""
    own = {name: page_of(target, name) for name in found.loads}
    for path in own.values():
        refuse_target(path)
    links = [(name, path.name) for name, path in own.items()]
    written = [write_whole(render_loads(found, links), target)]
    return [*written, *(write_report(view, own[name]) for name, view in found.loads.items())]


def page_of(target: Path, load: str) -> Path:
    """Return where the page of a load is: report-bank.html beside report.html."""
    return target.with_name(f"{target.stem}-{'-'.join(re.findall(r'[a-z0-9]+', load.lower()))}{target.suffix}")


def render_loads(found: LoadsSummary, links: list[tuple[str, str]]) -> str:
    """Return the page of all loads as text; `links` are the pages of single loads by name."""
    made = picture_of_loads(found)
    active = active_figures(found.whole)
    return page(
        "loads_report.html",
        active,
        [],
        experiment=found.whole,
        answer=answer_of(found.whole),
        picture=None,
        lead=[],
        questions=[],
        headline=[text for text in headline(found.whole) if not text.endswith(" users")],
        banner=banner(found.whole),
        made=made,
        drawings=[svg(made, WIDE, "wide"), svg(made, NARROW, "narrow")] if made else [],
        links=links,
        figures_of_loads=tables.figures(found),
        together=tables.together(found),
        cells=tables.cells(found),
        whole=tables.whole(found),
        verdicts=[
            (name, pair) for name, view in found.loads.items() if view.comparison for pair in view.comparison.pairs
        ],
        active=active,
        server_tables=server_tables,
        statements=statements,
        errors=errors,
        environment=environment,
    )
