"""The tables that compare the server's counters with the device's own."""

from collections.abc import Sequence

from stallmark import format
from stallmark.analysis.agreement import Pair, Rates, pairs
from stallmark.analysis.experiment import ExperimentSummary
from stallmark.report.columns import counted
from stallmark.report.labels import step_labels
from stallmark.report.table import Cell, Table


def agreement(experiment: ExperimentSummary, *, writes: bool) -> Table | None:
    """Return the server's counts next to the device's, of writes or of reads; None when no step has both."""
    labels = step_labels(experiment)
    rows: list[Sequence[str | Cell]] = []
    for run in experiment.runs:
        for step in run.steps:
            for pair in pairs(run, step):
                if writes or pair.server.reads or pair.device.reads:
                    name = labels[step.key]
                    rows.append([name, pair.files, *(_writes if writes else _reads)(pair)])
    if not rows:
        return None
    both, each = ["server", "device", "Δ"], ["server", "device"]
    if writes:
        groups = [("Writes/s", 3), ("MB/s", 3), ("Mean write ms", 2), ("Syncs/s", 2), ("Mean sync ms", 2)]
    else:
        groups = [("Reads/s", 3), ("MB/s", 3), ("Mean read ms", 2), ("Mean of intervals ms", 2)]
    header = ["step", "files", *(name for _, span in groups for name in (both if span == 3 else each))]
    return Table(header, rows, frozenset({0, 1}), groups=[("", 2), *groups])


def _reads(pair: Pair) -> list[str | Cell]:
    server, device = pair.server, pair.device
    return [
        *_rates(pair, pair.rates(lambda io: io.reads)),
        *_rates(pair, pair.rates(lambda io: io.read_bytes / 1e6)),
        format.number(server.read_ms),
        format.number(device.read_ms),
        format.number(server.read_interval_mean_ms),
        format.number(device.read_interval_mean_ms),
    ]


def _writes(pair: Pair) -> list[str | Cell]:
    server, device = pair.server, pair.device
    return [
        *_rates(pair, pair.rates(lambda io: io.writes)),
        *_rates(pair, pair.rates(lambda io: io.write_bytes / 1e6)),
        format.number(server.write_ms),
        format.number(device.write_ms),
        *_rates(pair, pair.rates(lambda io: io.syncs))[:2],
        format.number(server.sync_ms),
        format.number(device.sync_ms),
    ]


def _rates(pair: Pair, rates: Rates) -> list[str | Cell]:
    apart = Cell(format.signed(rates.apart), "" if rates.agree else "apart")
    return [counted(rates.server, pair.server), counted(rates.device, pair.device), apart]
