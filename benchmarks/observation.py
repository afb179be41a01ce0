"""The cost of observing, and whether what is observed is true.

python -m benchmarks.observation collectors [rounds]   TPS with all collectors against TPS with none, alternating
python -m benchmarks.observation device                the record against the device's own counters, and the mean
                                                       read time against the injected one
python -m benchmarks.observation loads                 the reads of three loads' sessions against the server's
"""

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import pyarrow as pa
from benchmarks.cached_bank import cached_bank

from stallmark.analysis.read.interval import measured_intervals
from stallmark.analysis.read.load_io import LoadViews
from stallmark.collectors import collectors_for
from stallmark.collectors.sampler import Sampler
from stallmark.driver.controller import Drive
from stallmark.driver.load import LoadSpec
from stallmark.driver.timeline import Timeline, consecutive_steps
from stallmark.engines.postgres.embedded.engine import EmbeddedEngine
from stallmark.record.manifest import Manifest
from stallmark.record.manifest.part import now
from stallmark.record.reader import Record, find_records, recorded_seconds
from stallmark.record.schema import SAMPLED
from stallmark.record.writer import RecordWriter

WORK = Path(os.environ.get("STALLMARK_BENCHMARK_DIR", tempfile.gettempdir())) / "stallmark-benchmark"
BRANCHES, USERS, WARM_UP_S, SECONDS = 40, 30, 3, 20

DEVICE_SCENARIO = """
name: device-truth
title: Is what is recorded true?
answers: Do the server's counters agree with the device's, and the read time with the injected one?
needs: a C compiler
takes: a minute
workload: {{name: bank, scale: {{branches: 30}}}}
users: {users}
warm_up: 10s
measure: 40s
buffer_pool: 64MiB
start_cache: prefilled
reset: restore
emulated_array:
  data: {{spindles: {spindles}, read_ms: {read_ms}, write_ms: {read_ms}, sync_ms: 1, mb_per_s: 150}}
  wal: {{spindles: 1, read_ms: 1, write_ms: 0, sync_ms: 2, mb_per_s: 150}}
variants:
  - {{name: one}}
"""


LOADS_SCENARIO = """
name: loads-truth
title: Do the reads of the loads add up?
answers: Are the reads of all loads' sessions, and those of other processes, the reads of the server?
needs: a C compiler
loads:
  mail: {workload: mail, scale: {mailboxes: 40}, users: 4}
  bank: {workload: bank, scale: {branches: 10}, users: 6}
  brokerage: {workload: brokerage, scale: {customers: 1000, days: 0.1}, users: 6}
alone: true
ramp: 1s
warm_up: 6s
measure: 30s
buffer_pool: 5 %
start_cache: prefilled
reset: restore
emulated_array:
  data: {spindles: 8, read_ms: 4, write_ms: 4, sync_ms: 1, mb_per_s: 150}
  wal: {spindles: 1, read_ms: 1, write_ms: 0, sync_ms: 2, mb_per_s: 150}
variants:
  - {name: one}
"""


def collectors(rounds: int) -> None:
    with cached_bank(WORK / "observed", BRANCHES) as engine:
        ratios = []
        for number in range(rounds):
            order = (False, True) if number % 2 else (True, False)  # neither is always first
            tps = {observed: _tps(engine, observed) for observed in order}
            ratios.append(tps[True] / tps[False])
            print(f"round {number + 1}: {tps[True]:,.0f} with, {tps[False]:,.0f} without, {ratios[-1]:.3f}", flush=True)
        middle, low, high = statistics.median(ratios), min(ratios), max(ratios)
        print(f"collectors: TPS with / without, median {middle:.3f} of {rounds} rounds ({low:.3f} to {high:.3f})")


def _tps(engine: EmbeddedEngine, observed: bool) -> float:
    shutil.rmtree(WORK / "observation", ignore_errors=True)
    writer = RecordWriter(WORK / "observation", Manifest(started=now()))
    steps = consecutive_steps([USERS], ramp_s=0, warm_up_s=WARM_UP_S, measure_s=SECONDS)
    load = LoadSpec("bank", "bank", {"branches": BRANCHES}, {"transfer": 1}, (USERS,), seed=1, call_timeout_s=60)
    drive = Drive(Timeline(steps), engine.spec(), [load], writer)
    usable = [c for c in collectors_for(engine) if observed and c.unavailable() is None]
    for collector in usable:
        writer.add_table(collector.name, pa.schema([*SAMPLED, *collector.columns]))
    sampler = Sampler(usable, writer.append, drive.clock)
    drive.start()
    sampler.start()
    drive.follow(lambda progress: None, lambda: None)
    drive.finish()
    sampler.stop()
    writer.close()
    inside = range(WARM_UP_S, WARM_UP_S + SECONDS)
    rows = Record(WORK / "observation").table("transactions").to_pylist()
    return sum(row["committed"] for row in rows if row["second"] in inside) / SECONDS


def device() -> None:
    print("users spindles injected ms   server ms  device ms   reads Δ   read bytes Δ   write bytes Δ   host CPU")
    for users, spindles, read_ms in ((1, 8, 2.0), (1, 8, 8.0), (8, 8, 4.0), (30, 8, 4.0)):
        done = _run(DEVICE_SCENARIO.format(users=users, spindles=spindles, read_ms=read_ms), WORK / "runs")
        step = json.loads(done)["runs"][0]["steps"][0]
        server, own = step["data_io"], step["device_io"]
        injected = f"{read_ms + 8192 / 150e3:.2f}" if users == 1 else "queued"
        print(
            f"{users:5} {spindles:8} {injected:>11} {server['read_ms']:11.2f} {own['read_ms']:10.2f}"
            + "".join(f" {_apart(server, own, what):>12}" for what in ("reads", "read_bytes", "write_bytes"))
            + f" {step['cpu_busy_share']:12.0%}",
            flush=True,
        )


def loads() -> None:
    with tempfile.TemporaryDirectory(dir=WORK.parent) as out:
        _run(LOADS_SCENARIO, Path(out))
        [record] = find_records(list(Path(out).iterdir()))
        views = LoadViews(record)
        for interval in measured_intervals(record.manifest, recorded_seconds(record), cut=False):
            io = views.within(interval)
            assert io and io.server and io.others is not None and io.loads_share, "a session ended meanwhile"
            each = ", ".join(f"{name} {one.reads:,.0f}" for name, one in io.loads.items() if one)
            others = ", ".join(f"{name} {reads:,.0f}" for name, reads in io.others.items())
            print(f"{record.manifest.steps[interval.index].name:16} {each}; server {io.server.reads:,.0f}; {others}; ")
            print(f"{'':16} the loads' sessions: {io.loads_share:.2%} of the server's reads", flush=True)


def _run(scenario: str, out: Path) -> bytes:
    """Run a scenario and return what it says as JSON."""
    WORK.mkdir(parents=True, exist_ok=True)
    file = WORK / "scenario.yaml"
    file.write_text(scenario)
    environment = os.environ | {"STALLMARK_HOME": str(WORK / "home")}
    argv = ["stallmark", "run", file, "--json", "--out", out]
    return subprocess.run(argv, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment).stdout


def _apart(server: dict, own: dict, what: str) -> str:
    """Compare rates, because the two are read over seconds that differ a little."""
    return f"{(server[what] / server['seconds']) / (own[what] / own['seconds']) - 1:+.2%}"


if __name__ == "__main__":
    if sys.argv[1] == "collectors":
        collectors(int(sys.argv[2]) if len(sys.argv) > 2 else 5)
    elif sys.argv[1] == "loads":
        loads()
    else:
        device()
