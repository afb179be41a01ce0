"""The loads of a run that have no virtual users: raw I/O, and streams of queries. They follow the users' steps."""

import random
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from stallmark.driver.pacing import DueQueries, QueryQueue
from stallmark.driver.query_streams import Query, QueryDrive, Taken
from stallmark.engines.base import Engine
from stallmark.errors import StallmarkError
from stallmark.experiment.storage_work import folder_for_files
from stallmark.record import histogram
from stallmark.record.files import refuse_unwritable
from stallmark.record.manifest.course import LeftWaiting
from stallmark.record.manifest.workload import Load, RawPlan, application
from stallmark.record.schema import QUERIES_LEFT, RAW_IO
from stallmark.record.writer import RecordWriter
from stallmark.scenarios.database import WorkloadChoice
from stallmark.scenarios.load import StreamsLoad
from stallmark.scenarios.model import TimedScenario, Variant
from stallmark.storage.arrivals import Plan, Work
from stallmark.storage.direct_io import direct_io, least_direct_bytes
from stallmark.storage.fio import with_least_block
from stallmark.storage.probe import refuse_memory
from stallmark.storage.probe_file import make_probe_file, refuse_little_space, remove_leftovers
from stallmark.storage.programs import RawProcess, command, find_tool
from stallmark.transactions.warehouse import MOST_STREAMS, order, parameters, text

# The raw loads: their files are written before the run, and read or written in the steps that have them.


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
            folder = folder_for_files("folder", plan.folder, engine)
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
            folder = folder_for_files("folder", load.raw.folder, self._engine)
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


# A load of streams: queries of the warehouse while virtual users execute transactions on the same server. Their
# figures are kept apart.

PHASE = "concurrent"


def drawn_query(query: int, stream: int, choice: WorkloadChoice, dialect: str, dop: int | None = None) -> Query:
    """Return a query with its drawn parameters. On SQL Server `dop` is in the text; on PostgreSQL the session sets
    it."""
    drawn = parameters(query, choice.seed, stream, choice.scale["factor"])
    in_text = dop if dialect == "mssql" else None
    return Query(f"Q{query}", text(query, dialect, drawn, dop=in_text), dop)


class RunningStreams:
    """The streams of one load. In a closed loop each executes the 22 queries in an order of its own, then in the next
    order, as long as the step has it. In an open loop they share one order after the other: whichever is free executes
    the query that is due, so that the 22 come equally often however few come due."""

    def __init__(
        self,
        name: str,
        load: StreamsLoad,
        seed: int,
        engine: Engine,
        writer: RecordWriter,
        clock: Callable[[], float],
        times: float = 1.0,
    ):
        """Prepare a load whose queries come due, if at a rate, at `times` times the scenario's rate. The record has a
        table for queries that do not end."""
        self._choice = load.choice(seed)
        self._dialect = engine.dialect
        self._drive = QueryDrive(engine, writer, load.timeout, clock, name, application("streams", name))
        self._streams = 0
        arrivals = load.arrival_plan().times(times)
        self._rate = arrivals.rate
        rng = random.Random(f"{seed}/{writer.manifest.repeat}/queries of {name}")
        self._due = DueQueries(arrivals, rng, clock) if arrivals.rate else None
        self._writer, self._name, self._clock = writer, name, clock
        self._forgotten = self._recorded = 0
        self.poll = self._drive.poll
        self.notes = self._drive.notes

    def run(self, streams: int, cells: int = 1) -> None:
        """Have so many streams run from now on, with queries at a rate for each of the cells. Queries under way are
        given up where the number of streams changes."""
        if streams == self._streams:
            return
        self.finish()
        self._streams = streams
        if not streams:
            return
        if self._due and self._rate:
            every = self._steps(1, 1)
            self._drive.begin(PHASE, [(number, every) for number in range(1, streams + 1)], due=self._due)
            self._due.set_rate(cells * self._rate)
        else:
            steps = [(number, self._steps(number, streams)) for number in range(1, streams + 1)]
            self._drive.begin(PHASE, steps, over_and_over=True)

    def set_rate(self, rate: float) -> None:
        """Let queries come due at this rate from now on. Those under way continue; those that wait are forgotten."""
        self._rate = rate
        if self._due and self._streams:
            self._due.set_rate(rate)
            self._record_left(self._due)

    def finish(self) -> None:
        """End the streams, and give up what is under way."""
        if self._due:
            # First, so that no query comes due while the streams end.
            self._due.set_rate(0)
        self._drive.finish()
        if self._due:
            self._record_left(self._due)
        self._streams = 0

    def queue(self) -> QueryQueue | None:
        """Return the queries that are due now; None in a closed loop."""
        return self._due.queue(self._streams) if self._due else None

    def work_left(self) -> dict[str, Any]:
        """Return the work left undone, for the manifest. Call it after `finish`."""
        return {"left_waiting": LeftWaiting(arrivals=self._forgotten), "given_up": len(self._drive.given_up)}

    def _record_left(self, due: DueQueries) -> None:
        """Record the queries that were due and will have no row."""
        left = [Taken(due_s, None) for due_s in due.pop_forgotten()]
        self._forgotten += len(left)
        left += self._drive.given_up[self._recorded :]
        self._recorded = len(self._drive.given_up)
        now_s = self._clock()
        self._writer.append(
            "queries_left", [{"load": self._name, **taken._asdict(), "left_s": now_s} for taken in left]
        )

    def _steps(self, number: int, streams: int) -> list[Query]:
        """Return the steps of a stream: the orders of the table from its number on, so that no two streams have the
        same one at once."""
        return [
            drawn_query(query, stream, self._choice, self._dialect)
            for stream in range(number, MOST_STREAMS + 1, streams)
            for query in order(stream)
        ]


