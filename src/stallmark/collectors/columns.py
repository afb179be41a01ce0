"""Parts that collectors share: columns of their tables, users counted at random instants, sessions that ended."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa

from stallmark.collectors.sampler import Row, ServerCollector
from stallmark.engines.base import Engine
from stallmark.record.schema import column
from stallmark.transactions.workload import StatementFacts

OF_SEVERAL = "the database; null where one alone is under load"
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
