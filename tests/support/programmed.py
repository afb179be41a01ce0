"""A SQL Server whose files count at known rates, on a clock of its own that a test moves.

The views are scripted with what the truth is at the server's moment; what the server does to who asks (slow logins,
slow answers, NULLs, refusals, restarts) is programmed beside it. The driver's time is simulated and costs none.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from stallmark.collectors.mssql.counters import ServerIO
from stallmark.collectors.sampler import Sampler
from support.mssql_records import SECONDS, put, run
from support.mssql_server import Server, rows
from support.scripted_views import words_of
from support.simulated_time import Time
from support.tds.answers import Error, Step

READS_PER_S, READ_MS = 1000, 7.3
WRITES_PER_S, WRITE_MS = 400, 0.75
REFUSED = Error(1222, "Lock request time out period exceeded.")

When = Callable[[float], bool]


def never(now: float) -> bool:
    return False


@dataclass(frozen=True)
class Programme:
    """Failures, by the driver's seconds since the run's start."""

    login_s: float = 0.0
    slow: When = never
    answer_s: float = 0.0  # how long the view takes where it is slow, after it has counted
    queue_s: float = 0.0  # how long before
    null: When = never
    refused: When = never
    restart_s: float | None = None  # the server starts again, and counts from zero
    clock_offset_s: float = 0.0
    clock_drift: float = 0.0
    begin_s: float = 0.0

    def answer(self, time: Time) -> list[Step]:
        now = time.now
        if self.refused(now):
            return [REFUSED]
        time.now += self.queue_s if self.slow(now) else 0.001
        since = time.now - (self.restart_s or 0.0 if time.now >= (self.restart_s or 0.0) else 0.0)
        began = 2 if self.restart_s is not None and time.now >= self.restart_s else 1
        counted = list(self._files(time.now, since, began, self.null(now)))
        time.now += self.answer_s if self.slow(now) else 0.001
        return [rows(ServerIO.columns.names, *counted)]

    def _files(self, now: float, since: float, began: int, null: bool) -> Iterable[tuple]:
        server_time = 1.7e9 + self.clock_offset_s + now * (1 + self.clock_drift)
        for name, kind, reads_per_s, read_ms, writes_per_s, write_ms in (
            ("bank/bank", "data", READS_PER_S / 2, READ_MS, 0, 0.0),
            ("bank/bank2", "data", READS_PER_S / 2, READ_MS, 0, 0.0),
            ("bank/bank_log", "wal", 0, 0.0, WRITES_PER_S, WRITE_MS),
        ):
            reads, writes = int(1e9 / began + reads_per_s * since), int(writes_per_s * since)
            reads = reads if began == 1 else int(reads_per_s * since)
            hidden = null and name == "bank/bank2"
            yield (
                server_time, f"start {began} handle {name}", name, kind,
                *([None] * 3 if hidden else [reads, reads * 8192, int(reads * read_ms)]),
                writes, writes * 4096, int(writes * write_ms), 0, 0, 1 << 30, name, name,
            )  # fmt: skip


def recorded(server: Server, folder: Path, programme: Programme) -> tuple[Path, Sampler]:
    """The record of a run against such a server, sampled through the real driver."""
    time = Time(until=SECONDS + 0.5)
    table: list[dict] = []

    def log_in(_: None) -> list[Error]:
        time.now += programme.login_s
        return []

    collector = ServerIO(server.engine())
    assert collector.sql  # asks for the version, before time begins
    server.script.login(log_in)
    server.script.sql(words_of(ServerIO), lambda request: programme.answer(time))
    time.now = programme.begin_s
    sampler = Sampler([collector], lambda name, some: table.extend(some if name == "server_io" else ()),
                      time.clock, wait=time.wait)  # fmt: skip
    sampler.start()
    sampler._lanes[0].thread.join()
    sampler.stop()
    run(folder, ())
    put(folder, ServerIO, table)
    return folder, sampler
