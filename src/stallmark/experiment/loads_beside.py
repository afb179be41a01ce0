"""The loads of a run that have no virtual users: streams of queries, and raw I/O. They follow the users' steps."""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any

from stallmark.driver.due_queries import QueryQueue
from stallmark.engines.base import Engine
from stallmark.experiment.raw_loads import RawLoads
from stallmark.experiment.streams_load import RunningStreams
from stallmark.record.schema import QUERIES_LEFT
from stallmark.record.writer import RecordWriter
from stallmark.scenarios.load import StreamsLoad
from stallmark.scenarios.model import TimedScenario, Variant


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

    def take_rate(self, name: str, rate: float) -> None:
        """Let the queries of a load come due at this rate per second from now on."""
        self._streams[name].take_rate(rate)

    def queues(self) -> dict[str, QueryQueue]:
        """Return the queries that are due now, of each load that has them at a rate."""
        return {name: queue for name, streams in self._streams.items() if (queue := streams.queue())}

    def poll(self) -> None:
        """Record what has been done. Raise Interrupted where the server is lost."""
        for streams in self._streams.values():
            streams.poll()
        self._raw.poll()

    def finish(self) -> None:
        with ExitStack() as ends:
            ends.callback(self._raw.finish)
            for streams in self._streams.values():
                ends.callback(streams.finish)

    def left(self, name: str) -> dict[str, Any]:
        """Return what a load left undone, for the manifest; nothing of raw I/O. Call it after `finish`."""
        return self._streams[name].left() if name in self._streams else {}

    def notes(self) -> list[str]:
        return [note for streams in self._streams.values() for note in streams.notes()]

    @property
    def ended(self) -> dict[str, tuple[int, str]]:
        """Return the loads that ended early: after how many whole seconds, and why."""
        return self._raw.ended
