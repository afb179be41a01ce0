"""The tables that compare the server's counters with the device's own."""

from collections.abc import Callable, Iterator, Sequence

from stallmark import format
from stallmark.analysis.read.server_summary import IoSummary
from stallmark.analysis.summary import ExperimentSummary, RunSummary, StepSummary
from stallmark.report.labels import emulated_label, step_labels
from stallmark.report.table import Cell, Table

AGREE = 0.02  # counts and bytes of server and device that lie this close are called equal


def agreement(experiment: ExperimentSummary, *, writes: bool) -> Table | None:
    """Return the server's counts next to the device's, of writes or of reads; None when no step has both."""
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
    """Yield (files, server, device) that counted the same I/O; a device with data and WAL is compared with both."""
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
    """Return the I/O of both files, means weighted by their counts; a mean of intervals cannot be combined."""

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
    """Return both rates per second, as their samples may span different seconds, and their relative difference."""
    left, right = (
        amount / io.seconds if (amount := of(io)) is not None and io.seconds else None for io in (server, device)
    )
    apart = format.difference(left, right)
    kind = "" if apart is None or abs(apart) <= AGREE else "apart"
    return [format.number(left), format.number(right), Cell(format.signed_share(apart), kind)]
