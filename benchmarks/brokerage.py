"""The cost of driving the brokerage, and whether it measures the database and not itself.

    python -m benchmarks.brokerage replay cpu     recorded inputs, Stallmark's users against pgbench; all in memory
    python -m benchmarks.brokerage replay slow    the same on the emulated array with a small pool
    python -m benchmarks.brokerage mix            executor CPU of the full mix, above a bare loop of the same calls
    python -m benchmarks.brokerage reads          physical reads per transaction, fast against an emulated array
    python -m benchmarks.brokerage memory 30      memory of our processes over so many minutes of 30 users

Contestants alternate; the figures are medians of the ratios within each round.
"""

import json
import os
import pickle
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from pathlib import Path
from shutil import rmtree
from typing import Any

import psycopg
from benchmarks.recorded import Recorded, record
from psycopg import pq

from stallmark.driver.controller import Drive
from stallmark.driver.load import LoadSpec
from stallmark.driver.timeline import Timeline, consecutive_steps
from stallmark.engines.postgres.embedded.engine import EmbeddedEngine
from stallmark.engines.postgres.embedded.programs import binary
from stallmark.engines.postgres.embedded.server import EmbeddedServer
from stallmark.loaders.load import build
from stallmark.record.manifest import Manifest
from stallmark.record.manifest.part import now
from stallmark.record.reader import Record
from stallmark.record.writer import RecordWriter
from stallmark.storage.emulator import ArrayModel
from stallmark.transactions import find_workload

USERS, SECONDS, WARM_UP_S = 30, 15, 5
SCALE: dict[str, Any] = {"customers": 5000, "days": 1, "compressibility": 2}
RECORDED = 60_000
SLOW = {
    "data": ArrayModel(spindles=12, read_ms=4, write_ms=4, sync_ms=1, mb_per_s=150),
    "wal": ArrayModel(spindles=1, read_ms=1, write_ms=0, sync_ms=2, mb_per_s=150),
}
SMALL_POOL, LARGE_POOL = 128 * 1024**2, 2 * 1024**3
WORK = Path(os.environ.get("STALLMARK_BENCHMARK_DIR", tempfile.gettempdir())) / "stallmark-benchmark"

UNDONE = "SELECT n.last_value, u.last_value - 1 + u.is_called::int FROM bench.next n, bench.undone u"

SCENARIO = """
name: benchmark
title: A benchmark
answers: How this behaves.
needs: Nothing.
workload: {{name: brokerage, scale: {{customers: 5000, days: 1}}}}
users: {users}
ramp: 2s
warm_up: {warm_up_s}s
measure: {measure_s}s
buffer_pool: 128MiB
start_cache: prefilled
reset: restore
variants:
{variants}
"""
FAST_AND_SLOW = """
  - {name: fast}
  - name: slow
    emulated_array:
      data: {spindles: 12, read_ms: 4, write_ms: 4, sync_ms: 1, mb_per_s: 150}
"""


def opened() -> EmbeddedEngine:
    """Open the brokerage as loaded, with a copy of that."""
    engine = EmbeddedEngine(EmbeddedServer(WORK / "brokerage"), "brokerage")
    build(engine, find_workload("brokerage"), SCALE, 1, workers=2)
    return engine


def recorded(engine: EmbeddedEngine) -> list[Recorded]:
    """Return the recorded transactions. They are recorded once; the database is then restored as loaded."""
    kept = WORK / "recorded.pickle"
    if not kept.exists():
        if engine.backup.label() != "as loaded":
            engine.backup.keep("as loaded")
        engine.memory.cap(LARGE_POOL)
        found = list(record(engine, SCALE, RECORDED))
        engine.backup.restore()
        kept.write_bytes(pickle.dumps(found))
    return pickle.loads(kept.read_bytes())


def statements(transaction: Recorded) -> list[str]:
    def literal(value: Any) -> str:
        return "NULL" if value is None else "'" + str(value).replace("'", "''") + "'"

    return [
        f"SELECT * FROM brokerage.{frame}({', '.join(map(literal, values))})" for frame, values in transaction.calls
    ]


