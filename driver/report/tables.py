"""The report's plain tables: transactions, agreement of server and device, errors, consistency."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from stallmark.driver.analysis.summary import (
    ExperimentSummary,
    IoSummary,
    RunSummary,
    StepSummary,
    TransactionSummary,
)
from stallmark.driver.report import units
from stallmark.driver.report.charts import emulated_label
from stallmark.driver.report.labels import EMULATED, step_labels

AGREE = 0.02  # counts and bytes of server and device that lie this close are called equal


@dataclass(frozen=True)
class Cell:
    """A cell that is more than text: `kind` is a class of the style sheet."""

    text: str
    kind: str = ""

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Table:
    """`words` are the columns that hold words; the others hold numbers and are set flush right."""

    header: list[str]
    rows: list[Sequence[str | Cell]]
    words: frozenset[int] = frozenset({0})
    notes: list[str] = field(default_factory=list)
    groups: list[tuple[str, int]] = field(default_factory=list)
    """Titles above the header and how many columns each spans."""


PERCENTILES = ("p50", "p90", "p95", "p99", "p99.9", "max")


def transactions(experiment: ExperimentSummary) -> Table:
    labels = step_labels(experiment)
    several = len({t.name for s in experiment.steps for t in s.transactions}) > 1
    rows: list[Sequence[str | Cell]] = []
    for step in experiment.steps:
        parts: list[StepSummary | TransactionSummary] = [*step.transactions]
        if several:
            parts.append(step)
        for part in parts:
            rows.append(
                [
                    emulated_label(step, labels),
                    "all" if isinstance(part, StepSummary) else part.name,
                    *(units.count(n) for n in (part.committed, part.rolled_back, part.failed, part.retries)),
                    units.number(part.tps),
                    units.number(part.latency_mean_ms),
                    *(percentile(part.latency_ms.get(p)) for p in PERCENTILES),
                ]
            )
    return Table(
        ["step", "transaction", "committed", "rolled back", "failed", "retries", "TPS", "mean ms", *PERCENTILES],
        rows,
        frozenset({0, 1}),
        percentile_notes(v for s in experiment.steps for t in s.transactions for v in _shown(t.latency_ms)),
    )


def service_times(experiment: ExperimentSummary) -> Table:
    labels = step_labels(experiment)
    return Table(
        ["step", "transaction", *PERCENTILES],
        [
            [emulated_label(s, labels), t.name, *(percentile(t.service_ms.get(p)) for p in PERCENTILES)]
            for s in experiment.steps
            for t in s.transactions
        ],
        frozenset({0, 1}),
        percentile_notes(v for s in experiment.steps for t in s.transactions for v in _shown(t.service_ms)),
    )


def percentile(value: float | None) -> Cell | str:
    return units.number(value) if value is not None else Cell(f"{units.NONE}*", "none")


def percentile_notes(values: Iterator[float | None]) -> list[str]:
    return [f"{units.NONE}* {units.TOO_SMALL}."] if any(v is None for v in values) else []


def _shown(latency: dict[str, float | None]) -> list[float | None]:
    return [latency.get(p) for p in PERCENTILES]


def agreement(experiment: ExperimentSummary, *, writes: bool) -> Table | None:
    """What the server counted beside what the device counted; None when no step has both."""
    labels = step_labels(experiment)
    rows: list[Sequence[str | Cell]] = []
    for step in experiment.steps:
        for files, server, device in (
            ("data", step.data_io, step.device_io),
            ("WAL", step.wal_io, step.wal_device_io),
        ):
            if server is None or device is None or (files == "WAL" and not writes):
                continue
            name = emulated_label(step, labels)
            rows.append([name, files, *(_writes if writes else _reads)(server, device)])
    if not rows:
        return None
    both, each = ["server", "device", "Δ"], ["server", "device"]
    if writes:
        groups = [("Writes", 3), ("MB", 3), ("Mean write ms", 2), ("Syncs", 2), ("Mean sync ms", 2)]
    else:
        groups = [("Reads", 3), ("MB", 3), ("Mean read ms", 2), ("Mean of intervals ms", 2)]
    header = ["step", "files", *(name for _, span in groups for name in (both if span == 3 else each))]
    return Table(header, rows, frozenset({0, 1}), groups=[("", 2), *groups])


def _reads(server: IoSummary, device: IoSummary) -> list[str | Cell]:
    return [
        *_both(server.reads, device.reads, units.count),
        *_both(server.read_bytes / 1e6, device.read_bytes / 1e6, units.number),
        units.number(server.read_ms),
        units.number(device.read_ms),
        units.number(server.read_interval_mean_ms),
        units.number(device.read_interval_mean_ms),
    ]


def _writes(server: IoSummary, device: IoSummary) -> list[str | Cell]:
    return [
        *_both(server.writes, device.writes, units.count),
        *_both(server.write_bytes / 1e6, device.write_bytes / 1e6, units.number),
        units.number(server.write_ms),
        units.number(device.write_ms),
        units.count(server.syncs),
        units.count(device.syncs),
        units.number(server.sync_ms),
        units.number(device.sync_ms),
    ]


def _both(server: float, device: float, write: Callable) -> list[str | Cell]:
    apart = units.difference(server, device)
    kind = "" if apart is None or abs(apart) <= AGREE else "apart"
    return [write(server), write(device), Cell(units.signed_share(apart), kind)]


def errors(experiment: ExperimentSummary) -> Table | None:
    """None when no call failed in any measured interval."""
    labels = step_labels(experiment)
    rows: list[Sequence[str | Cell]] = [
        [
            emulated_label(s, labels),
            e.error_class,
            e.code,
            units.count(e.attempts),
            units.count(e.given_up),
            e.message,
        ]
        for s in experiment.steps
        for e in s.errors
    ]
    if not rows:
        return None
    header = ["step", "class", "code", "failed calls", "given up", "first message"]
    return Table(header, rows, frozenset({0, 1, 2, 5}))


def consistency(experiment: ExperimentSummary) -> Table | None:
    """The conditions the data were held against, runs of the same result together; None when none was checked."""
    found: dict[tuple[str, bool | None, int | None, str], list[RunSummary]] = {}
    for run in experiment.runs:
        for one in run.conditions:
            what = str(one.get("name", "")), one.get("holds"), one.get("offending"), str(one.get("detail") or "")
            found.setdefault(what, []).append(run)
    rows: list[Sequence[str | Cell]] = []
    for (name, holds, offending, detail), runs in found.items():
        verdict = {True: Cell("holds"), False: Cell("BROKEN", "bad")}.get(holds, Cell("not checked", "none"))
        rows.append([name, verdict, units.count(offending), _which(experiment, runs), detail])
    if not rows:
        return None
    return Table(["condition", "result", "offending rows", "runs", "detail"], rows, frozenset({0, 1, 3, 4}))


def _which(experiment: ExperimentSummary, runs: Sequence[RunSummary]) -> str:
    if len(runs) == len(experiment.runs):
        return f"all {len(runs)}" if len(runs) > 1 else "the only one"
    return ", ".join(
        f"{r.title} ({EMULATED})" if any(s.emulated for s in r.steps) else r.title for r in runs
    )
