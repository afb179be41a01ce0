"""The server's counts of I/O against the device's own."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from stallmark.analysis.read.io import together
from stallmark.analysis.read.server_summary import IoSummary
from stallmark.analysis.run import RunSummary
from stallmark.analysis.step_summary import StepSummary
from stallmark.format import difference
from stallmark.stats.thresholds import COUNTS_AGREE


@dataclass(frozen=True)
class Pair:
    """The same I/O, as the server and as the device counted it."""

    files: str  # "data", "WAL" or "data + WAL"
    server: IoSummary
    device: IoSummary

    def rates(self, of: Callable[[IoSummary], float | None]) -> "Rates":
        """Return an amount of both per second, as their samples may span different seconds."""
        server, device = (
            amount / io.seconds if (amount := of(io)) is not None and io.seconds else None
            for io in (self.server, self.device)
        )
        apart = difference(server, device)
        within = COUNTS_AGREE + (self.server.uncertainty or 0.0) + (self.device.uncertainty or 0.0)
        return Rates(server, device, apart, apart is None or abs(apart) <= within)


@dataclass(frozen=True)
class Rates:
    """A rate as both counted it. `apart`: the device's against the server's; None where one is not known."""

    server: float | None
    device: float | None
    apart: float | None
    agree: bool


def pairs(run: RunSummary, step: StepSummary) -> Iterator[Pair]:
    """Yield what both counted in a step of `run`; a device with data and WAL is compared with both."""
    devices, io = run.manifest.devices, step.storage
    shared = io.wal_device is None and devices.data is not None
    if shared and io.wal and devices.data == devices.wal and io.data and io.data_device:
        yield Pair("data + WAL", together(io.data, io.wal), io.data_device)
        return
    if io.data and io.data_device:
        yield Pair("data", io.data, io.data_device)
    if io.wal and io.wal_device:
        yield Pair("WAL", io.wal, io.wal_device)
