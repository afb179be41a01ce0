"""The program of one cell of a raw load, while it runs."""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from stallmark.storage.raw_load.guarded import GuardedProgram
from stallmark.storage.raw_load.reports import NOTHING, Report, Seconds, Work, parse

_LATE_S = 0.1
"""How late a report at the end of a second may come."""


class RawProcess(GuardedProgram):
    """A running program, and the work of its seconds by `clock`."""

    def __init__(self, argv: Sequence[str], environment: Mapping[str, str], operation: str, clock: Callable[[], float]):
        self._operation, self._clock = operation, clock
        self._reports: deque[tuple[float, Report]] = deque()
        self._before: tuple[float, Work] | None = None
        self._seconds = Seconds()
        self._waiting: dict[int, np.ndarray] = {}
        super().__init__(argv, environment)

    def hear(self, document: dict[str, Any]) -> None:
        report = parse(document, self._operation)
        self._reports.append((document.get("t", self._clock()), report))

    def take(self) -> list[tuple[int, Work, np.ndarray | None]]:
        """Return the work of whole seconds since the last call; after its end, of all that is left. With each: for how
        long I/Os that were due had waited at its end, as buckets; None where this is not known."""
        over = self.ended
        while self._reports:
            t, report = self._reports.popleft()
            began, before = self._before or (t - report.seconds, NOTHING)
            if report.waiting is not None:
                self._waiting[int(t - _LATE_S)] = report.waiting
            if t > began:
                self._seconds.add(began, t, report.work - before)
                self._before = t, report.work
        until = float("inf") if over or self._before is None else self._before[0]
        return [(second, work, self._waiting.pop(second, None)) for second, work in self._seconds.take(until)]
