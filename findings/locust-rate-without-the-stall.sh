#!/usr/bin/env bash
# Locust shows the rate and the response times from before a stall for as long as the stall lasts, and a drop once it is
# over. Its "current" requests per second are those of ten seconds before the last request that ended, not before now:
# while a database answers nobody, the charts, the web page and the CSV stay level, and the seconds in which it is fast
# again are shown as 0. Nor is a stall at the end part of the results: the average rate is over the time up to the last
# request that ended, and requests that are under way when a test ends are dropped. So a test of 30 s whose database
# hung for the last 20 reports full speed, its usual maximum, and no failure; who looks for stalls of storage or of a
# checkpoint by these figures sees them too late, or not at all.
#
# Ten users here, each with a request of 5 ms every 100 ms, so 100 a second; none ends during a stall.
# Run with Locust 2.47.0, on Debian 12, 2026-11-29:
#   stall from second 12 to 36: 93 to 93 requests/s shown during it, 0 to 14 in the five seconds after it, 102 measured
#   stall from second 10 to the end of 30: 1000 requests, 101 requests/s, maximum below 100 ms, 0 failures
# Source: documentation of Locust, "Retrieve test statistics in CSV format" (the history has current values), and
# StatsEntry.current_rps and total_rps in its stats.py.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check locust==2.47.0

cat >"$folder/load.py" <<'PYTHON'
import os
import time

import gevent
from locust import User, constant_pacing, task

stall_begin, stall_end = float(os.environ["STALL_BEGIN"]), float(os.environ["STALL_END"])
started = time.time()


class Client(User):
    wait_time = constant_pacing(0.1)

    @task
    def query(self):
        issued = time.time()
        if stall_begin <= issued - started < stall_end:
            gevent.sleep(started + stall_end - issued)
        gevent.sleep(0.005)
        self.environment.events.request.fire(
            request_type="SQL", name="query", response_time=(time.time() - issued) * 1000, response_length=0,
            exception=None, context={},
        )
PYTHON
cat >"$folder/read.py" <<'PYTHON'
import csv
import sys

folder = sys.argv[1]
history = list(csv.DictReader(open(f"{folder}/middle_stats_history.csv")))
history = [row for row in history if row["Name"] == "Aggregated"]
rates = [float(row["Requests/s"]) for row in history]
ended = [int(row["Total Request Count"]) for row in history]
# The stall: the longest time for which no request ended.
still = [place for place in range(1, len(ended)) if ended[place] == ended[place - 1] > 0]
during, after = rates[still[0] : still[-1] + 1], rates[still[-1] + 1 : still[-1] + 6]
real = (ended[still[-1] + 6] - ended[still[-1] + 2]) / 4
print(
    f"stall from second 12 to 36: {min(during):.0f} to {max(during):.0f} requests/s shown during it, "
    f"{min(after):.0f} to {max(after):.0f} in the five seconds after it, {real:.0f} measured"
)
[total] = [row for row in csv.DictReader(open(f"{folder}/end_stats.csv")) if row["Name"] == "Aggregated"]
requests, rate, failures = int(total["Request Count"]), float(total["Requests/s"]), int(total["Failure Count"])
maximum = float(total["Max Response Time"])
print(
    f"stall from second 10 to the end of 30: {requests} requests, {rate:.0f} requests/s, "
    f"maximum {'below 100 ms' if maximum < 100 else f'{maximum:.0f} ms'}, {failures} failures"
)
as_seen = len(during) >= 20 and min(during) > 80 and max(after) < 50 and real > 80
as_seen &= requests < 1200 and rate > 80 and maximum < 100 and failures == 0
sys.exit(0 if as_seen else "This has changed.")
PYTHON
locust=("$folder/venv/bin/locust" -f "$folder/load.py" --headless -u 10 -r 10 --only-summary)
STALL_BEGIN=12 STALL_END=36 "${locust[@]}" -t 48s --csv "$folder/middle" >"$folder/middle.log" 2>&1 &
STALL_BEGIN=10 STALL_END=99 "${locust[@]}" -t 30s --csv "$folder/end" >"$folder/end.log" 2>&1
wait $!
"$folder/venv/bin/python" "$folder/read.py" "$folder"
