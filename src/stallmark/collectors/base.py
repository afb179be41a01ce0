"""The interface of a collector: a small class that reads one view of the server or the machine.

Collectors store cumulative counters as they are, with the server's clock and with whatever identifies an
epoch (statistics reset, server start, device). Deltas are computed later, by the analysis.
"""

from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, ClassVar

import pyarrow as pa

from stallmark.engines.base import Engine
from stallmark.errors import StallmarkError
from stallmark.record.schema import column
from stallmark.record.writer import Rows
from stallmark.transactions.workload import StatementFacts

Row = dict[str, Any]
"""A row as a query returns it, by column. Its columns, with types, units and meaning, are in `Collector.columns` alone:
the record and its documentation are made from these, and tests hold what a query returns against them."""
Sink = Callable[[str, Sequence[Row]], None]
"""The taker of the rows of a table, by its name."""

DATABASE = "database"
"""The column of an answer that names the database of a row, if several databases are ours."""
OF_SEVERAL = "the database; null where one alone is under load"


class Collector(ABC):
    """Read one source at a fixed interval.

    Class attributes describe it to users (in the report) and to the record. `columns` are
    those of its table after `t` (seconds since the run's start), which the sampler adds.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    help: ClassVar[str]
    interval_s: ClassVar[float] = 1.0
    columns: ClassVar[pa.Schema]
    polling: ClassVar[bool] = False
    """It samples a passing state instead of reading counters: at a random instant of every interval, so that nothing
    periodic can hide between the samples, and with no extra sample at the end."""

    of_each_database: ClassVar[bool] = False
    """Its view shows only the database that a connection is in: where several are ours, each of them is asked."""

    named: ClassVar[Sequence[str]] = ()
    """The columns whose values are unique within one database: where several are ours, its name comes before them."""

    step_ends: Sequence[float] = ()
    """The ends of the measured intervals as they are planned, in seconds since the run's start."""

    alarm: str | None = None
    """The reason why the run must stop without a verdict, once there is one."""

    incomplete: str | None = None
    """The part that its rows lack because it could not be read, as a clause without a full stop; None if nothing."""

    def __init__(self, engine: Engine):
        self.engine = engine
        self.databases = engine.databases()

    @property
    def several(self) -> bool:
        """Return True if several databases are ours."""
        return len(self.databases) > 1

    def with_database_names(self, rows: Sequence[Row]) -> Sequence[Row]:
        """Return rows with their database's name where it belongs; it is left out where one database is ours."""
        if not (self.named or self.of_each_database) or not rows:
            return rows
        if not self.several and DATABASE not in {*rows[0], *self.columns.names}:
            return rows
        copied = list(rows)
        for row in copied:
            database = row.pop(DATABASE, None)
            if self.several:
                row |= {name: f"{database}.{row[name]}" for name in self.named}
            if DATABASE in self.columns.names:
                row[DATABASE] = database if self.several else None
        return copied

    def unavailable(self) -> str | None:
        """Return the reason why it can measure nothing here, as a sentence; None when it can. Called once, before the
        run.
        """
        return None

    def limitation(self) -> str | None:
        """Return a sentence on the columns that stay empty here, with the reason; None when all is measured."""
        return None

    def open(self) -> None:
        """Get ready to sample (connect). Called in the sampler's thread, and again after a failure, for what that has
        broken: a query that was refused is not a reason for another login.
        """

    @abstractmethod
    def sample(self, now: float) -> Sequence[Row]:
        """Read once; every row is a mapping of `columns`. `now` is in seconds since the run's start."""

    def finish(self) -> Sequence[Row]:
        """Return the rows it still holds because it aggregates. Called once, after the last sample."""
        return []

    def files(self) -> Mapping[str, str]:
        """Return texts to be kept beside the record's tables, by their paths in its folder. Called once, at the end."""
        return {}

    def close(self) -> None:
        """Let go of what `open` took."""


class ServerConnection(ABC):
    """The connection of one collector. A call of `open` connects, so that no sample waits for a login; after the
    connection broke, the next call connects again.
    """

    def __init__(self, engine: Engine):
        self._engine = engine
        self._connection: Any = None

    @abstractmethod
    def open(self) -> None:
        """Connect, unless that is done. Raise StallmarkError when it fails."""

    @abstractmethod
    def rows(self, sql: str) -> Rows:
        """Return the rows of a query.

        Raise StallmarkError without a connection, or if the server refuses or does not answer.
        """

    @abstractmethod
    def close(self) -> None:
        """Close the connection, if there is one, and forget it."""


EPOCH = column("epoch", pa.string(), "changes when the counters were reset; no difference is taken across a change")
SERVER_TIME = column("server_time", pa.float64(), "the server's clock, since 1970", "s")
SERVER_CLOCK = [SERVER_TIME, EPOCH]
TEXT, COUNT, MS = pa.string(), pa.int64(), pa.float64()
STALLS = (
    column("reads", COUNT, "reads so far", "I/Os"),
    column("read_bytes", COUNT, "bytes read so far"),
    column("read_stall_ms", MS, "what these reads took, summed"),
    column("writes", COUNT, "writes so far", "I/Os"),
    column("write_bytes", COUNT, "bytes written so far"),
    column("write_stall_ms", MS, "what these writes took, summed"),
)
STATEMENT_READS = pa.schema(
    [
        *SERVER_CLOCK,
        column(
            "statement", TEXT, "as in `own_statements`; after the name of its workload where several are under load"
        ),
        column("plan", TEXT, "the server's identity of what it counts; counts are per plan"),
        column("executions", COUNT, "so far; null where the server counts only parts of the statement", "executions"),
        column("logical_reads", COUNT, "pages asked for so far, in the pool or not", "pages"),
        column("physical_reads", COUNT, "pages read for it so far", "pages"),
    ]
)
"""The columns of a table of the reads of own SQL's statements, on either engine."""


