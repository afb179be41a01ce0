"""A load of streams: queries of the warehouse while virtual users execute transactions on the same server. Their
figures are kept apart."""

from collections.abc import Callable

from stallmark.driver.query_streams import Query, QueryDrive
from stallmark.engines.base import Engine
from stallmark.experiment.drawn_query import drawn_query
from stallmark.record.manifest.loads import application
from stallmark.record.writer import RecordWriter
from stallmark.scenarios.load import StreamsLoad
from stallmark.transactions.warehouse.streams import MOST_STREAMS, order

PHASE = "concurrent"


class RunningStreams:
    """The streams of one load. Each executes the 22 queries in an order of its own, then in the next order, as long as
    the step has it."""

    def __init__(
        self, name: str, load: StreamsLoad, seed: int, engine: Engine, writer: RecordWriter, clock: Callable[[], float]
    ):
        self._choice = load.choice(seed)
        self._dialect = engine.dialect
        self._drive = QueryDrive(engine, writer, load.timeout, clock, name, application("streams", name))
        self._streams = 0
        self.poll = self._drive.poll
        self.finish = self._drive.finish
        self.notes = self._drive.notes

    def run(self, streams: int) -> None:
        """Have so many streams run from now on. Queries under way are given up where the number changes."""
        if streams == self._streams:
            return
        self._drive.finish()
        self._streams = streams
        if streams:
            steps = [(number, self._steps(number, streams)) for number in range(1, streams + 1)]
            self._drive.begin(PHASE, steps, over_and_over=True)

    def _steps(self, number: int, streams: int) -> list[Query]:
        """Return the steps of a stream: the orders of the table from its number on, so that no two streams have the
        same one at once."""
        return [
            drawn_query(query, stream, self._choice, self._dialect)
            for stream in range(number, MOST_STREAMS + 1, streams)
            for query in order(stream)
        ]
