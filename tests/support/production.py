"""A SQL Server in production for a day, on a clock of its own that only a wait of the collector moves.

Its files, counters and waits grow along a daily curve whose integral is known. Beside it stands what goes wrong: times
without a connection, restarts, another server at the same address, counters that begin anew, clocks that are set.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from stallmark.engines.base import Login
from stallmark.engines.mssql.odbc import api
from stallmark.errors import NoConnection
from stallmark.profile.collection import Clock
from stallmark.profile.mssql import MssqlSource
from support.mssql_server import rows, says_it_is
from support.tds.answers import Cut, Error, Rows, Step
from support.tds.script import Script

HOUR, DAY = 3600.0, 86_400.0
MIDNIGHT = 1_772_409_600.0  # 2026-03-02 00:00 UTC
ANSWER_S = 0.004
OWN_CPU_MS = 0.4
"""CPU time of the collector's session in a second."""
FORBIDDEN = Error(300, "VIEW SERVER STATE permission was denied on object 'server', database 'master'.", severity=14)


@dataclass(frozen=True)
class File:
    """A file with its mean rates: I/Os per second, their KiB and ms. By night it does a fifth of what it does at two in
    the afternoon."""

    name: str
    database_id: int
    file_id: int
    file_class: str
    reads: float
    read_kib: float
    read_ms: float
    writes: float
    write_kib: float
    write_ms: float

    @property
    def key(self) -> str:
        return f"{self.database_id}/{self.file_id}"


FILES = (
    File("Sales/Sales", 5, 1, "data", 400, 8, 6.0, 60, 16, 2.0),
    File("Sales/Sales_2", 5, 3, "data", 200, 64, 9.0, 30, 8, 2.5),
    File("Sales/Sales_log", 5, 2, "log", 1, 60, 1.0, 300, 12, 0.8),
    File("Web/Web", 6, 1, "data", 90, 8, 5.0, 40, 8, 2.0),
    File("Web/Web_log", 6, 2, "log", 0, 0, 0.0, 80, 6, 0.7),
    File("tempdb/tempdev", 2, 1, "tempdb", 50, 64, 1.0, 70, 64, 1.2),
    File("msdb/MSDBData", 4, 1, "other", 1, 8, 3.0, 1, 8, 2.0),
)
COUNTERS = {
    "log_flushes": 380.0,
    "log_bytes": 4.2e6,
    "transactions": 950.0,
    "batches": 700.0,
    "checkpoint_pages": 120.0,
}
COUNTERS |= {"background_pages": 3.0, "pages_read": 690.0, "readahead_pages": 250.0, "page_lookups": 90_000.0}
COUNTERS |= {"cpu_ms": 5200.0}
STATES = {"memory_target_bytes": 64 << 30, "stolen_bytes": 6 << 30, "database_pages_bytes": 52 << 30}
STATES |= {"page_life_expectancy_s": 2400, "connections": 180}
WAITS = {"PAGEIOLATCH_SH": 4100.0, "WRITELOG": 300.0, "LCK_M_X": 120.0, "LAZYWRITER_SLEEP": 1000.0}
CORES = 16


def load(t: float) -> float:
    """The factor to the mean rate at a time of the day, in seconds from midnight."""
    return 1 - 2 / 3 * math.cos(2 * math.pi * (t - 2 * HOUR) / DAY)


def done(t: float) -> float:
    """The integral of `load` from midnight, in seconds at the mean rate."""
    angle = 2 * math.pi * (t - 2 * HOUR) / DAY
    return t - 2 / 3 * DAY / (2 * math.pi) * (math.sin(angle) + math.sin(2 * math.pi * 2 * HOUR / DAY))


def between(begin: float, end: float) -> float:
    """The work from one time to another, in seconds at the mean rate."""
    return done(end) - done(begin)