# All of these loads together.
class LoadsBeside:
    """Streams and raw I/O of one run. Call `prepare`, then `enter` with the counts of each step as it
    begins, `poll` in between, and `finish` whatever has happened."""

    def __init__(
        self,
        scenario: TimedScenario,
        variant: Variant,
        engine: Engine,
        writer: RecordWriter,
        clock: Callable[[], float],
    ):
        seed, searched = scenario.contents.seed, scenario.searched_of(variant)
        times = searched.times if searched else 1.0
        self._raw = RawLoads(writer.manifest.loads, engine, writer, clock)
        if any(isinstance(load, StreamsLoad) for load in scenario.loads_of(variant).values()):
            writer.add_table("queries_left", QUERIES_LEFT)
        self._streams = {
            name: RunningStreams(name, load, seed, engine.database_of(load.workload), writer, clock, times)
            for name, load in scenario.loads_of(variant).items()
            if isinstance(load, StreamsLoad)
        }

    def prepare(self, say: Callable[[str], None]) -> None:
        """Write the files of raw I/O, before anything is measured."""
        self._raw.prepare(say)

    def enter(self, counts: Mapping[str, int], cells: int = 1) -> None:
        """Have every load as large as a step asks for; one that is not named rests."""
        for name, streams in self._streams.items():
            streams.run(counts.get(name, 0), cells)
        self._raw.set(counts)

    def set_rate(self, name: str, rate: float) -> None:
        """Let the queries of a load come due at this rate per second from now on."""
        self._streams[name].set_rate(rate)

    def queues(self) -> dict[str, QueryQueue]:
        """Return the queries that are due now, of each load that has them at a rate."""
        return {name: queue for name, streams in self._streams.items() if (queue := streams.queue())}

    def poll(self) -> None:
        """Record what has been done. Raise Interrupted if the server is lost."""
        for streams in self._streams.values():
            streams.poll()
        self._raw.poll()

    def finish(self) -> None:
        with ExitStack() as ends:
            ends.callback(self._raw.finish)
            for streams in self._streams.values():
                ends.callback(streams.finish)

    def work_left(self, name: str) -> dict[str, Any]:
        """Return the work that a load left undone, for the manifest; empty for raw I/O. Call it after `finish`."""
        return self._streams[name].work_left() if name in self._streams else {}

    def notes(self) -> list[str]:
        return [note for streams in self._streams.values() for note in streams.notes()]

    @property
    def ended(self) -> dict[str, tuple[int, str]]:
        """Return the loads that ended early: after how many whole seconds, and why."""
        return self._raw.ended