def with_inputs(engine: EmbeddedEngine, transactions: list[Recorded]) -> None:
    """Bring the database into the state as loaded with the recorded inputs in it, and keep a copy of that."""
    label = "with recorded inputs"
    if engine.backup.label() == label:
        return
    engine.backup.restore()
    engine.execute(Path(__file__).with_name("replay.sql").read_text())
    done = [each for each in transactions if each.commits]
    with (
        psycopg.connect(engine.conninfo("benchmark")) as connection,
        connection.cursor() as cursor,
        cursor.copy("COPY bench.inputs FROM STDIN") as copy,
    ):
        for number, transaction in enumerate(done, start=1):
            copy.write_row((number, statements(transaction)))
    engine.backup.keep(label)


def made_ready(engine: EmbeddedEngine, slow: bool) -> None:
    engine.backup.restore()
    engine.devices.use(SLOW if slow else None)
    engine.memory.cap(SMALL_POOL if slow else LARGE_POOL)
    if not slow:  # CPU-bound: commits do not wait for this machine's disk
        engine.execute("ALTER DATABASE brokerage SET synchronous_commit = off")
    engine.prefill.fill("brokerage")
    engine.checkpoint()
    engine.devices.engage()


def driven(engine: EmbeddedEngine, workload: str) -> tuple[float, float]:
    """Return (TPS, executor CPU µs per transaction) of the measured interval."""
    folder = WORK / "record"
    rmtree(folder, ignore_errors=True)
    writer = RecordWriter(folder, Manifest(started=now()))
    found = find_workload(workload)
    load = LoadSpec(
        workload,
        workload,
        SCALE,
        {kind.name: cards for kind, cards in found.users.deck.items()},
        (USERS,),
        seed=1,
        call_timeout_s=60,
        background_per_user=found.background.sessions_per_user,
    )
    steps = consecutive_steps([USERS], ramp_s=0, warm_up_s=WARM_UP_S, measure_s=SECONDS)
    drive = Drive(Timeline(steps), engine.spec(), [load], writer)
    drive.start()
    drive.follow(lambda progress: None, lambda: None)
    drive.finish()
    writer.close()
    kept = Record(folder)
    inside = range(WARM_UP_S, WARM_UP_S + SECONDS)
    rows = [row for row in kept.table("transactions").to_pylist() if row["second"] in inside]
    done = sum(row["committed"] + row["rolled_back"] for row in rows)
    cpu = sum(row["cpu_us"] for row in kept.table("users").to_pylist() if row["second"] in inside)
    if failed := sum(row["failed"] for row in rows):
        print(f"({failed} failed)", end="  ")
    return done / SECONDS, cpu / done


def pgbench(engine: EmbeddedEngine) -> float:
    script = WORK / "replay.sql"
    script.write_text("SELECT * FROM bench.replay();\n")
    argv = [
        binary("pgbench"), "-n", "-M", "prepared", "-c", str(USERS), "-j", "2", "-T", str(SECONDS + WARM_UP_S),
        "-P", "1", "-f", script,
        "-h", engine.server.socket_folder, "-U", "stallmark", "brokerage",
    ]  # fmt: skip
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    by_second = [float(tps) for tps in re.findall(r"progress: [\d.]+ s, ([\d.]+) tps", done.stderr)]
    return statistics.mean(by_second[WARM_UP_S:])


