"""The load of a large brokerage and its checks: are memory and rate flat, are conditions linear?

    python -m benchmarks.load_at_scale made [customers] [days]       (from the root of the repository)
    python -m benchmarks.load_at_scale loaded [customers] [days]
    python -m benchmarks.load_at_scale finished [customers] [days]
    python -m benchmarks.load_at_scale checked [customers] [days …]

`made`: two processes make all batches as loader processes do and encode them for COPY, into a sink that counts them.
`loaded`: two loader processes fill bare tables of an embedded server in a temporary folder. `finished`: the same bare
tables get their keys and statistics, so many tables at once, with and without PostgreSQL's own workers. `checked`:
databases of more and more days, and how long each condition takes, one at a time.

Rates are of a group of tables, by tenths of its rows: those of other tables cost more or less. CPU is that of all
processes, the server's included. Each line ends with how far its values are from their median.
"""

import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import zlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import psutil
from benchmarks.load import SEED, _loaders, _peak_bytes
from pgpq import ArrowToPostgresBinaryEncoder

from stallmark.engines.postgres.embedded.engine import EmbeddedEngine
from stallmark.engines.postgres.embedded.server import EmbeddedServer
from stallmark.loaders import loader_pool
from stallmark.loaders.brokerage import LOADER
from stallmark.loaders.load import build
from stallmark.loaders.plan import Batch, BatchShare, LoadPlan
from stallmark.schema import deploy
from stallmark.schema.brokerage.tables import METADATA
from stallmark.schema.ddl import ddl_of
from stallmark.schema.ledger import METADATA as OWN_TABLES
from stallmark.transactions import checks
from stallmark.transactions.brokerage import WORKLOAD

PROCESSES = 2
SHOWN = 0.05  # of the rows, at least, a group has that is shown
SAMPLE_S = 0.5
TABLES_AT_ONCE = (1, 2, 4)


class Sample(NamedTuple):
    """The work that was done until then, and the most memory that a process had since the sample before."""

    done: float
    cpu_s: float
    peak_bytes: int


def made(customers: int = 100_000, days: float = 1) -> None:
    began = time.monotonic()
    parts = [
        subprocess.Popen(
            [sys.executable, "-m", "benchmarks.load_at_scale", "part", str(k), str(customers), str(days)],
            stdout=subprocess.PIPE,
        )
        for k in range(1, PROCESSES + 1)
    ]
    found = [json.loads(part.communicate()[0]) for part in parts]
    seconds = time.monotonic() - began
    rows, size, checksum = (sum(part[name] for part in found) for name in ("rows", "bytes", "checksum"))
    print(
        f"{customers:,} customers, {days:g} days: {rows:,} rows, {size / 1e9:.1f} GB for COPY, "
        f"checksum {checksum % 2**64:016x}, {PROCESSES} processes, {seconds:.0f} s; "
        f"each used {found[0]['start_s']:.1f} s of CPU before its first batch"
    )
    for k, part in enumerate(found, 1):
        for group, samples in part["samples"].items():
            if samples[-1][0] >= SHOWN * part["rows"]:
                _show(f"{group}, process {k}", [Sample(*each) for each in samples], samples[-1][0])


def part(k: int, customers: int, days: float) -> None:
    """Make the batches of one process, and write what it saw as JSON. The checksum does not depend on the parts."""
    me, scale = psutil.Process(), LOADER.scale({"customers": customers, "days": float(days)})
    list(LOADER.batch(SEED, scale, Batch("fixed", 0)))  # the pools of words are made once
    start_s = time.process_time()
    samples: dict[str, list[Sample]] = defaultdict(list)
    rows = size = checksum = 0
    for batch in LoadPlan(LOADER.groups(scale)).batches(BatchShare(k, PROCESSES)):
        crc = zlib.crc32(f"{batch.group}/{batch.number}".encode())
        of_group = samples[batch.group]
        cpu_before = time.process_time() - (of_group[-1].cpu_s if of_group else 0.0)
        done = of_group[-1].done if of_group else 0
        for table, piece in LOADER.batch(SEED, scale, batch):
            encoder = ArrowToPostgresBinaryEncoder(piece.schema)
            for encoded in (encoder.write_header(), *map(encoder.write_batch, piece.to_batches()), encoder.finish()):
                crc = zlib.crc32(encoded, zlib.crc32(table.encode(), crc))
                size += len(encoded)
            rows += piece.num_rows
            done += piece.num_rows
            of_group.append(Sample(done, time.process_time() - cpu_before, _peak_since(me)))
        checksum += crc << 32 | zlib.crc32(crc.to_bytes(4, "big"))
    print(json.dumps({"rows": rows, "bytes": size, "checksum": checksum, "start_s": start_s, "samples": samples}))


