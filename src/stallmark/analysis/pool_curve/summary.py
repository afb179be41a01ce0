"""The values of a curve of memory, with their units. The replicate is the run."""

from dataclasses import dataclass

from stallmark.record.devices import DeviceLabel
from stallmark.record.manifest.course import ChosenSize
from stallmark.stats.curve_search import LeftOut, Way


@dataclass(frozen=True)
class Mean:
    """A mean over runs with its interval of 95 %; None where too few runs tell it."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class CurveSize:
    """One size: its runs, and what they gave. `chosen`: the reason for it, where the experiment chose it."""

    pool_bytes: int  # as reached on the server
    pool_share: float | None  # of the database's size at the start
    variant: str
    tps: list[float]  # the result per second, of each run
    rate: Mean
    reads: Mean | None  # physical, of data files, per committed transaction
    chosen: ChosenSize | None = None
    driver_bound: bool = False  # any run: the server could have done more


@dataclass(frozen=True)
class Fit:
    """A monotone curve through the means of all sizes. `error`: root mean square of what it missed of the sizes that
    were left out in turn, as a share of its largest value. `line`: it, drawn finely, as pairs of bytes and value."""

    way: Way
    error: float
    left_out: list[LeftOut]
    line: list[tuple[float, float]]

    @property
    def worst(self) -> LeftOut:
        return max(self.left_out, key=lambda one: abs(one.predicted - one.seen))


@dataclass(frozen=True)
class Gain:
    """The gain of other memory: `times` as much, and throughput changes by `change` (0.03: 3 % more), with its interval
    where repeats tell it."""

    pool_bytes: int
    times: float
    change: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class PoolCurve:
    """The curve of one kind of storage. `spread` is the standard deviation of ln of single runs, pooled over all
    sizes; None where none was repeated. `tolerance` and `most` are those asked for, None where sizes were given."""

    device: DeviceLabel
    emulated: bool
    users: int
    primary: str | None
    sizes: list[CurveSize]  # ascending
    throughput: Fit
    reads: Fit | None
    spread: float | None
    df: int
    tolerance: float | None = None
    most: int | None = None

    @property
    def fewest_runs(self) -> int:
        return min(len(size.tps) for size in self.sizes)
