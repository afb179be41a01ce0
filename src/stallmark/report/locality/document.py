"""The report of how a load reads: its sections, the parts that a terminal shows, and its JSON."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from stallmark import format
from stallmark.analysis.locality.summary import Locality
from stallmark.report.document import Block, Codes, Document, Facts, Grid, Section, Shown, Title, Words, bullets, shown
from stallmark.report.figures import Figure
from stallmark.report.locality import tables
from stallmark.report.locality.tables import figures
from stallmark.report.renderers import in_json
from stallmark.report.sections import environment, summary
from stallmark.report.sections.summary import banner
from stallmark.report.text import locality as words
from stallmark.report.text import sentence
from stallmark.report.text.device import EMULATED


def locality_document(found: Locality) -> Document:
    manifest, step = found.manifest, found.experiment.steps[0]
    title = f"How {found.workload} reads"
    headline = [
        f"{manifest.server.product} {manifest.server.version}".strip(),
        ", ".join(f"{name} {format.exact(value)}" for name, value in manifest.workload.scale.items()),
        format.users(step.users),
        f"{format.size(found.data_bytes)} of data",
        format.moment(manifest.started),
    ]
    charts = {chart.id: chart for chart in figures(found)}
    pools = charts.pop("pools", None)
    emulated = [Words(EMULATED, "emulated")] if found.experiment.emulated else []
    return Document(
        title=title,
        kind="characterise",
        question=words.QUESTION,
        headline=headline,
        banner=banner(found.experiment),
        answer=sentence(found.findings[0]) if found.findings else words.NO_FINDING,
        lead=[pools] if pools else [],
        cautions=found.cautions,
        sections=[
            summary.findings_section(found.findings[1:]),
            *_sections(found, list(charts.values())),
            _environment(found),
        ],
        brief=[
            [Words(title, "main"), Words(", ".join(headline), "quiet"), *emulated],
            bullets(found.findings),
            *_brief_tables(found),
            [Shown(tables.published(found))] if found.published else [],
            bullets(found.cautions, "apart"),
        ],
    )


def _sections(found: Locality, charts: list[Figure]) -> Iterator[Section]:
    def section(id: str, title: str, *blocks: Block) -> Section:
        return Section(id, title, blocks)

    if found.pools:
        yield section("pool", "Over the size of the pool", Shown(tables.pools(found), "Sizes of the pool"))
    if found.published:
        published = Shown(tables.published(found), "Published figures")
        yield section("published", "Beside published figures", Words(words.PUBLISHED, "lead"), published)
    if found.traced:
        yield section("traced", "Behind the traced pool", Words(words.traced(found.traced), "lead"), Grid(charts))
    if found.by_transaction:
        transactions = shown(tables.transactions(found), "Transactions")
        yield section("transactions", "By transaction", Words(words.TRANSACTIONS, "lead"), *transactions)
    if found.traced or found.io:
        yield section("io", "I/Os", Words(words.SIZES, "lead"), *shown(tables.io(found), "I/O"))


def _environment(found: Locality) -> Section:
    runs = found.experiment.runs
    blocks: list[Block] = [
        Facts([*environment.facts(found.experiment), *environment.devices(found.experiment)]),
        Codes("Records", [run.folder for run in runs]),
    ]
    return Section("environment", "Environment", [*blocks, *environment.ends(found.experiment)], "server and runs")


def _brief_tables(found: Locality) -> Iterator[list[Block]]:
    if found.pools:
        yield [Title("Reads per transaction"), Shown(tables.pools(found))]
    if found.traced:
        yield [Title("LRU flash behind the pool"), Shown(tables.flash(found))]
        yield [Title("Skew"), Shown(tables.skew(found))]
        yield [Title("Tables"), Shown(tables.tables(found))]
    if found.by_transaction:
        yield [Title("Transactions"), Shown(tables.transactions(found))]
    if found.traced or found.io:
        yield [Title("I/O"), Shown(tables.io(found))]


def locality_in_json(found: Locality) -> dict[str, Any]:
    """Return everything that the page shows."""
    return {
        "kind": "locality",
        "workload": found.workload,
        "scale": in_json(found.manifest.workload.scale),
        "runs": [run.folder for run in found.experiment.runs],
        "emulated": found.experiment.emulated,
        "data_bytes": found.data_bytes,
        "pools": [in_json(one) | {"estimated": one.estimated, "error": one.error} for one in found.pools],
        "slope": in_json(found.slope),
        "trace": in_json(found.traced),
        "server_io": in_json(found.io),
        "transactions": in_json(found.by_transaction),
        "published": [asdict(one) for one in found.published],
        "findings": in_json(found.findings),
        "cautions": in_json(found.cautions),
    }
