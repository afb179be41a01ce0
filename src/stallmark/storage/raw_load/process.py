"""The `fio` of one cell of a raw load, while it runs."""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from stallmark.storage.raw_load.guarded import GuardedFio
from stallmark.storage.raw_load.reports import NOTHING, Report, Seconds, Work, parse


class RawProcess(GuardedFio):
    """A running fio, and the work of its seconds by `clock`."""

    def __init__(self, argv: Sequence[str], environment: Mapping[str, str], operation: str, clock: Callable[[], float]):
        self._operation, self._clock = operation, clock
        self._reports: deque[tuple[float, Report]] = deque()
        self._before: tuple[float, Work] | None = None
        self._seconds = Seconds()
        super().__init__(argv, environment)

    def hear(self, document: dict[str, Any]) -> None:
        report = parse(document, self._operation)
        self._reports.append((self._clock(), report))

    def take(self) -> list[tuple[int, Work]]:
        """Return the work of whole seconds since the last call; after its end, of all that is left."""
        over = self.ended
        while self._reports:
            t, report = self._reports.popleft()
            began, before = self._before or (t - report.seconds, NOTHING)
            if t > began:
                self._seconds.add(began, t, report.work - before)
                self._before = t, report.work
        return self._seconds.take(float("inf") if over or self._before is None else self._before[0])
