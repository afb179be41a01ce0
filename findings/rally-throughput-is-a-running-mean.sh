#!/usr/bin/env bash
# Rally, Elasticsearch's load tool, shows a minimum throughput of 89 operations per second for a service that did none for
# a whole minute, and a maximum of 55 for one that did 100 in every second that counted. Each sample of its throughput is
# all operations since the start divided by the time since the start, and minimum, mean, median and maximum are those of
# these running means. So a stall hardly lowers the minimum, the later the less, and a chart of the samples is a smooth
# curve whatever the storage did. And the start is that of the warm-up, although only normal samples are considered, by
# its documentation: what a cold cache did is in all four figures to the end of the test. They depend on the length of a
# warm-up that was to be left out, and storage that fills a cache sooner seems to serve a full cache better. Rally's
# latencies are of normal operations alone. OpenSearch Benchmark has it from Rally.
#
# Four clients, an operation of 40 ms, or of 400 during the warm-up. Rally's own schedule, executor and statistics run
# here, without a server, by a clock that skips all waiting; the operations are counted by the second as well.
# Run with esrally 2.13.0 and opensearch-benchmark 2.4.0 of PyPI, on Debian 12, 2026-11-30:
#   ten minutes with a stall of one, no warm-up: operations per second, minimum, mean, median, maximum
#     by the second: 0, 90, 100, 100
#     Rally: 89, 99, 100, 100
#     OpenSearch Benchmark: 89, 99, 100, 100
#     Rally's mean latency: 44 ms
#   ten minutes after as long a warm-up: operations per second, minimum, mean, median, maximum
#     by the second: 100, 100, 100, 100
#     Rally: 10, 38, 40, 55
#     OpenSearch Benchmark: 10, 38, 40, 55
#     Rally's mean latency: 40 ms
# Source: documentation of Rally, "Summary Report" (throughput: operations in a certain period, usually a second) and
# "Metrics" (sample-type); ThroughputCalculator of driver/driver.py, which keeps count and start over the warm-up, and
# GlobalStatsCalculator.summary_stats of metrics.py, in 2.13.0.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
install=("$folder/venv/bin/pip" install --quiet --disable-pip-version-check --no-compile)
"${install[@]}" esrally==2.13.0
# OpenSearch Benchmark asks for other versions than Rally, and what is run of it needs none of them.
"${install[@]}" --no-deps --target "$folder" opensearch-benchmark==2.4.0
cat >"$folder/throughput.py" <<'PYTHON'
import ast
import asyncio
import collections
import datetime
import itertools
import pathlib
import selectors
import statistics
import sys
import threading
import time

from esrally import config, metrics
from esrally.client.context import RequestContextHolder
from esrally.driver import driver, runner
from esrally.track import track

CLIENTS = 4


class Clock(selectors.SelectSelector):
    """A clock that goes on when all wait, to the end of the shortest wait."""

    now = 0.0

    def select(self, timeout=None):
        self.now += timeout or 0
        return super().select(0)


clock = Clock()
loop = asyncio.SelectorEventLoop(clock)
loop.time = time.time = time.perf_counter = lambda: clock.now


class Parameters:
    infinite = True

    def partition(self, index, number):
        return self

    def params(self):
        return {}


async def race(case, warm_up, measured, stall):
    """Return what Rally sampled, and how many operations ended in each measured second."""
    ends = collections.Counter()

    async def answer(es, params):
        RequestContextHolder.on_request_start()
        now = time.perf_counter() - start
        await asyncio.sleep(max(0.4 if now < warm_up else 0.04, stall[1] - now if now >= stall[0] else 0))
        RequestContextHolder.on_request_end()
        ends[int(round(time.perf_counter() - start, 6))] += 1
        return 1, "ops"

    runner.register_runner(case, answer, async_runner=True)
    operation = track.Operation(case, case)
    task = track.Task(case, operation, warmup_time_period=warm_up, time_period=measured, clients=CLIENTS)
    start = time.perf_counter()
    sampler = driver.Sampler(start, buffer_size=1_000_000)
    clients = []
    for number in range(CLIENTS):
        schedule = driver.schedule_for(driver.TaskAllocation(task, number, number, CLIENTS), Parameters())
        server = {"default": RequestContextHolder()}
        cancel, complete = threading.Event(), threading.Event()
        on_error = driver.OnErrorBehavior.ABORT
        clients.append(driver.AsyncExecutor(number, task, schedule, server, sampler, cancel, complete, on_error)())
    await asyncio.gather(*clients)
    return sampler.samples, [ends[second] for second in range(warm_up, warm_up + measured)]


def rally_figures(case, samples):
    settings = config.Config()
    settings.add(config.Scope.application, "system", "env.name", "local")
    store = metrics.InMemoryMetricsStore(settings)
    store.open("race", datetime.datetime.now(), "track", "challenge", "car")
    driver.SamplePostprocessor(store, 1, {}, {})(samples)
    shown = metrics.GlobalStatsCalculator(store, None, None).summary_stats("throughput", case, case)
    latency = metrics.GlobalStatsCalculator(store, None, None).single_latency(case, case)
    return [shown[name] for name in ("min", "mean", "median", "max")], latency["mean"]


def opensearch_figures(samples):
    source = pathlib.Path(sys.argv[1], "osbenchmark/worker_coordinator/worker_coordinator.py").read_text()
    names = {"itertools": itertools}
    for node in ast.parse(source).body:
        if isinstance(node, ast.ClassDef) and node.name == "ThroughputCalculator":
            exec(compile(ast.Module([node], []), "worker_coordinator", "exec"), names)
    [results] = names["ThroughputCalculator"]().calculate(samples).values()
    return summary([rate for _, _, sample_type, rate, _ in results if sample_type == metrics.SampleType.Normal])


def summary(rates):
    return [min(rates), statistics.mean(rates), statistics.median(rates), max(rates)]


as_seen = True
for case, warm_up, measured, stall in (
    ("ten minutes with a stall of one, no warm-up", 0, 600, (480, 540)),
    ("ten minutes after as long a warm-up", 600, 600, (0, 0)),
):
    samples, rates = loop.run_until_complete(race(case, warm_up, measured, stall))
    counted, opensearch = summary(rates), opensearch_figures(samples)
    rally, latency_ms = rally_figures(case, samples)
    print(f"{case}: operations per second, minimum, mean, median, maximum")
    for name, figures in (("by the second", counted), ("Rally", rally), ("OpenSearch Benchmark", opensearch)):
        print(f"  {name}:", ", ".join(f"{figure:.0f}" for figure in figures))
    print(f"  Rally's mean latency: {latency_ms:.0f} ms")
    for figures in (rally, opensearch):
        if warm_up:
            as_seen &= figures[3] < 0.8 * counted[2]  # the highest is below what half of the seconds had
            as_seen &= 39 < latency_ms < 42  # with the warm-up it would be above 70
        else:
            as_seen &= figures[0] > 0.4 * counted[2] and counted[0] < 0.05 * counted[2]
sys.exit(0 if as_seen else "This has changed.")
PYTHON
"$folder/venv/bin/python" "$folder/throughput.py" "$folder"