def loaded(customers: int = 20_000, days: float = 1) -> None:
    scale = LOADER.scale({"customers": customers, "days": float(days)})
    plan = LoadPlan(LOADER.groups(scale))
    with _server() as server:
        engine = _bare(server)
        total = 0
        for group in plan.groups:
            batches = [batch for batch in plan.batches() if batch.group == group.name]
            began = time.monotonic()
            with _sampled(engine) as samples:
                rows = sum(done.rows for done in loader_pool.load(engine, "brokerage", SEED, scale, batches, PROCESSES))
            total += rows
            print(f"{group.name}: {rows:,} rows in {time.monotonic() - began:.0f} s", flush=True)
            if rows >= SHOWN * sum(plan.rows.values()):
                _show(group.name, samples, rows)
        print(f"{customers:,} customers, {days:g} days: {total:,} rows, {engine.bytes_used() / 1e9:.1f} GB")


def finished(customers: int = 1_000, days: float = 10, repeats: int = 1) -> None:
    scale = LOADER.scale({"customers": customers, "days": float(days)})
    plan = LoadPlan(LOADER.groups(scale))
    print(f"{'tables at once':>14} {'own workers':>11} {'CPU s':>6} {'written':>8}  seconds by phase")
    with _server() as server:
        engine = _bare(server)
        for _ in loader_pool.load(engine, "brokerage", SEED, scale, plan.batches(), PROCESSES):
            pass
        server.keep("bare")
        for _ in range(repeats):
            for workers in TABLES_AT_ONCE:
                for own in (0, 2):
                    server.restore(None)
                    engine.execute(f"ALTER DATABASE load SET max_parallel_maintenance_workers = {own}")
                    clock, cpu_before = _Phases(), _cpu_s()
                    deploy.finish(engine, ddl_of(METADATA), "", rows=plan.rows, workers=workers, step=clock.step)
                    engine.checkpoint()
                    [(written,)] = engine.query("SELECT sum(write_bytes) FROM pg_stat_io WHERE object = 'relation'")
                    used = _cpu_s() - cpu_before
                    print(f"{workers:>14} {own:>11} {used:>6.1f} {float(written) / 1e6:>5.0f} MB  {clock}", flush=True)


class _Phases:
    """The seconds that each phase took; the last one to begin is not among them."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._phase, self._began = "", time.monotonic()

    def step(self, phase: str, _: float) -> None:
        if phase != self._phase:
            now = time.monotonic()
            if self._phase:
                self.seconds[self._phase] = now - self._began
            self._phase, self._began = phase, now

    def __str__(self) -> str:
        each = ", ".join(f"{phase} {took:.1f}" for phase, took in self.seconds.items())
        return f"{each}, together {sum(self.seconds.values()):.1f}"


def _bare(server: EmbeddedServer) -> EmbeddedEngine:
    """Return a database that has the tables, without their keys."""
    engine = EmbeddedEngine(server, "load")
    deploy.create_tables(engine, OWN_TABLES)
    deploy.create_tables(engine, ddl_of(METADATA).tables)
    return engine


@contextmanager
def _sampled(engine: EmbeddedEngine) -> Iterator[list[Sample]]:
    """Yield the samples that are taken meanwhile: bytes of the database, and the CPU of all processes."""
    samples: list[Sample] = []
    over = threading.Event()
    bytes_before, cpu_before = engine.bytes_used(), _cpu_s()

    def take() -> None:
        while not over.wait(SAMPLE_S):
            peak = max(map(_peak_since, _loaders()), default=0)
            samples.append(Sample(engine.bytes_used() - bytes_before, _cpu_s() - cpu_before, peak))

    thread = threading.Thread(target=take)
    thread.start()
    try:
        yield samples
    finally:
        over.set()
        thread.join()


def _cpu_s() -> float:
    """Return the CPU seconds of this process, of those it started, and of those that have ended: a server's, too."""
    me = psutil.Process()
    used = 0.0
    for process in (me, *me.children(recursive=True)):
        try:
            used += sum(process.cpu_times()[:4])
        except psutil.NoSuchProcess:
            continue  # in its parent's sum from now on
    return used


