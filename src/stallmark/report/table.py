"""The report's plain tables: agreement of server and device, errors, consistency."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from stallmark import format
from stallmark.analysis.read.server_summary import IoSummary
from stallmark.analysis.summary import ExperimentSummary, RunSummary, StepSummary
from stallmark.format import spoken
from stallmark.report.labels import EMULATED, emulated_label, step_labels
from stallmark.report.text import sentence

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


def percentile(value: float | None) -> Cell | str:
    return format.number(value) if value is not None else Cell(f"{format.NONE}*", "none")


def percentile_notes(values: Iterator[float | None]) -> list[str]:
    return [f"{format.NONE}* {format.TOO_SMALL}."] if any(v is None for v in values) else []


def shown(latency: dict[str, float | None]) -> list[float | None]:
    return [latency.get(p) for p in PERCENTILES]


def agreement(experiment: ExperimentSummary, *, writes: bool) -> Table | None:
    """What the server counted beside what the device counted; None when no step has both."""
    labels = step_labels(experiment)
    rows: list[Sequence[str | Cell]] = []
    for run in experiment.runs:
        for step in run.steps:
            for files, server, device in _pairs(run, step):
                if writes or server.reads or device.reads:
                    name = emulated_label(step, labels)
                    rows.append([name, files, *(_writes if writes else _reads)(server, device)])
    if not rows:
        return None
    both, each = ["server", "device", "Δ"], ["server", "device"]
    if writes:
        groups = [("Writes/s", 3), ("MB/s", 3), ("Mean write ms", 2), ("Syncs/s", 2), ("Mean sync ms", 2)]
    else:
        groups = [("Reads/s", 3), ("MB/s", 3), ("Mean read ms", 2), ("Mean of intervals ms", 2)]
    header = ["step", "files", *(name for _, span in groups for name in (both if span == 3 else each))]
    return Table(header, rows, frozenset({0, 1}), groups=[("", 2), *groups])


def _pairs(run: RunSummary, step: StepSummary) -> Iterator[tuple[str, IoSummary, IoSummary]]:
    """(files, server, device) that counted the same I/O. A device that holds data and WAL is compared with both."""
    devices = run.manifest.devices
    shared = step.wal_device_io is None and devices.data is not None
    if shared and step.wal_io and devices.data == devices.wal and step.data_io and step.device_io:
        yield "data + WAL", together(step.data_io, step.wal_io), step.device_io
        return
    if step.data_io and step.device_io:
        yield "data", step.data_io, step.device_io
    if step.wal_io and step.wal_device_io:
        yield "WAL", step.wal_io, step.wal_device_io


def together(data: IoSummary, wal: IoSummary) -> IoSummary:
    """Both files' I/O, means weighted by their counts; a mean of intervals cannot be told from two."""

    def mean(*parts: tuple[float | None, int | None]) -> float | None:
        known = [(value, count) for value, count in parts if value is not None and count]
        total = sum(count for _, count in known)
        return sum(value * count for value, count in known) / total if total else None

    return IoSummary(
        source=data.source,
        seconds=data.seconds,
        reads=data.reads + wal.reads,
        read_bytes=data.read_bytes + wal.read_bytes,
        read_ms=mean((data.read_ms, data.reads), (wal.read_ms, wal.reads)),
        read_interval_mean_ms=None if wal.reads else data.read_interval_mean_ms,
        writes=data.writes + wal.writes,
        write_bytes=data.write_bytes + wal.write_bytes,
        write_ms=mean((data.write_ms, data.writes), (wal.write_ms, wal.writes)),
        write_interval_mean_ms=None,
        syncs=None if data.syncs is None and wal.syncs is None else (data.syncs or 0) + (wal.syncs or 0),
        sync_ms=mean((data.sync_ms, data.syncs), (wal.sync_ms, wal.syncs)),
    )


def _reads(server: IoSummary, device: IoSummary) -> list[str | Cell]:
    return [
        *_rates(server, device, lambda io: io.reads),
        *_rates(server, device, lambda io: io.read_bytes / 1e6),
        format.number(server.read_ms),
        format.number(device.read_ms),
        format.number(server.read_interval_mean_ms),
        format.number(device.read_interval_mean_ms),
    ]


def _writes(server: IoSummary, device: IoSummary) -> list[str | Cell]:
    return [
        *_rates(server, device, lambda io: io.writes),
        *_rates(server, device, lambda io: io.write_bytes / 1e6),
        format.number(server.write_ms),
        format.number(device.write_ms),
        *_rates(server, device, lambda io: io.syncs)[:2],
        format.number(server.sync_ms),
        format.number(device.sync_ms),
    ]


def _rates(server: IoSummary, device: IoSummary, of: Callable[[IoSummary], float | None]) -> list[str | Cell]:
    """Both per second, as their samples may span different seconds, and how far the device's lies from the server's."""
    left, right = (
        amount / io.seconds if (amount := of(io)) is not None and io.seconds else None for io in (server, device)
    )
    apart = format.difference(left, right)
    kind = "" if apart is None or abs(apart) <= AGREE else "apart"
    return [format.number(left), format.number(right), Cell(format.signed_share(apart), kind)]


def errors(experiment: ExperimentSummary) -> Table | None:
    """None when no call failed in any measured interval."""
    labels = step_labels(experiment)
    rows: list[Sequence[str | Cell]] = [
        [
            emulated_label(s, labels),
            spoken(e.transaction) or format.NONE,
            e.error_class,
            e.code,
            format.count(e.attempts),
            format.count(e.most_in_a_second),
            format.count(e.given_up),
            e.message,
        ]
        for s in experiment.steps
        for e in s.errors
    ]
    if not rows:
        return None
    header = [*("step", "transaction", "class", "code", "failed calls", "most in 1 s", "given up", "first message")]
    bursts = [f"{emulated_label(s, labels)}: {sentence(burst)}" for s in experiment.steps for burst in s.bursts]
    tried = "Calls that failed by deadlock, serialisation or lock timeout were tried again, at most ten times."
    return Table(header, rows, frozenset({0, 1, 2, 3, 7}), [tried, *bursts])


def consistency(experiment: ExperimentSummary) -> Table | None:
    """The conditions the data were held against, runs of the same result together; None when none was checked."""
    found: dict[tuple[str, bool | None, int, str], list[RunSummary]] = {}
    for run in experiment.runs:
        for one in run.conditions:
            what = (one.name, one.holds, one.offending, one.detail)
            found.setdefault(what, []).append(run)
    rows: list[Sequence[str | Cell]] = []
    for (name, holds, offending, detail), runs in found.items():
        verdict = {True: Cell("holds"), False: Cell("BROKEN", "bad"), None: Cell("not checked", "none")}[holds]
        rows.append([name, verdict, format.count(offending), _which(experiment, runs), detail])
    if not rows:
        return None
    return Table(["condition", "result", "offending rows", "runs", "detail"], rows, frozenset({0, 1, 3, 4}))


def _which(experiment: ExperimentSummary, runs: Sequence[RunSummary]) -> str:
    if len(runs) == len(experiment.runs):
        return f"all {len(runs)}" if len(runs) > 1 else "the only one"
    return ", ".join(f"{r.title} ({EMULATED})" if any(s.emulated for s in r.steps) else r.title for r in runs)
