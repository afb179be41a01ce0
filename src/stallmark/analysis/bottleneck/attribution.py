"""The share of the server's I/O stall that the device accounts for.

A backend times its I/O from the request until it runs again. On a busy machine that includes waiting for a CPU. With a
page cache below, no device may be involved at all. The device's own counters give its share of the stall: the share of
the users' I/O waits that a faster device could take away.
"""

import math
from collections.abc import Sequence

from stallmark.analysis.read.counters import Counters
from stallmark.analysis.read.interval import Interval
from stallmark.analysis.read.io import DEVICE, SERVER, Io, Names, over


def device_share_of_stall(io: Io, interval: Interval) -> tuple[float, float]:
    """Return the shares, 0 to 1, of the stall in I/O of data files and of the log that devices account for.

    A share is 1 where the device's counters are not known. Where both lie on one device, its counters do not tell them
    apart, and both shares are that of the sum.
    """
    data, wal = (io.data, SERVER), (io.wal, io.wal_names)
    if io.wal_device is not None:
        return (
            _share([data], [(io.data_device, DEVICE)], interval),
            _share([wal], [(io.wal_device, DEVICE)], interval),
        )
    both = _share([data, wal], [(io.data_device, DEVICE)], interval)
    return both, both


def _share(
    stalled: Sequence[tuple[Counters | None, Names]],
    served: Sequence[tuple[Counters | None, Names]],
    interval: Interval,
) -> float:
    server, device = _ms_per_second(stalled, interval), _ms_per_second(served, interval)
    return min(1.0, device / server) if server and device is not None else 1.0


def _ms_per_second(sources: Sequence[tuple[Counters | None, Names]], interval: Interval) -> float | None:
    """Return the ms per second in reads, writes and syncs together; None when one of the sources is not known."""
    total = 0.0
    for counters, names in sources:
        delta = over(counters, interval)
        if delta is None or delta.broken:
            return None
        times = {*names.read_ms, *names.write_ms, *names.sync_ms} & delta.values.keys()
        total += math.fsum(delta[name] for name in times) / delta.seconds  # a set has no order
    return total