@dataclass
class Production:
    """The server. Times are seconds from midnight."""

    now: float = 0.0
    outages: Sequence[tuple[float, float]] = ()
    """Times in which nobody can log in, and every connection is cut."""
    restarts: Sequence[float] = ()
    """The moments at which it was up again, and counts from zero."""
    names: Sequence[tuple[float, str]] = ((0.0, "SQL-A"),)
    """From when on which server answers."""
    anew: dict[str, list[float]] = field(default_factory=dict)
    """A file, "counters" or "waits", and when it began to count from zero though the server ran on; a file keeps its
    handle where its name ends with a "!"."""
    clock_set: Sequence[tuple[float, float]] = ()
    """The moments at which the collector's clock was set, and by how much."""
    server_clock_set: Sequence[tuple[float, float]] = ()
    forbidden: bool = False
    logins: int = 0
    asked: set[str] = field(default_factory=set)
    """The different texts that came."""

    def clock(self, wait: Callable[[float], None] | None = None) -> Clock:
        def sleep(seconds: float) -> None:
            self.now += seconds

        set_by = lambda: sum(by for at, by in self.clock_set if self.now >= at)  # noqa: E731
        return Clock(lambda: MIDNIGHT + self.now + set_by(), lambda: 1000.0 + self.now, wait or sleep, lambda: 0.0)

    @property
    def is_out(self) -> bool:
        return any(begin <= self.now < end for begin, end in self.outages)

    def script(self, **says: Any) -> Script:
        """`says`: what `says_it_is` takes."""
        script = Script(databases=["master", "Sales"])
        script.sql("dm_io_virtual_file_stats", lambda request: self._counted(request.text))
        script.sql("committed_target_kb", lambda request: self._facts())
        says_it_is(script, **says)
        script.login(lambda _: self._log_in())
        return script

    def _log_in(self) -> list[Error]:
        self.now += ANSWER_S
        self.logins += 1
        return [Error(18456, "The server is starting.", severity=14)] if self.is_out else []

    def _facts(self) -> Iterable[Step]:
        name = next(name for since, name in reversed(self.names) if self.now >= since)
        names = ["name", "version", "edition", "cores", "memory_bytes", "pool_bytes"]
        return [rows(names, (name, "16.0.4085.2", "Enterprise Edition", CORES, 128 << 30, 64 << 30))]

    def _counted(self, text: str) -> Iterable[Step]:
        self.asked.add(text)
        if self.is_out:
            return [Cut()]
        if self.forbidden:
            return [FORBIDDEN]
        self.now += ANSWER_S
        return self.answer()

    def answer(self) -> list[Rows]:
        """Return the counters of this moment."""
        began = max((at for at in self.restarts if at <= self.now), default=None)
        start = f"2026-03-02T{began or 0:09.1f}"
        clock = MIDNIGHT + self.now + sum(by for at, by in self.server_clock_set if self.now >= at)
        return [
            rows(["server_clock", "start", "own_cpu_ms"], (clock, start, int(self.now * OWN_CPU_MS))),
            rows(
                ["entity", "database_id", "database", "file", "file_class", "epoch", "reads", "read_bytes",
                 "read_stall_ms", "writes", "write_bytes", "write_stall_ms", "size_bytes"],
                *(self._file(file, began) for file in FILES),
            ),
            rows(["counter", "sources", "value"], *self._server_counters(began)),
            rows(["wait_type", "waits", "wait_ms", "signal_ms"], *self._waits(began)),
        ]  # fmt: skip

    def _since(self, began: float | None, *names: str) -> float:
        """The work since something began to count: a day's work before midnight where it never did."""
        anew = max((at for name in names for at in self.anew.get(name, ()) if at <= self.now), default=None)
        first = max((at for at in (began, anew) if at is not None), default=None)
        return between(first, self.now) if first is not None else DAY + between(0.0, self.now)

    def _file(self, file: File, began: float | None) -> tuple:
        work = self._since(began, file.key, f"{file.key}!")
        handles = [at for at in self.anew.get(file.key, ()) if at <= self.now]
        reads, writes = int(file.reads * work), int(file.writes * work)
        database, name = file.name.split("/")
        return (
            file.key, file.database_id, database, name, file.file_class, f"handle {len(handles)}",
            reads, int(reads * file.read_kib * 1024), reads * file.read_ms,
            writes, int(writes * file.write_kib * 1024), writes * file.write_ms, (1 << 34) + int(1e4 * self.now),
        )  # fmt: skip

    def _server_counters(self, began: float | None) -> Iterable[tuple]:
        work = self._since(began, "counters")
        yield from ((name, 2, int(rate * work)) for name, rate in COUNTERS.items())
        yield from ((name, 1, value) for name, value in STATES.items())

    def _waits(self, began: float | None) -> Iterable[tuple]:
        work = self._since(began, "waits")
        for name, ms_per_s in WAITS.items():
            yield name, int(ms_per_s * work / 4), int(ms_per_s * work), int(ms_per_s * work / 20)


class Direct:
    """The engine, its connection and its cursor for a server that is asked without a driver between: a day of samples
    in seconds. Rows are as the driver gives them."""

    is_azure_database = is_babelfish = False
    edition = 3
    location = "db.example.com:1433/master"
    address = SimpleNamespace(database="master")
    timeout = 0

    def __init__(self, production: Production):
        self._production = production
        self._answers: list[Rows] = []

    def spec(self) -> str:
        return "mssql://watcher@db.example.com:1433/master"

    def login(self) -> Login:
        return Login("db.example.com", "watcher", "secret")

    def identity(self) -> Any:
        return SimpleNamespace(product="SQL Server")

    def connect(self, application: str) -> "Direct":
        if self._production._log_in():
            raise NoConnection(f"No connection to {self.location}: The server is starting.")
        return self

    def execute(self, text: str) -> "Direct":
        if "committed_target_kb" in text:
            self._answers = list(self._production._facts())
        elif "dm_io_virtual_file_stats" in text:
            answers = list(self._production._counted(text))
            if isinstance(answers[0], Cut):
                raise api().OperationalError("08S01", "[08S01] [Microsoft][ODBC]Communication link failure (0)")
            self._answers = answers
        return self

    def fetchall(self) -> list[tuple]:
        return list(self._answers[0].rows)

    def fetchone(self) -> tuple:
        return self.fetchall()[0]

    def nextset(self) -> bool:
        self._answers.pop(0)
        return bool(self._answers)

    def close(self) -> None:
        pass


def direct(production: Production, monkeypatch: Any, *, anonymous: bool = False) -> MssqlSource:
    """The source of a server that is asked directly."""
    engine = Direct(production)
    monkeypatch.setattr("stallmark.profile.mssql.MssqlEngine", lambda spec: engine)
    return MssqlSource(engine, anonymous=anonymous)
