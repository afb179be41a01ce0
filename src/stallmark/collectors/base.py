"""What a collector is: a small class that reads one view of the server or the machine, raw.

Collectors store cumulative counters as they are, with the server's clock and with whatever identifies an
epoch (statistics reset, server start, device). Deltas are computed later, by the analysis.
"""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import pyarrow as pa

from stallmark.engines.base import Engine

Row = dict[str, Any]


class Collector(ABC):
    """Reads one source at a fixed interval.

    Class attributes describe it to users (in the report) and to the record. `columns` are
    those of its table after `t` (seconds since the run's start), which the sampler adds.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    help: ClassVar[str]
    interval_s: ClassVar[float] = 1.0
    columns: ClassVar[pa.Schema]
    polling: ClassVar[bool] = False
    """It looks at a passing state instead of reading counters: the sampler looks at a random instant of every
    interval, so that nothing periodic can hide between the looks, and takes no extra sample at the end."""

    def __init__(self, engine: Engine):
        self.engine = engine

    def unavailable(self) -> str | None:
        """Why it can measure nothing here, as a sentence; None when it can. Asked once, before the run."""
        return None

    def limited(self) -> str | None:
        """Which of its columns stay empty here and why, as a sentence; None when all is measured."""
        return None

    def open(self) -> None:
        """Get ready to sample (connect). Called in the sampler's thread, and again after a failure."""

    @abstractmethod
    def sample(self, now: float) -> list[Row]:
        """Read once; every row is a mapping of `columns`. `now` is in seconds since the run's start."""

    def finish(self) -> list[Row]:
        """Rows it still holds because it aggregates; called once, after the last sample."""
        return []

    def close(self) -> None:
        """Let go of what `open` took."""
