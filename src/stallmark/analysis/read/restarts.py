"""Restarts of counters that a table is made of: cleared by somebody, or by the server, while a step was measured."""

from collections.abc import Iterable, Iterator

from stallmark.analysis.finding import Finding, caution
from stallmark.analysis.read.counters import Counters
from stallmark.analysis.read.interval import Interval
from stallmark.analysis.read.io import Io, over
from stallmark.analysis.read.kinds import ReadKind
from stallmark.analysis.read.server_views import ServerViews
from stallmark.record.manifest import Manifest


def restart_findings(manifest: Manifest, io: Io, views: ServerViews, interval: Interval) -> Iterator[Finding]:
    """Yield the collectors whose counters restarted within an interval. Those of I/O make the step invalid."""
    counters: dict[str, Iterable[Counters | None]] = {
        "server_waits": views.waits.values(),
        "procedures": views.procedures.values(),
        "statements": views.statements.counters.values(),
        "query_store": views.query_store.statements.values(),
        "query_store_waits": views.query_store.waits.values(),
        "row_locks": views.row_waits.summed.values(),
        "database": (io.own_database, io.other_databases),
        "checkpoints": (io.checkpoints,),
    }
    restarted = [
        manifest.collectors[name].title
        for name, parts in counters.items()
        if name in manifest.collectors and any(delta.broken for part in parts if (delta := over(part, interval)))
    ]
    if restarted:
        yield caution(ReadKind.COUNTERS_RESTARTED, sources=restarted)
