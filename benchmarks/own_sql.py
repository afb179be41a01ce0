"""A user's own SQL against what executes the same: our built-in transaction, and pgbench.

    python -m benchmarks.own_sql trade-status 5     Trade-Status as a user would write it, and built in
    python -m benchmarks.own_sql pgbench 5          pgbench's built-in scripts, by us and by pgbench, in memory
    python -m benchmarks.own_sql pgbench-slow 3     the same on an emulated array, with a small pool

The number is that of rounds, on the embedded server. Contestants alternate; the figures are medians of the ratios
within each round.
"""

import csv
import random
import re
import resource
import statistics
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.brokerage import LARGE_POOL, WORK
from benchmarks.driver import drive_load

from stallmark.analysis.read.throughput import Latencies
from stallmark.driver.load import LoadSpec
from stallmark.engines import make_databases, sql_file
from stallmark.engines.abilities import PAGE_BYTES
from stallmark.engines.postgres.embedded_engine import EmbeddedEngine
from stallmark.engines.postgres.embedded_server import EmbeddedServer, binary
from stallmark.loaders.load import build
from stallmark.own_sql.command import scripts_definition
from stallmark.own_sql.folder import MOST_FILE_ROWS, read_definition
from stallmark.storage.emulator import ArrayModel
from stallmark.transactions import define, find_workload
from stallmark.transactions.workload import WorkloadContext

USERS, SECONDS, WARM_UP_S = 8, 10, 3
SCALE: dict[str, Any] = {"customers": 1000, "days": 1, "compressibility": 2}
NAME = "trade_status"
SETTINGS = """\
name: own_brokerage
parameters:
  account: {file: accounts.csv}
"""


class Figures(NamedTuple):
    """Logical reads: pages, of sampled transactions."""

    tps: float
    mean_ms: float
    p50_ms: float
    p90_ms: float
    p99_ms: float
    cpu_us: float
    logical_reads: float