def replay(mode: str, rounds: int) -> None:
    engine = opened()
    try:
        with_inputs(engine, recorded(engine))
        ratios = []
        for number in range(rounds):
            tps = {}
            for ours in (False, True) if number % 2 else (True, False):  # neither is always first
                made_ready(engine, mode == "slow")
                tps[ours] = driven(engine, "benchmarks.replay")[0] if ours else pgbench(engine)
                engine.devices.relax()
                [(done, undone)] = engine.query(UNDONE)
                print(f"{undone:,} of {done:,} undone", end="; ")
            ratios.append(tps[True] / tps[False])
            print(
                f"round {number + 1}: stallmark {tps[True]:,.0f}, pgbench {tps[False]:,.0f} TPS, {ratios[-1]:.3f}",
                flush=True,
            )
        print(f"replay, {mode}: median ratio to pgbench {statistics.median(ratios):.3f} of {rounds} rounds")
    finally:
        engine.close()


def mix(rounds: int) -> None:
    engine = opened()
    try:
        transactions = recorded(engine)
        hands = [transactions[index::USERS] for index in range(USERS)]
        for index in range(2):
            (WORK / f"hands{index}.pickle").write_bytes(pickle.dumps(hands[index::2]))
        if engine.backup.label() != "as loaded":
            engine.backup.restore()
            engine.execute("DROP SCHEMA bench CASCADE")
            engine.backup.keep("as loaded")
        above = []
        for number in range(rounds):
            figures = {}
            for ours in (False, True) if number % 2 else (True, False):
                made_ready(engine, slow=False)
                figures[ours] = driven(engine, "brokerage") if ours else bare_loop(engine)
            above.append(figures[True][1] - figures[False][1])
            print(
                f"round {number + 1}: stallmark {figures[True][0]:,.0f} TPS {figures[True][1]:.1f} µs, "
                f"bare loop {figures[False][0]:,.0f} TPS {figures[False][1]:.1f} µs, {above[-1]:.1f} µs above",
                flush=True,
            )
        print(f"mix: executor CPU above the bare loop, median {statistics.median(above):.1f} µs a transaction")
    finally:
        engine.close()


def bare_loop(engine: EmbeddedEngine) -> tuple[float, float]:
    """Drive USERS threads in two plain processes, each on a core, that send the recorded calls and read the
    answers' rows."""
    argv = [sys.executable, "-m", "benchmarks.brokerage", "loop", engine.conninfo("bare")]
    processes = [subprocess.Popen([*argv, str(index)], stdout=subprocess.PIPE, text=True) for index in range(2)]
    results = [process.communicate()[0].split() for process in processes]
    count = sum(int(result[0]) for result in results)
    return count / max(float(result[2]) for result in results), sum(
        float(result[1]) for result in results
    ) / count * 1e6


def loop(conninfo: str, index: int) -> None:
    from stallmark.driver.executor import SWITCH_INTERVAL_S, keep_to_one_core

    sys.setswitchinterval(SWITCH_INTERVAL_S)
    keep_to_one_core(index)
    hands = pickle.loads((WORK / f"hands{index}.pickle").read_bytes())
    workload = find_workload("brokerage")
    texts = {
        frame: workload.call(frame, parameters, "postgresql").encode()
        for kind in workload.transactions
        for frame, parameters in kind.frames.items()
    }
    ready = threading.Barrier(len(hands) + 1)
    counts = [0] * len(hands)
    end = [0.0]

    def work(number: int) -> None:
        connection = pq.PGconn.connect(conninfo.encode())
        for frame, text in texts.items():
            connection.prepare(frame.encode(), text)
        mine = [
            (
                each.ends,
                each.isolation and f"BEGIN ISOLATION LEVEL {each.isolation}".encode(),
                [
                    (frame.encode(), [None if v is None else str(v).encode() for v in values])
                    for frame, values in each.calls
                ],
                b"COMMIT" if each.commits else b"ROLLBACK",
            )
            for each in hands[number]
        ]
        ready.wait()
        for ends, begin, calls, finish in mine:
            if time.monotonic() > end[0]:
                break
            if begin:
                connection.exec_(begin)
            for frame, values in calls:
                result = connection.exec_prepared(frame, values)
                value = result.get_value
                for row in range(result.ntuples):
                    [value(row, column) for column in range(result.nfields)]
            if begin:
                connection.exec_(finish)
            counts[number] += ends

    workers = [threading.Thread(target=work, args=(number,)) for number in range(len(hands))]
    for worker in workers:
        worker.start()
    end[0] = time.monotonic() + 3600
    ready.wait()
    began, cpu = time.monotonic(), time.process_time()
    end[0] = began + SECONDS + WARM_UP_S
    for worker in workers:
        worker.join()
    print(sum(counts), time.process_time() - cpu, time.monotonic() - began)


