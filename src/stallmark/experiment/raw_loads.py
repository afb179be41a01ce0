"""The raw loads of a run: their files are written before it, and read or written in the steps that have them."""

import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from stallmark.engines.base import Engine
from stallmark.errors import StallmarkError
from stallmark.record import histogram
from stallmark.record.files import refuse_unwritable
from stallmark.record.manifest.workload import Load, RawPlan
from stallmark.record.schema import RAW_IO
from stallmark.record.writer import RecordWriter
from stallmark.storage.arrivals import Plan, Work
from stallmark.storage.direct_io import direct_io, least_direct_bytes
from stallmark.storage.emulator.arrays import PROBE_FOLDER
from stallmark.storage.patterns import with_least_block
from stallmark.storage.probe import refuse_memory
from stallmark.storage.probe_file import make_probe_file, refuse_little_space, remove_leftovers
from stallmark.storage.programs import RawProcess, command, find_tool


@dataclass(frozen=True)
class _Cell:
    """A cell of a raw load, ready to run."""

    load: str
    number: int
    operation: str
    argv: Callable[[float], Sequence[str]]
    """The command line, for a run that began at a moment of the monotonic clock."""


def refuse_impossible(plans: Mapping[str, tuple[RawPlan, int]], engine: Engine, emulated: bool) -> None:
    """Raise StallmarkError for raw loads that cannot run, each with the number of its cells, before anything starts.

    `emulated`: the data of the server are on an emulated array.
    """
    if plans and sys.platform == "win32":
        raise StallmarkError(f"The raw load {next(iter(plans))} cannot run on Windows: remove it.")
    needed: dict[int, tuple[Path, int]] = {}
    for name, (plan, cells) in plans.items():
        on_array = emulated and plan.folder is None
        try:
            # I/Os at a rate are made by our own program, which needs no fio.
            if not plan.rate_iops:
                find_tool("fio", emulated=on_array)
            folder = _folder(plan, engine)
            refuse_unwritable(folder, "name another (folder: …)")
            # An emulated array has its own model of memory.
            if not on_array:
                refuse_memory(folder)
        except StallmarkError as error:
            raise StallmarkError(f"The raw load {name} cannot run: {error}") from None
        remove_leftovers(folder)
        # Files of several loads may share a disk, so sizes are added by device.
        existing = folder if folder.exists() else folder.parent
        _, size = needed.get(existing.stat().st_dev, (existing, 0))
        needed[existing.stat().st_dev] = existing, size + cells * plan.size_bytes
    for folder, size in needed.values():
        try:
            refuse_little_space(folder, size)
        except StallmarkError as error:
            raise StallmarkError(f"The raw loads cannot run: {error}") from None