def _peak_since(process: psutil.Process) -> int:
    """Return the most memory that the process had since this was last asked."""
    try:
        peak = _peak_bytes(process)
        Path(f"/proc/{process.pid}/clear_refs").write_text("5")
    except OSError:
        return 0  # it has ended
    return peak


def _show(title: str, samples: Sequence[Sample], rows: float) -> None:
    """Print the rows per CPU second and the peak memory of each tenth."""
    tenths = _tenths(samples)
    last = samples[-1]
    rates = [rows * (end.done - begin.done) / last.done / (end.cpu_s - begin.cpu_s) / 1e6 for begin, end in tenths]
    peaks = [end.peak_bytes / 2**20 for _, end in tenths]
    for what, values, digits in (("M rows per CPU s", rates, 2), ("peak MiB", peaks, 0)):
        line = " ".join(f"{value:>6.{digits}f}" for value in values)
        least, most = (100 * (value / statistics.median(values) - 1) for value in (min(values), max(values)))
        print(f"{title:>20} {what:>16} {line}   {least:+.0f} to {most:+.0f} %", flush=True)


def _tenths(samples: Sequence[Sample]) -> list[tuple[Sample, Sample]]:
    """Return the samples at the ends of each tenth; the end has the peak of all of it."""
    found, begin, peak, upto = [], Sample(0, 0.0, 0), 0, 1
    for sample in samples:
        peak = max(peak, sample.peak_bytes)
        if sample.done >= samples[-1].done * upto / 10 and sample.cpu_s > begin.cpu_s:
            found.append((begin, sample._replace(peak_bytes=peak)))
            begin, peak, upto = sample, 0, int(10 * sample.done / samples[-1].done) + 1
    return found


def checked(customers: int = 1_000, *days: float) -> None:
    cpu_s: dict[str, list[float]] = defaultdict(list)
    sizes = days or (10.0, 40.0)
    for each in sizes:
        scale = LOADER.scale({"customers": customers, "days": float(each)})
        with _server() as server:
            engine = EmbeddedEngine(server, "load")
            build(engine, WORKLOAD, scale, SEED, workers=PROCESSES)
            for condition in WORKLOAD.conditions:
                if condition.cost == "scan":
                    alone, cpu_before = replace(WORKLOAD, conditions=[condition]), _cpu_s()
                    [result] = checks.run(engine, alone, scale, driven=False)
                    assert result.holds, result
                    cpu_s[condition.name].append(_cpu_s() - cpu_before)
                    used = f"{result.seconds:.1f} s, {cpu_s[condition.name][-1]:.1f} s of CPU"
                    print(f"{each:g} days: {condition.name}: {used}", flush=True)
    print(f"{'CPU seconds with so many days':<60}" + "".join(f"{each:>9g}" for each in sizes))
    for name, used_s in cpu_s.items():
        print(f"{name:<60}" + "".join(f"{one:>9.1f}" for one in used_s))


@contextmanager
def _server() -> Iterator[EmbeddedServer]:
    with tempfile.TemporaryDirectory(prefix="stallmark-load-") as folder:
        server = EmbeddedServer(Path(folder) / "server")
        try:
            yield server
        finally:
            server.close()


if __name__ == "__main__":
    action, *numbers = sys.argv[1:]
    actions = {"made": made, "part": part, "loaded": loaded, "finished": finished, "checked": checked}
    actions[action](*(float(n) if "." in n else int(n) for n in numbers))
