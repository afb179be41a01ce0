"""The times at which samples of a profile were taken, whatever the clocks did meanwhile.

Three clocks are read with every sample: this machine's, the server's, and one that nobody sets but that stands still
while this machine sleeps. Between two samples the median of the three passed: one clock that jumps changes nothing.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from stallmark.errors import StallmarkError
from stallmark.record.profile.manifest import GAP
from stallmark.record.profile.plausible import LONGEST_S

JUMP_S = 5.0
"""A clock that is off by more between two samples was set."""


@dataclass(frozen=True)
class Samples:
    """The samples of a profile (n): their numbers, and when they were taken, in seconds since 1970. `seen` (n − 1)
    tells between which neighbours the server was really seen: not across a gap, nor across its restart.
    """

    number: np.ndarray
    at: np.ndarray
    seen: np.ndarray
    restarts: np.ndarray  # places of the first sample after a restart, or of another server
    jumps: tuple[tuple[float, float], ...]  # when this machine's clock was set, and by how many seconds
    own_cpu_ms: np.ndarray  # CPU time of our own session on the server so far; NaN where it is not told
    server: np.ndarray  # the number of the server that answered, in the manifest

    @property
    def elapsed_s(self) -> np.ndarray:
        return np.diff(self.at)


def sample_times(samples: pa.Table, interval_s: float) -> Samples:
    """Return when samples were taken, from their raw table."""
    number = samples.column("sample").to_numpy()
    if not len(number):
        empty = np.empty(0)
        return Samples(number, empty, empty.astype(bool), np.empty(0, dtype=int), (), empty, server=number)
    session, server = (samples.column(name).to_numpy() for name in ("session", "server"))
    clock, monotonic, its_clock = (
        samples.column(name).to_numpy().astype(float) for name in ("clock", "monotonic_s", "server_clock")
    )
    start = np.array(samples.column("start").to_pylist(), dtype=object)
    same_session, same_server = np.diff(session) == 0, np.diff(server) == 0
    by_wall = np.diff(clock)
    by_server = np.where(same_server, np.diff(its_clock), by_wall)
    by_server = np.where(np.isfinite(by_server), by_server, by_wall)
    # Of another session the third clock began anew: in between, this machine's has the word.
    by_monotonic = np.where(same_session, np.diff(monotonic), by_wall)
    elapsed = np.maximum(np.median([by_wall, by_server, by_monotonic], axis=0), 0.0)
    if elapsed.sum() > LONGEST_S:
        raise StallmarkError("The samples of this profile are damaged (more than ten years apart): collect it anew.")
    restarted = start[1:] != start[:-1]
    jumped = np.flatnonzero(same_session & (np.abs(by_wall - elapsed) > JUMP_S))
    at = np.concatenate([[clock[0]], clock[0] + np.cumsum(elapsed)])
    return Samples(
        number,
        at,
        (elapsed > 0) & (elapsed <= GAP * interval_s) & ~restarted,
        np.flatnonzero(restarted) + 1,
        tuple((float(at[place + 1]), float(by_wall[place] - elapsed[place])) for place in jumped),
        samples.column("own_cpu_ms").cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False),
        server,
    )