class RawLoads:
    """The raw loads among the loads of a run. `ended` has the loads that ended early, with the whole seconds until then
    and the reason; the others continue.

    Call `prepare`, then `set` at every step, `poll` often, and `finish` in any case.
    """

    def __init__(self, loads: Iterable[Load], engine: Engine, writer: RecordWriter, clock: Callable[[], float]):
        self._loads = {load.name: load for load in loads if load.raw is not None}
        self._engine, self._writer, self._clock = engine, writer, clock
        self._files = ExitStack()
        self._cells: dict[tuple[str, int], _Cell] = {}
        self._running: dict[tuple[str, int], RawProcess] = {}
        self._ending: list[tuple[_Cell, RawProcess]] = []
        self.ended: dict[str, tuple[int, str]] = {}
        if self._loads:
            writer.add_table("raw_io", RAW_IO)

    def prepare(self, say: Callable[[str], None] = lambda note: None) -> None:
        """Write the files and note in the manifest what sizes the I/Os really have."""
        recorded = {}
        for name, load in self._loads.items():
            assert load.raw
            emulated = self._is_emulated(load.raw)
            folder = _folder(load.raw, self._engine)
            blocks: dict[int, float] = {}
            for number in range(1, max(load.counts) + 1):
                say(f"{name}: writing file {number} of {max(load.counts)}")
                file = self._files.enter_context(make_probe_file(folder, load.raw.size_bytes))
                blocks = with_least_block(load.raw.blocks, least_direct_bytes(file.path))
                # Different seeds, so that no two cells go to the same places.
                seed = len(self._cells) + 1
                argv = _argv(file.path, load.raw, blocks, seed, emulated)
                self._cells[name, number] = _Cell(name, number, load.raw.operation, argv)
            tried = None if emulated else direct_io(folder)
            plan = load.raw.changed(emulated=emulated, blocks=blocks or load.raw.blocks, direct_io=tried)
            recorded[name] = load.changed(raw=plan)
        loads = self._writer.manifest.loads
        self._writer.update(loads=tuple(recorded.get(load.name, load) for load in loads))

    def set(self, counts: Mapping[str, int]) -> None:
        """Run `counts` cells of each load from now on; loads without a number rest, and those that ended early too."""
        for key, cell in self._cells.items():
            wanted = cell.number <= counts.get(cell.load, 0) and cell.load not in self.ended
            if wanted and key not in self._running:
                argv = cell.argv(time.monotonic() - self._clock())
                self._running[key] = RawProcess(argv, self._environment(cell), cell.operation, self._clock)
            elif not wanted and key in self._running:
                self._stop(key)

    def poll(self) -> None:
        """Write down what was done in the seconds that are over, and note which loads have ended early."""
        for key, process in list(self._running.items()):
            if process.has_ended:
                cell = self._cells[key]
                which = f"cell {cell.number} of it ended: " if self._loads[cell.load].cells > 1 else ""
                self.ended.setdefault(cell.load, (int(self._clock()), which + process.end_reason()))
                self._stop(key)
        working = [(self._cells[key], process) for key, process in self._running.items()]
        # Asked before work is taken: a process that ends in between may have written more, and is asked once again.
        over = [(cell, process) for cell, process in self._ending if process.has_ended]
        rows = defaultdict(list)
        for cell, process in [*working, *self._ending]:
            for second, work, waiting in process.pop_work():
                rows[second].append(_row(second, cell, work, waiting))
        self._ending = [ending for ending in self._ending if ending not in over]
        self._writer.append("raw_io", [row for second in sorted(rows) for row in rows[second]])

    def finish(self) -> None:
        """Stop everything, write down the rest, and remove the files."""
        # The files are removed even if stopping fails.
        with self._files:
            for key in list(self._running):
                self._stop(key)
            for _, process in self._ending:
                process.wait()
            if self._loads:
                self.poll()

    def _stop(self, key: tuple[str, int]) -> None:
        process = self._running.pop(key)
        process.stop()
        self._ending.append((self._cells[key], process))

    def _is_emulated(self, plan: RawPlan) -> bool:
        return plan.folder is None and "data" in self._engine.devices.models

    def _environment(self, cell: _Cell) -> dict[str, str]:
        plan, array = self._loads[cell.load].raw, self._engine.devices.array
        assert plan
        return array.environment(of_raw_load=True) if array and self._is_emulated(plan) else {}


def _argv(
    file: Path, plan: RawPlan, blocks: dict[int, float], seed: int, emulated: bool
) -> Callable[[float], Sequence[str]]:
    if plan.rate_iops:
        return Plan(str(file), plan.operation, blocks, plan.size_bytes, plan.outstanding, plan.rate_iops, seed).command
    tool = find_tool("fio", emulated=emulated)
    argv = command(tool.program, tool.how, file, plan, blocks, seed)
    return lambda began: argv


def _row(second: int, cell: _Cell, work: Work, waiting: np.ndarray | None) -> dict[str, object]:
    operation = cell.operation
    counts = {"reads": 0, "read_bytes": 0, "writes": 0, "write_bytes": 0} | {
        f"{operation}s": work.ios,
        f"{operation}_bytes": work.bytes,
    }
    return {
        "second": second,
        "load": cell.load,
        "cell": cell.number,
        **counts,
        "latency_us": work.latency_us,
        **histogram.columns("latency", histogram.from_counts(work.buckets)),
        **(histogram.columns("waiting", histogram.from_counts(waiting)) if waiting is not None else {}),
    }


def _folder(plan: RawPlan, engine: Engine) -> Path:
    if plan.folder:
        # Not created: with a forgotten mount, the load would be on the disk under the mount point.
        if not Path(plan.folder).exists():
            raise StallmarkError(f"The folder {plan.folder} does not exist: name one on the storage to load.")
        return Path(plan.folder)
    data = engine.directories().get("data")
    if data is None:
        raise StallmarkError(
            "The data of this server cannot be located from here. Name a folder on the same storage that this machine "
            "can write to (folder: …)."
        )
    return data / PROBE_FOLDER
