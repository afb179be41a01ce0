"""A load of streams: queries of the warehouse while virtual users execute transactions on the same server. Their
figures are kept apart."""

import random
from collections.abc import Callable
from typing import Any

from stallmark.driver.due_queries import DueQueries, QueryQueue
from stallmark.driver.query_streams import Query, QueryDrive, Taken
from stallmark.engines.base import Engine
from stallmark.record.manifest.course import LeftWaiting
from stallmark.record.manifest.workload import application
from stallmark.record.writer import RecordWriter
from stallmark.scenarios.database import WorkloadChoice
from stallmark.scenarios.load import StreamsLoad
from stallmark.transactions.warehouse.parameters import parameters
from stallmark.transactions.warehouse.queries import MOST_STREAMS, order, text

PHASE = "concurrent"


def drawn_query(query: int, stream: int, choice: WorkloadChoice, dialect: str, dop: int | None = None) -> Query:
    """Return a query with its drawn parameters. On SQL Server `dop` stands in the text; on PostgreSQL the session
    sets it."""
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
        """Prepare a load whose queries come due, if at a rate, at so many `times` that of the scenario. The record has
        a table for those that do not end."""
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
            self._due.take_rate(cells * self._rate)
        else:
            steps = [(number, self._steps(number, streams)) for number in range(1, streams + 1)]
            self._drive.begin(PHASE, steps, over_and_over=True)

    def take_rate(self, rate: float) -> None:
        """Let queries come due at this rate from now on. Those under way go on; those that wait are forgotten."""
        self._rate = rate
        if self._due and self._streams:
            self._due.take_rate(rate)
            self._record_left(self._due)

    def finish(self) -> None:
        """End the streams, and give up what is under way."""
        if self._due:
            self._due.take_rate(0)
        self._drive.finish()
        if self._due:
            self._record_left(self._due)
        self._streams = 0

    def queue(self) -> QueryQueue | None:
        """Return the queries that are due now; None in a closed loop."""
        return self._due.queue(self._streams) if self._due else None

    def left(self) -> dict[str, Any]:
        """Return what was not done, for the manifest. Call it after `finish`."""
        return {"left_waiting": LeftWaiting(arrivals=self._forgotten), "given_up": len(self._drive.given_up)}

    def _record_left(self, due: DueQueries) -> None:
        """Record the queries that were due and of which there will be no row."""
        left = [Taken(due_s, None) for due_s in due.take_forgotten()]
        self._forgotten += len(left)
        left += self._drive.given_up[self._recorded :]
        self._recorded = len(self._drive.given_up)
        now_s = self._clock()
        self._writer.append("queries_left", [{"load": self._name, **one._asdict(), "left_s": now_s} for one in left])

    def _steps(self, number: int, streams: int) -> list[Query]:
        """Return the steps of a stream: the orders of the table from its number on, so that no two streams have the
        same one at once."""
        return [
            drawn_query(query, stream, self._choice, self._dialect)
            for stream in range(number, MOST_STREAMS + 1, streams)
            for query in order(stream)
        ]