def run(users: int, warm_up_s: int, measure_s: int, variants: str) -> subprocess.Popen:
    scenario = WORK / "benchmark.yaml"
    scenario.parent.mkdir(parents=True, exist_ok=True)
    scenario.write_text(SCENARIO.format(users=users, warm_up_s=warm_up_s, measure_s=measure_s, variants=variants))
    return subprocess.Popen(
        ["stallmark", "run", scenario, "--json", "--out", WORK / "runs"],
        stdout=subprocess.PIPE,
        env=os.environ | {"STALLMARK_HOME": str(WORK / "home")},
    )


def reads() -> None:
    found = json.loads(run(USERS, 30, 60, FAST_AND_SLOW).communicate()[0])
    fast, slow = (each["steps"][0] for each in found["runs"])
    for name, step in (("fast", fast), ("slow", slow)):
        print(f"{name}: {step['tps']:,.0f} TPS, {step['reads_per_transaction']:.4f} reads per transaction")
    print(f"apart: {slow['reads_per_transaction'] / fast['reads_per_transaction'] - 1:+.1%}")


def memory(minutes: int) -> None:
    """Return the resident memory of every process of ours, from a tenth of the time on: the first against the
    last quarter."""
    process = run(USERS, 30, minutes * 60, "  - {name: long}\n")
    seen: dict[tuple[int, str], list[int]] = defaultdict(list)
    began = time.monotonic()
    while process.poll() is None:
        for pid, name, resident in _ours(process.pid):
            seen[pid, name].append(resident)
        time.sleep(5)
    print(f"{time.monotonic() - began:.0f} s, exit {process.returncode}")
    for (pid, name), sizes in seen.items():
        if len(sizes) < minutes * 60 / 5 / 2:
            continue
        rest = sizes[len(sizes) // 10 :]
        quarter = len(rest) // 4
        medians = [statistics.median(rest[at * quarter : (at + 1) * quarter]) for at in range(4)]
        in_mib = ", ".join(f"{median / 2**20:.1f}" for median in medians)
        print(f"{name} ({pid}): by quarters {in_mib} MiB, {medians[-1] / medians[0] - 1:+.2%}")
    assert process.stdout
    print(process.stdout.read().decode()[:2000])


def _ours(root: int) -> list[tuple[int, str, int]]:
    """Return (pid, what it is, resident bytes) of the Python processes below and with `root`."""
    parents, found = {}, []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            stat = (folder / "stat").read_text().rsplit(")", 1)[1].split()
            words = (folder / "cmdline").read_bytes().decode().split("\0")
            pages = int((folder / "statm").read_text().split()[1])
        except (OSError, IndexError):
            continue
        parents[int(folder.name)] = int(stat[1])
        if "python" in words[0]:
            name = next((w for w in words if w.startswith("stallmark.")), Path(words[1]).name)
            found.append((int(folder.name), name, pages * os.sysconf("SC_PAGE_SIZE")))

    def below(pid: int) -> bool:
        return pid == root or (pid in parents and below(parents[pid]))

    return [one for one in found if below(one[0])]


if __name__ == "__main__":
    command, *rest = sys.argv[1:]
    if command == "loop":
        loop(rest[0], int(rest[1]))
    elif command == "replay":
        replay(rest[0], int(rest[1]) if len(rest) > 1 else 3)
    elif command == "mix":
        mix(int(rest[0]) if rest else 3)
    elif command == "reads":
        reads()
    else:
        memory(int(rest[0]))
