"""Reads per transaction over the size of the pool: measured in runs, estimated from a trace, and the slope of both."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from stallmark.analysis.locality.traced import Traced
from stallmark.analysis.points import group, mean_of
from stallmark.analysis.step_summary import StepSummary

SLOPE_FROM, SLOPE_TO, LEAST_SIZES = 0.0195, 0.33, 3
"""The shares of the data between which the slope is fitted: 2 and 32 %, and pools that are whole MiB near these."""
ALIKE = 0.05
"""Relative difference of pools that are taken for the same size: one alone is shown."""


@dataclass(frozen=True)
class PoolReads:
    """Reads per transaction at one size of the pool: `measured` as a mean over runs, or estimated between two ends."""

    share: float  # of the data
    size_bytes: int
    transactions: int  # of the measured ones
    measured: float | None
    least: float | None = None
    most: float | None = None

    @property
    def estimated(self) -> float | None:
        return None if self.least is None or self.most is None else (self.least + self.most) / 2

    @property
    def value(self) -> float | None:
        return self.measured if self.measured is not None else self.estimated

    @property
    def error(self) -> float | None:
        """Return the error of the estimate where both are known, as a share of the measured one."""
        known = self.measured and self.estimated is not None
        return self.estimated / self.measured - 1 if known else None  # type: ignore[operator]


@dataclass(frozen=True)
class Slope:
    """A line through log(reads per transaction) over log(pool)."""

    slope: float
    level: float  # reads per transaction at a pool as large as the data, by the line
    deviation: float  # the largest distance of a size from the line, as a share of the line
    from_share: float
    to_share: float
    sizes: int
    estimated: int  # of these sizes


def reads_over_pools(steps: Sequence[StepSummary], traced: Traced | None) -> list[PoolReads]:
    """Return the sizes of the pool, ascending: those of the steps, and those beyond the traced one that its trace gives
    an estimate for."""
    found = {one.share: one for one in _measured(steps)}
    base = next((one for one in found.values() if traced and traced.pool_share == one.share), None)
    if not traced or not base or not base.measured:
        return [found[share] for share in sorted(found)]
    apart = [one for one in traced.flash if all(abs(one.share / share - 1) > ALIKE for share in found)]
    for flash in [*traced.as_large_as_pools, *apart]:
        if flash.least is not None and flash.most is not None and flash.share > base.share:
            known = found.get(flash.share, PoolReads(flash.share, flash.size_bytes, 0, None))
            least, most = (base.measured * (1 - hits) for hits in (flash.most, flash.least))
            found[flash.share] = replace(known, least=least, most=most)
    return [found[share] for share in sorted(found)]


def _measured(steps: Sequence[StepSummary]) -> list[PoolReads]:
    known = [one for one in steps if one.buffer_pool_share and one.storage.reads_per_transaction is not None]
    return [
        PoolReads(
            same[0].buffer_pool_share or 0.0,
            same[0].buffer_pool_bytes or 0,
            sum(one.throughput.committed for one in same),
            mean_of([one.storage.reads_per_transaction for one in same]),
        )
        for same in group(known, lambda one: one.buffer_pool_share)
    ]


def reads_at(pools: Sequence[PoolReads], share: float) -> float | None:
    """Return the reads per transaction at a share of the data between two sizes; None beyond what is known."""
    known = [one for one in pools if one.value]
    if not known or not known[0].share <= share <= known[-1].share:
        return None
    x, y = np.log([one.share for one in known]), np.log([one.value or 0.0 for one in known])
    return float(np.exp(np.interp(np.log(share), x, y)))


def slope_of(pools: Sequence[PoolReads]) -> Slope | None:
    """Return the slope over the sizes from 2 to 32 % of the data; None for fewer than three that were read at."""
    used = [one for one in pools if SLOPE_FROM <= one.share <= SLOPE_TO and one.value]
    if len(used) < LEAST_SIZES:
        return None
    x, y = np.log([one.share for one in used]), np.log([one.value or 0.0 for one in used])
    slope, level = np.polyfit(x, y, 1)
    off = np.exp(np.abs(y - (slope * x + level)).max()) - 1
    estimated = sum(one.measured is None for one in used)
    return Slope(float(slope), float(np.exp(level)), float(off), used[0].share, used[-1].share, len(used), estimated)
