"""The report on the reads of a load: its sections, the parts that a terminal shows, and its JSON."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from stallmark import format
from stallmark.analysis.locality.summary import Locality
from stallmark.report.document import (
    Block,
    Codes,
    Document,
    Facts,
    Grid,
    Section,
    Shown,
    Title,
    Words,
    bullets,
    table_blocks,
)
from stallmark.report.figures import Figure
from stallmark.report.locality import tables
from stallmark.report.locality.tables import figures
from stallmark.report.renderers import in_json
from stallmark.report.sections import environment, summary
from stallmark.report.sections.summary import banner
from stallmark.report.text import locality as words
from stallmark.report.text import sentence
from stallmark.report.text.device import EMULATED


def locality_document(locality: Locality) -> Document:
    manifest, step = locality.manifest, locality.experiment.steps[0]
    title = f"How {locality.workload} reads"
    headline = [
        f"{manifest.server.product} {manifest.server.version}".strip(),
        ", ".join(f"{name} {format.exact(value)}" for name, value in manifest.workload.scale.items()),
        format.users(step.users),
        f"{format.size(locality.data_bytes)} of data",
        format.moment(manifest.started),
    ]
    charts = {chart.id: chart for chart in figures(locality)}
    # The main chart leads the page, the others are evidence.
    pools = charts.pop("pools", None)
    emulated = [Words(EMULATED, "emulated")] if locality.experiment.emulated else []
    return Document(
        title=title,
        kind="characterise",
        question=words.QUESTION,
        headline=headline,
        banner=banner(locality.experiment),
        answer=sentence(locality.findings[0]) if locality.findings else words.NO_FINDING,
        lead=[pools] if pools else [],
        cautions=locality.cautions,
        sections=[
            summary.findings_section(locality.findings[1:]),
            *_sections(locality, list(charts.values())),
            _environment(locality),
        ],
        brief=[
            [Words(title, "main"), Words(", ".join(headline), "quiet"), *emulated],
            bullets(locality.findings),
            *_brief_tables(locality),
            [Shown(tables.published_table(locality))] if locality.published else [],
            bullets(locality.cautions, "apart"),
        ],
    )


def _sections(locality: Locality, charts: list[Figure]) -> Iterator[Section]:
    def section(id: str, title: str, *blocks: Block) -> Section:
        return Section(id, title, blocks)

    if locality.pools:
        yield section("pool", "Over the size of the pool", Shown(tables.pools_table(locality), "Sizes of the pool"))
    if locality.published:
        published = Shown(tables.published_table(locality), "Published figures")
        yield section("published", "Compared with published figures", Words(words.PUBLISHED, "lead"), published)
    if locality.traced:
        yield section("traced", "Behind the traced pool", Words(words.traced(locality.traced), "lead"), Grid(charts))
    if locality.by_transaction:
        transactions = table_blocks(tables.transactions_table(locality), "Transactions")
        yield section("transactions", "By transaction", Words(words.TRANSACTIONS, "lead"), *transactions)
    if locality.traced or locality.io:
        yield section("io", "I/Os", Words(words.SIZES, "lead"), *table_blocks(tables.io_table(locality), "I/O"))


def _environment(locality: Locality) -> Section:
    runs = locality.experiment.runs
    blocks: list[Block] = [
        Facts([*environment.facts(locality.experiment), *environment.devices(locality.experiment)]),
        Codes("Records", [run.folder for run in runs]),
    ]
    return Section("environment", "Environment", [*blocks, *environment.ends(locality.experiment)], "server and runs")


def _brief_tables(locality: Locality) -> Iterator[list[Block]]:
    if locality.pools:
        yield [Title("Reads per transaction"), Shown(tables.pools_table(locality))]
    if locality.traced:
        yield [Title("LRU flash behind the pool"), Shown(tables.flash_table(locality))]
        yield [Title("Skew"), Shown(tables.skew_table(locality))]
        yield [Title("Tables"), Shown(tables.reads_by_table(locality))]
    if locality.by_transaction:
        yield [Title("Transactions"), Shown(tables.transactions_table(locality))]
    if locality.traced or locality.io:
        yield [Title("I/O"), Shown(tables.io_table(locality))]


def locality_in_json(locality: Locality) -> dict[str, Any]:
    """Return all values of the page."""
    return {
        "kind": "locality",
        "workload": locality.workload,
        "scale": in_json(locality.manifest.workload.scale),
        "runs": [run.folder for run in locality.experiment.runs],
        "emulated": locality.experiment.emulated,
        "data_bytes": locality.data_bytes,
        "pools": [in_json(pool) | {"estimated": pool.estimated, "error": pool.error} for pool in locality.pools],
        "slope": in_json(locality.slope),
        "trace": in_json(locality.traced),
        "server_io": in_json(locality.io),
        "transactions": in_json(locality.by_transaction),
        "published": [asdict(published) for published in locality.published],
        "findings": in_json(locality.findings),
        "cautions": in_json(locality.cautions),
    }