def statement_names(statements: Mapping[str, Sequence[StatementFacts]]) -> dict[str, Mapping[str, StatementFacts]]:
    """Return the statements of each workload by the names that a table has for them."""
    several = len(statements) > 1
    return {
        workload: {f"{workload}: {fact.name}" if several else fact.name: fact for fact in facts}
        for workload, facts in statements.items()
    }


NAME_OF_SESSIONS = '"stallmark-user-mail": the name of the sessions of a load'
WAITS = {
    "application": NAME_OF_SESSIONS,
    "wait_class": "io, wal, lock, cpu, client and so on",
    "event": "the server's name of the wait",
}


def polled_columns(texts: Mapping[str, str]) -> pa.Schema:
    """Return the columns of a table of `Polled` rows: these texts, by name and meaning, and how often they were met."""
    return pa.schema(
        [
            column("second", pa.int32(), "the whole second of the polls", "s"),
            *(column(name, pa.string(), meaning) for name, meaning in texts.items()),
            column("samples", pa.int32(), "users met so, over all polls of the second", "users"),
            column("polls", pa.int32(), "polls in the second; samples / polls is a mean number of users", "polls"),
        ]
    )


class Polled:
    """Users counted at random instants, by the columns `names`, second by second. Samples / polls is a mean number."""

    def __init__(self, *names: str) -> None:
        self._names = names
        self._second = 0
        self._polls = 0
        self._seen: Counter[tuple[str | None, ...]] = Counter()

    def add(self, now: float, users: Counter[tuple[str | None, ...]]) -> list[Row]:
        """Count a poll: users by values of `names`. Return the rows of the second before, once it is over."""
        rows = self.finish() if int(now) != self._second else []
        self._second = int(now)
        self._polls += 1
        self._seen.update(users)
        return rows

    def finish(self) -> list[Row]:
        rows = [
            {"second": self._second}
            | dict(zip(self._names, values, strict=True))
            | {"samples": samples, "polls": self._polls}
            for values, samples in sorted(self._seen.items(), key=str)
        ]
        self._polls = 0
        self._seen.clear()
        return rows


# Several databases of ours on one server, asked as one.


@lru_cache(maxsize=64)
def name_of(engine: Engine) -> str:
    """Return the name of an engine's database, for which its server is asked once."""
    return engine.database_name()


class EachDatabase(ServerConnection):
    """A connection to each of several databases, which are asked one after the other. Their rows are one sample, at the
    time of the first."""

    def __init__(self, engines: Sequence[Engine], connected: Callable[[Engine], ServerConnection]):
        super().__init__(engines[0])
        self._connections = [(engine, connected(engine)) for engine in engines]

    def open(self) -> None:
        for _, connection in self._connections:
            connection.open()

    def rows(self, sql: str) -> Rows:
        together: list[tuple[Any, ...]] = []
        for engine, connection in self._connections:
            name = name_of(engine)
            try:
                rows = connection.rows(sql)
            except StallmarkError as error:
                raise StallmarkError(f"{name}: {error}") from error
            together += [(*row, name) for row in rows.values]
        if together and "server_time" in rows.names:
            index = rows.names.index("server_time")
            together = [(*row[:index], together[0][index], *row[index + 1 :]) for row in together]
        return Rows([*rows.names, DATABASE], together)

    def close(self) -> None:
        for _, connection in self._connections:
            connection.close()


class ServerCollector(Collector):
    """A collector that stores the rows of its query as they come."""

    connection_type: ClassVar[type[ServerConnection]]

    def __init__(self, engine: Engine):
        super().__init__(engine)
        self.connection: ServerConnection = self.connection_type(engine)
        if self.several and self.of_each_database:
            self.connection = EachDatabase(self.databases, self.connection_type)

    @property
    @abstractmethod
    def sql(self) -> str:
        """Return the query."""

    def open(self) -> None:
        self.connection.open()

    def sample(self, now: float) -> Sequence[Row]:
        return self.with_database_names(self.connection.rows(self.sql))

    def close(self) -> None:
        self.connection.close()


class PolledUsers(ServerCollector):
    """A collector that counts users at random instants; its columns are `polled_columns`."""

    polling = True

    def __init__(self, engine: Engine):
        super().__init__(engine)
        self._polled = Polled(*self.columns.names[1:-2])

    def finish(self) -> Sequence[Row]:
        return self._polled.finish()


# The I/O of the server's sessions, summed by the name of their application: users' and streams', each load by itself.
#
# A session takes its counts with it when it ends, and a sum without them is no continuation of the one before. So the
# epoch of an application's sum changes where a session is missing that the sum before it held; new sessions begin at 0.

TITLE = "I/O per load"
APPLICATION = (
    column("application", pa.string(), NAME_OF_SESSIONS),
    column("sessions", pa.int32(), "sessions that are in the sums", "sessions"),
)


class EndedSessions:
    """Counts, by application, the sums that lack sessions which the sums before them held."""

    def __init__(self) -> None:
        self._held: defaultdict[str, set[str]] = defaultdict(set)
        self._losses: Counter[str] = Counter()

    def with_session_counts(self, rows: Iterable[Row]) -> list[Row]:
        """Put the number of sessions in place of their names, and the losses so far into the epoch."""
        counted = []
        for row in rows:
            if row["sessions"] is None:
                continue
            name, sessions = row["application"], set(row["sessions"].split(","))
            self._losses[name] += not self._held[name] <= sessions
            self._held[name] = sessions
            counted.append(row | {"sessions": len(sessions), "epoch": f"{row['epoch']} losses {self._losses[name]}"})
        return counted