def write_folder(engine: EmbeddedEngine, folder: Path) -> Path:
    """Write the folder as a user would: the function's SELECT, and accounts drawn as the built-in transaction draws."""
    folder.mkdir(parents=True, exist_ok=True)
    package = find_workload("brokerage").package
    body = re.search(r"AS \$\$\n(.*?)\n\$\$;", sql_file.read(package, f"{NAME}.postgresql"), re.DOTALL)
    assert body
    (folder / f"{NAME}.sql").write_text(body[1].replace("p_account", ":account") + ";\n")
    (folder / "workload.yaml").write_text(SETTINGS)
    context = find_workload("brokerage").users.share(WorkloadContext(SCALE, 1, engine.query, lambda *_: None))
    choices = context.choices(random.Random(1))
    with (folder / "accounts.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["account"])
        rows.writerows([next(choices).account] for _ in range(MOST_FILE_ROWS))
    return folder


def measured(engine: EmbeddedEngine, workload: str, definition: Any, seed: int) -> Figures:
    scale = {} if definition else SCALE
    load = LoadSpec(
        workload, workload, scale, {NAME: 1}, (USERS,), seed, call_timeout_s=60, definition=definition
    )  # fmt: skip
    record = drive_load(engine, WORK / "own-record", load, WARM_UP_S, SECONDS)

    def rows(table: str) -> list[dict[str, Any]]:
        return [row for row in record.table(table).to_pylist() if WARM_UP_S <= row["second"] < WARM_UP_S + SECONDS]

    def total(table: str, column: str) -> int:
        return sum(row[column] for row in rows(table))

    latency = Latencies.empty()
    for batch in record.batches("transactions", ["second", "latency_gaps", "latency_counts"]):
        inside = [WARM_UP_S <= second < WARM_UP_S + SECONDS for second in batch.column("second").to_pylist()]
        kept = batch.filter(inside)
        latency.merge(kept.column("latency_gaps"), kept.column("latency_counts"))
    done, sampled = total("transactions", "committed"), total("transaction_io", "sampled")
    blocks = total("transaction_io", "hits") + total("transaction_io", "read_bytes") / PAGE_BYTES
    percentiles = [latency.percentile_ms(share) or 0.0 for share in (0.5, 0.9, 0.99)]
    mean_ms, cpu_us = total("transactions", "latency_us") / done / 1000, total("users", "cpu_us") / done
    return Figures(done / SECONDS, mean_ms, *percentiles, cpu_us, blocks / sampled)


def written(values: Iterable[float]) -> str:
    return ", ".join(f"{key} {value:.4g}" for key, value in zip(Figures._fields, values, strict=True))


def trade_status(rounds: int) -> None:
    """Compare Trade-Status as a statement of a folder with the built-in function: the same SELECT, for accounts of the
    same distribution. Equal: latency and logical reads."""
    engine = EmbeddedEngine(EmbeddedServer(WORK / "own-brokerage"), "brokerage")
    try:
        build(engine, find_workload("brokerage"), SCALE, 1, workers=2)
        engine.memory.cap(LARGE_POOL)
        engine.prefill.fill("brokerage")
        own = define(read_definition(str(write_folder(engine, WORK / "own-folder"))))
        ratios: list[list[float]] = []
        for number in range(rounds):
            contestants = [("brokerage", None), (own.name, own.definition)]
            in_turn = contestants[::-1] if number % 2 else contestants
            found = {name: measured(engine, name, definition, number) for name, definition in in_turn}
            for name, figures in found.items():
                print(f"round {number + 1}, {name}: {written(figures)}", flush=True)
            ratios.append([own / built for own, built in zip(found[own.name], found["brokerage"], strict=True)])
            print(f"  own to built in: {written(ratios[-1])}", flush=True)
        print(f"median of own to built in: {written([statistics.median(one) for one in zip(*ratios, strict=True)])}")
    finally:
        engine.close()


# pgbench's scripts.

SCRIPTS = ("select-only", "simple-update", "tpcb-like")
PGBENCH_SCALE = 20
SMALL_POOL = 32 * 1024**2


def pgbench(engine: EmbeddedEngine, *options: str | Path) -> subprocess.CompletedProcess[str]:
    connection = ("-h", engine.server.socket_folder, "-U", "stallmark", engine.database_name())
    return subprocess.run([binary("pgbench"), *options, *connection], capture_output=True, text=True, check=True)


def by_pgbench(engine: EmbeddedEngine, script: Path) -> tuple[float, float]:
    """Return pgbench's TPS, and its CPU in µs per transaction."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    options = ("-n", "-M", "prepared", "-c", str(USERS), "-j", "2", "-T", str(SECONDS), "-D", f"scale={PGBENCH_SCALE}")
    answer = pgbench(engine, *options, "-f", script).stdout
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    tps, count = (float(re.search(words + r"([\d.]+)", answer)[1]) for words in ("tps = ", "actually processed: "))
    return tps, (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / count * 1e6


def by_us(engine: EmbeddedEngine, script: Path, seed: int) -> tuple[float, float]:
    """Return our TPS, and the executors' CPU in µs per transaction."""
    own = define(read_definition(scripts_definition([str(script)], [f"scale={PGBENCH_SCALE}"])))
    [name] = own.definition["transactions"]
    load = LoadSpec(own.name, own.name, {}, {name: 1}, (USERS,), seed, call_timeout_s=60, definition=own.definition)
    record = drive_load(engine, WORK / "own-record", load, WARM_UP_S, SECONDS)
    inside = range(WARM_UP_S, WARM_UP_S + SECONDS)
    committed, cpu_us = (
        sum(row[column] for row in record.table(table).to_pylist() if row["second"] in inside)
        for table, column in (("transactions", "committed"), ("users", "cpu_us"))
    )
    return committed / SECONDS, cpu_us / committed


def scripts_in_memory(rounds: int) -> None:
    """Compare us with pgbench on its own scripts, on data in memory."""
    engine = EmbeddedEngine(EmbeddedServer(WORK / "own-pgbench"), "bench")
    compare_scripts(engine, LARGE_POOL, rounds)


def scripts_on_an_array(rounds: int) -> None:
    """Compare us with pgbench where reads take 2 ms and most pages are read: the driver's CPU should not matter."""
    engine = EmbeddedEngine(EmbeddedServer(WORK / "own-pgbench"), "bench")
    engine.devices.use({"data": ArrayModel(spindles=16, read_ms=2, write_ms=1, sync_ms=0, mb_per_s=500)})
    compare_scripts(engine, SMALL_POOL, rounds)


def compare_scripts(engine: EmbeddedEngine, pool_bytes: int, rounds: int) -> None:
    """Execute each script in turn by us and by pgbench. Commits do not wait for the disk: it would hide the cost of
    both."""
    try:
        make_databases(engine, ["bench"])
        engine.execute("ALTER DATABASE bench SET synchronous_commit = off")
        pgbench(engine, "-i", "-q", "-s", str(PGBENCH_SCALE))
        engine.memory.cap(pool_bytes)
        engine.devices.engage()
        for name in SCRIPTS:
            script = WORK / f"{name}.sql"
            script.write_text(
                subprocess.run([binary("pgbench"), f"--show-script={name}"], capture_output=True, text=True).stderr
            )
            ratios = []
            for number in range(rounds):
                if number % 2:
                    theirs, ours = by_pgbench(engine, script), by_us(engine, script, number)
                else:
                    ours, theirs = by_us(engine, script, number), by_pgbench(engine, script)
                ratios.append(ours[0] / theirs[0])
                print(
                    f"{name}, round {number + 1}: ours {ours[0]:,.0f} TPS {ours[1]:.1f} µs, "
                    f"pgbench {theirs[0]:,.0f} TPS {theirs[1]:.1f} µs, ratio {ratios[-1]:.3f}",
                    flush=True,
                )
            print(f"{name}: median ratio {statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})")
    finally:
        engine.close()


COMPARISONS = {"trade-status": trade_status, "pgbench": scripts_in_memory, "pgbench-slow": scripts_on_an_array}

if __name__ == "__main__":
    name, rounds = (*sys.argv[1:], "5")[:2]
    COMPARISONS[name](int(rounds))
