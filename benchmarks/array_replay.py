"""The prediction of a recorded load on another array: its read time, from the parameters of the array alone.

Every process of the server repeats its I/Os at the same places and in the same order. Between two of them it takes as
long as recorded: for its own work, its locks and the log. A simulation decides how long an I/O takes, and so how many
are under way and how far each process gets (tests/support/array_oracle.py). It shares no code with the emulation.
"""

import random
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from stallmark.record.reader import Record
from stallmark.storage.emulator import ArrayModel
from stallmark.storage.io_trace import READ

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from support.array_oracle import STRIPE, Oracle


@dataclass(frozen=True)
class Process:
    """One process's I/Os in order, as arrays of equal length. Times are seconds since the run's start."""

    begun: np.ndarray
    ended: np.ndarray
    file: np.ndarray  # inode
    offset: np.ndarray
    size: np.ndarray
    operation: np.ndarray


def processes(record: Record, end_s: float) -> list[Process]:
    """Return the traced I/Os of a run that began before `end_s`, of every process that did any."""
    table = record.table("io_trace")
    begun, took, file, offset, size, pid, operation, lost = (
        table[name].to_numpy() for name in ("begun_us", "took_us", "file", "offset", "bytes", "pid", "op", "lost")
    )
    if lost.sum():
        sys.exit(f"The trace of {record.folder} lost {lost.sum()} I/Os: nothing can be predicted from it.")
    order = np.lexsort((begun, pid))
    order = order[(begun[order] >= 0) & (begun[order] < end_s * 1e6)]
    parts = np.split(order, np.flatnonzero(np.diff(pid[order])) + 1)
    return [
        Process(begun[one] / 1e6, (begun[one] + took[one]) / 1e6, file[one], offset[one], size[one], operation[one])
        for one in parts
        if len(one)
    ]


@dataclass(frozen=True)
class Predicted:
    """The predicted reads that ended within the measured interval."""

    reads_per_s: float
    read_ms: float
    flash_share: float


STILL_AT_WORK_S = 1.0
"""Before the end of a load: whose last I/O was earlier was not one of its users."""


class Replay:
    """The replay of one run on one array. Times are seconds since the run's start.

    A process that is faster here than recorded runs out of recorded I/Os before the load's end. With fewer processes at
    work the array would be faster, so the replay ends there.
    """

    def __init__(self, model: ArrayModel, processes: Sequence[Process], end: float, seed: int):
        self._oracle, self._end = Oracle(model, seed), end
        self._reads: list[tuple[float, float, bool]] = []  # ended, took, by flash
        unit = max(STRIPE, model.tier.extent_bytes if model.tier else 0)
        places = _places(processes, unit, random.Random(seed))
        for process in processes:
            gaps = process.begun - np.concatenate([[0.0], process.ended[:-1]])
            base = np.array([places[file] for file in process.file.tolist()], dtype=np.int64)
            job = zip(
                gaps.tolist(),
                process.operation.tolist(),
                (base + process.offset.astype(np.int64)).tolist(),
                process.size.tolist(),
                strict=True,
            )
            last = float(process.ended[-1])
            out_of_work = self._stop if last > end - STILL_AT_WORK_S else lambda: None
            _Replayed(self._oracle, job, self._note, out_of_work).go_on()

    def predict(self, measure: float) -> Predicted:
        """Return the prediction over reads that ended from `measure` on."""
        for _ in self._oracle.clock.run():
            if self._oracle.clock.now >= self._end:
                break
        if self._end <= measure:
            sys.exit("Somebody in the replay was out of work before measuring began: nothing can be predicted.")
        within = [(took, flash) for ended, took, flash in self._reads if measure <= ended < self._end]
        took, flash = (np.array(part, dtype=float) for part in zip(*within, strict=True))
        rate = len(within) / (self._end - measure)
        return Predicted(rate, float(took.mean()) * 1e3, float(flash.mean()))

    def _stop(self) -> None:
        self._end = min(self._end, self._oracle.clock.now)

    def _note(self, operation: int, took: float, by_flash: bool) -> None:
        if operation == READ:
            self._reads.append((self._oracle.clock.now, took, by_flash))


class _Replayed:
    """A process: one I/O at a time."""

    def __init__(
        self, oracle: Oracle, jobs: zip, note: Callable[[int, float, bool], None], out_of_work: Callable[[], None]
    ):
        self._oracle, self._jobs, self._note, self._out_of_work = oracle, jobs, note, out_of_work

    def go_on(self) -> None:
        job = next(self._jobs, None)
        if job is None:
            self._out_of_work()
            return
        gap, *asked = job
        self._oracle.clock.later(max(gap, 0.0), lambda: self._ask(*asked))

    def _ask(self, operation: int, offset: int, size: int) -> None:
        begun = self._oracle.clock.now

        def done() -> None:
            self._note(operation, self._oracle.clock.now - begun, by_flash)
            self.go_on()

        by_flash = self._oracle.submit(operation, offset, size, done)


def _places(processes: Sequence[Process], unit: int, chance: random.Random) -> dict[int, int]:
    """Return where each file begins in one address space: at multiples of `unit`, on a random spindle."""
    ends: dict[int, int] = {}
    for process in processes:
        for file in np.unique(process.file).tolist():
            mine = process.file == file
            ends[file] = max(ends.get(file, 0), int((process.offset[mine] + process.size[mine]).max()))
    places, free = {}, 0
    for file, size in ends.items():
        places[file] = free + chance.randrange(64) * unit
        free = places[file] + -(-size // unit) * unit
    return places
